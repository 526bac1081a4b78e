package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hydrallm/shared/bus"
	"hydrallm/shared/config"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/settings"
	"hydrallm/shared/telemetry"
)

// Parts is what a service is built from.
type Parts struct {
	ID     string         // unique among all processes; one NATS subject token
	Config *config.Config // of the whole gateway, as it was at the start

	Settings *settings.View                 // the same as it is now
	Again    func() (*config.Config, error) // reads the configuration again; nil = it can't be
	Version  string
	Bus      *bus.Bus // connected; the unit closes it after the service has stopped
	Log      *slog.Logger
	Metrics  prometheus.Registerer
	Sockets  []*os.File // that listen for the clients already; none = the ingress listens itself
}

// Build makes a service that has not started.
type Build func(Parts) (lifecycle.Service, error)

// Unit is a service together with its own connection to NATS, the same whether it shares its process or has one for itself. It is a
// lifecycle.Service: Start connects, builds the service and starts it; Stop stops it and then closes the connection.
type Unit struct {
	*lifecycle.Switch[unitRun]

	connect bus.Config
	parts   Parts
	build   Build
}

// unitRun is what exists between Start and Stop.
type unitRun struct {
	bus      *bus.Bus
	settings *settings.View
	service  lifecycle.Service
	leaving  atomic.Bool // Stop has begun

	reloading sync.Mutex // held while a configuration is taken over
	queries   *bus.Service
	bucket    *bus.Bucket
	hide      context.CancelFunc // ends the showing of the unit
	wg        sync.WaitGroup
}

// NewUnit makes a unit that has not started. Bus of parts is ignored.
func NewUnit(connect bus.Config, parts Parts, build Build) *Unit {
	u := &Unit{connect: connect, parts: parts, build: build}
	u.Switch = lifecycle.NewSwitch(u.begin, u.end)
	return u
}

func (u *Unit) begin(ctx context.Context, r *unitRun) (err error) {
	connect := u.connect
	connect.Metrics = u.parts.Metrics
	if r.bus, err = bus.Connect(ctx, connect); err != nil {
		return err
	}
	parts := u.parts
	parts.Bus = r.bus
	parts.Settings = settings.New(parts.Config, parts.Log)
	r.settings = parts.Settings
	if err := parts.Settings.Follow(ctx, r.bus); err != nil {
		return err
	}
	parts.Settings.OnChange(func(now *config.Config) { u.logAt(now) })
	service, err := u.build(parts)
	if err != nil {
		return fmt.Errorf("preparing: %w", err)
	}
	if err := service.Start(ctx); err != nil {
		return err
	}
	r.service = service
	return u.control(ctx, r)
}

func (u *Unit) end(ctx context.Context, r *unitRun) (err error) {
	r.leaving.Store(true)
	err = u.leave(ctx, r)
	if r.service != nil {
		err = errors.Join(err, r.service.Stop(ctx))
	}
	r.settings.Stop()
	if r.bus != nil {
		err = errors.Join(err, disconnect(ctx, r.bus))
	}
	return err
}

// logAt has the log hold what the configuration says.
func (u *Unit) logAt(now *config.Config) {
	if now == nil {
		return
	}
	if err := telemetry.SetLevel(u.parts.Log, LogLevel(now)); err != nil {
		u.parts.Log.Warn("changing the log level", slog.Any("error", err))
	}
}

// Busy is what the service says of itself.
func (u *Unit) Busy() string {
	if r := u.Running(); r != nil {
		if b, ok := r.service.(lifecycle.Busy); ok {
			return b.Busy()
		}
	}
	return ""
}

// Degraded is what the service says that it works without.
func (u *Unit) Degraded() string {
	if r := u.Running(); r != nil {
		if d, ok := r.service.(lifecycle.Degraded); ok {
			return d.Degraded()
		}
	}
	return ""
}

// flushLimit bounds the sending of what is still buffered when a connection is closed.
const flushLimit = 3 * time.Second

// disconnect closes the connection, also when ctx has ended: what the service sent last must go out.
func disconnect(ctx context.Context, b *bus.Bus) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushLimit)
	defer cancel()
	return b.Close(ctx)
}

// Ready says whether the service is started, its connection is up, and nobody stops it.
func (u *Unit) Ready() bool {
	r := u.Running()
	return r != nil && !r.leaving.Load() && r.bus.Ready()
}
