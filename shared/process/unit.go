package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hydrallm/shared/bus"
	"hydrallm/shared/config"
	"hydrallm/shared/lifecycle"
)

// Parts is what a service is built from.
type Parts struct {
	ID      string         // unique among all processes; one NATS subject token
	Config  *config.Config // of the whole gateway
	Version string
	Bus     *bus.Bus // connected; the unit closes it after the service has stopped
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Build makes a service that has not started.
type Build func(Parts) (lifecycle.Service, error)

// Unit is a service together with its own connection to NATS, the same whether it shares its process or has one for itself.
type Unit struct {
	connect bus.Config
	parts   Parts
	build   Build

	bus     atomic.Pointer[bus.Bus]
	service lifecycle.Service
}

// NewUnit makes a unit that has not started. Bus of parts is ignored.
func NewUnit(connect bus.Config, parts Parts, build Build) *Unit {
	return &Unit{connect: connect, parts: parts, build: build}
}

// Start connects, builds the service and starts it.
func (u *Unit) Start(ctx context.Context) error {
	b, err := bus.Connect(ctx, u.connect)
	if err != nil {
		return err
	}
	u.parts.Bus = b
	service, err := u.build(u.parts)
	if err != nil {
		return errors.Join(fmt.Errorf("preparing: %w", err), disconnect(ctx, b))
	}
	if err := service.Start(ctx); err != nil {
		return errors.Join(err, disconnect(ctx, b))
	}
	u.service = service
	u.bus.Store(b)
	return nil
}

// Stop stops the service and then closes the connection.
func (u *Unit) Stop(ctx context.Context) error {
	b := u.bus.Swap(nil)
	if b == nil {
		return nil
	}
	return errors.Join(u.service.Stop(ctx), disconnect(ctx, b))
}

// flushLimit bounds the sending of what is still buffered when a connection is closed.
const flushLimit = 3 * time.Second

// disconnect closes the connection, also when ctx has ended: what the service sent last must go out.
func disconnect(ctx context.Context, b *bus.Bus) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushLimit)
	defer cancel()
	return b.Close(ctx)
}

// Ready says whether the service is started and its connection is up.
func (u *Unit) Ready() bool {
	b := u.bus.Load()
	return b != nil && b.Ready()
}
