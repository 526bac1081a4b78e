// Package ingress is the service that clients talk to. It owns their connections: it checks who calls and what, hands chat requests to the
// pipeline, and writes back the answers that come as reply frames. It knows no provider and stores nothing.
package ingress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"

	"hydrallm/services/ingress/internal/auth"
	"hydrallm/services/ingress/internal/clientkey"
	"hydrallm/services/ingress/internal/httpapi"
	"hydrallm/services/ingress/internal/modellist"
	"hydrallm/services/ingress/internal/pending"
	"hydrallm/services/ingress/internal/toolinstall"
	"hydrallm/services/ingress/internal/transport"
	"hydrallm/shared/bus"
	"hydrallm/shared/certificate"
	"hydrallm/shared/config"
	"hydrallm/shared/decisionlog"
	"hydrallm/shared/dispatcherhealth"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/modelindex"
	"hydrallm/shared/process"
	"hydrallm/shared/query"
	"hydrallm/shared/subject"
	"hydrallm/shared/telemetry"
)

// Ingress is the service. It is a lifecycle.Service: Start listens and serves. Stop says for StopPause that the service is not ready, while it
// serves on. Then it accepts no more requests and lets those under way finish until its time is over; then their clients get an error and their
// workers are told to stop.
type Ingress struct {
	*lifecycle.Switch[run]

	cfg    Config
	bus    *bus.Bus
	log    *slog.Logger
	table  *pending.Table
	models *modellist.List

	configured atomic.Pointer[map[string]bool] // see httpapi.Config
	keeper     atomic.Pointer[certificate.Keeper]
	metrics    *httpapi.Metrics
}

// run is what exists between Start and Stop.
type run struct {
	server     *transport.Server
	decisions  *decisionlog.Log
	replies    *bus.Subscription
	fence      *bus.Subscription
	health     *dispatcherhealth.Follower
	modelIndex *modelindex.Copy
	keys       *clientkey.Book
	gate       *clientkey.Gate
	sweeper    *bus.Sweeper

	cancel context.CancelFunc // of the sweep
	giveUp context.CancelFunc // of questions to services
	wg     sync.WaitGroup
}

// New makes an ingress that has not started. It registers its metrics with reg and keeps b, which the caller owns and closes after Stop.
func New(cfg Config, b *bus.Bus, log *slog.Logger, reg prometheus.Registerer) (*Ingress, error) {
	configured := cfg.Settings != nil
	cfg.setDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("checking the configuration of the ingress: %w", err)
	}
	i := &Ingress{cfg: cfg, bus: b, log: log, models: modellist.New(cfg.Models, cfg.Providers, cfg.Automatic, time.Now())}
	i.offer(&i.cfg)
	if configured {
		cfg.Settings.OnChange(i.use)
	}
	i.table = pending.NewTable(cfg.limits(b.Repairs()), b, log, func(err error) { i.metrics.Failed(err) })
	var err error
	if i.metrics, err = httpapi.NewMetrics(reg, i.table.Len); err != nil {
		return nil, err
	}
	if err := reg.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hydrallm_ingress_certificate_expiry_timestamp_seconds", Help: "When the TLS certificate in use ends, in Unix time; 0 without TLS.",
	}, i.expiry)); err != nil {
		return nil, fmt.Errorf("registering the metrics of the ingress: %w", err)
	}
	i.Switch = lifecycle.NewSwitch(i.begin, i.end)
	return i, nil
}

// use takes over what the configuration says now of models.
func (i *Ingress) use(now *config.Config) {
	c := FromGateway(now)
	i.offer(&c)
	i.models.Choose(c.Models, c.Automatic, now.Server.Enabled)
}

// offer has requests for configured models go as c says.
func (i *Ingress) offer(c *Config) {
	names := make(map[string]bool, len(c.Models))
	for _, m := range c.Models {
		names[m.ID] = slices.Contains(c.Pipelines, m.ID)
	}
	i.configured.Store(&names)
}

// begin starts the parts of r: what receives answers first, what takes requests last.
func (i *Ingress) begin(ctx context.Context, r *run) (err error) {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	questions, giveUp := context.WithCancel(work)
	r.cancel, r.giveUp = cancel, giveUp
	r.wg.Go(func() { i.table.Run(work) })
	r.decisions = decisionlog.New(i.bus, i.log, i.metrics.Unrecorded)
	if r.replies, err = i.bus.SubscribeReplies(i.cfg.ID, i.table.Deliver); err != nil {
		return err
	}
	if r.fence, err = i.bus.ServeOwner(i.cfg.ID, i.table); err != nil {
		return err
	}
	if r.health, err = dispatcherhealth.Follow(ctx, i.bus, nil); err != nil {
		return err
	}
	i.models.Update(modelindex.NewBook()) // what was known at the last stop may be gone
	if r.modelIndex, err = modelindex.Follow(ctx, i.bus, i.models.Update); err != nil {
		return err
	}
	r.keys = clientkey.NewBook(i.log)
	if err := r.keys.Follow(ctx, i.bus); err != nil {
		return err
	}
	counts, err := i.bus.Bucket(ctx, subject.ClientCountsBucket)
	if err != nil {
		return err
	}
	r.gate = clientkey.NewGate(counts, func(ctx context.Context, clients []query.ClientSince) ([]query.ClientUsage, error) {
		return query.GetClientUsage.Ask(ctx, i.bus, clients)
	}, i.cfg.Clock, i.cfg.Zone, i.log)
	r.wg.Go(func() { r.gate.Run(work) })
	if r.sweeper, err = i.bus.Sweep(ctx); err != nil {
		return err
	}
	secure, err := i.secure(work, r)
	if err != nil {
		return err
	}
	r.server = transport.NewServer(i.cfg.MaxConns, i.log)
	api := i.api(questions, r)
	if err := r.server.Start(ctx, transport.Door{Addr: i.cfg.Addr, Sockets: i.cfg.Sockets, TLS: secure}, api.Server()); err != nil {
		r.server = nil
		return err
	}
	i.report(ctx, r.server.Addr(), api.Clients.Open())
	return nil
}

// secure gives what connections need to speak TLS, nil for none, and keeps the certificate as its files have it until ctx ends.
func (i *Ingress) secure(ctx context.Context, r *run) (*tls.Config, error) {
	if i.cfg.TLS == (certificate.Files{}) {
		return nil, nil //nolint:nilnil // no TLS is no error
	}
	keeper, err := certificate.New(i.cfg.TLS, i.log)
	if err != nil {
		return nil, err
	}
	i.keeper.Store(keeper)
	r.wg.Go(func() { keeper.Run(ctx) })
	return keeper.Config(i.cfg.MinTLS), nil
}

// expiry is when the certificate in use ends, in Unix time, or 0.
func (i *Ingress) expiry() float64 {
	if k := i.keeper.Load(); k != nil {
		return float64(k.Expiry().Unix())
	}
	return 0
}

func (i *Ingress) api(questions context.Context, r *run) *httpapi.API {
	admin := auth.NewAdmin(i.cfg.AdminKey, i.cfg.Debug, i.log)
	return httpapi.New(httpapi.Config{
		Ingress: i.cfg.ID, MaxBody: i.cfg.MaxBody, QueueTimeout: i.cfg.QueueTimeout, Lifetime: i.cfg.Lifetime, PingAfter: i.cfg.PingAfter, Models: i.models, CORSOrigins: i.cfg.CORSOrigins,
		Version: i.cfg.Version, Bus: i.bus, Pending: i.table, Decisions: r.decisions, Clients: auth.NewClients(i.cfg.ClientKeys, r.keys, auth.Access(i.cfg.ClientAccess), admin),
		ClientKeys: r.keys, Gate: r.gate, Demo: i.cfg.Demo, TrustedProxies: i.cfg.Proxies,
		Admin: admin, Configured: func() map[string]bool { return *i.configured.Load() }, AutoWeb: i.cfg.AutoWeb, Stages: i.cfg.Stages, Stores: i.cfg.Stores, Dispatchers: r.health.Dispatchers, Stopping: r.server.Stopping,
		Docs: i.cfg.Docs, ToolInstall: i.cfg.ToolInstall, Installer: toolinstall.New(i.cfg.Environ, i.cfg.local()), Settings: i.cfg.Settings, Instances: func(ctx context.Context) ([]string, error) { return process.Instances(ctx, i.bus) }, Queries: func() context.Context { return questions },
		Seal: i.cfg.sealer(), Gatherer: i.cfg.Gatherer, Metrics: i.metrics, Log: i.log, Tracer: otel.Tracer("hydrallm/services/ingress"),
	})
}

// Addr is the address on which the service listens, or nil while it is stopped.
func (i *Ingress) Addr() net.Addr {
	if r := i.Running(); r != nil {
		return r.server.Addr()
	}
	return nil
}

// report logs where the service listens, and whether it should.
func (i *Ingress) report(ctx context.Context, addr net.Addr, open bool) {
	host, _, err := net.SplitHostPort(i.cfg.Addr)
	bound, ok := addr.(*net.TCPAddr)
	if err != nil || !ok { // it listens there, on TCP
		panic(fmt.Sprintf("listening on %s: %v", i.cfg.Addr, err))
	}
	args := []any{"host", host, "port", bound.Port}
	if len(i.cfg.Sockets) > 0 {
		host = bound.IP.String()
		args = []any{"host", host, "port", bound.Port, "sockets", len(i.cfg.Sockets)}
	}
	if k := i.keeper.Load(); k != nil {
		args = append(args, "tls", true, "certificate_expires", k.Expiry().UTC().Format(time.RFC3339))
	}
	telemetry.Event(ctx, i.log, slog.LevelInfo, "server: bind", args...)
	if open && !bound.IP.IsLoopback() {
		telemetry.Event(ctx, i.log, slog.LevelWarn,
			"server: warning: anyone who reaches this address can use the gateway; set server.client_keys or bind to 127.0.0.1", "host", host)
	}
}

// end stops what there is of r.
func (i *Ingress) end(ctx context.Context, r *run) (err error) {
	if r.server != nil {
		r.server.Leave()
		select {
		case <-time.After(i.cfg.StopPause):
		case <-ctx.Done():
		}
		if err = r.server.Drain(ctx); err != nil {
			err = i.cutOff(ctx, r, err)
		}
	}
	return errors.Join(err, r.close(ctx))
}

// Busy says how many answers are under way. It is what Stop waits for, after its pause.
func (i *Ingress) Busy() string { return fmt.Sprintf("%d answers", i.table.Len()) }

// closeGrace is how long clients have to take the error that ends their answers, and the last decisions to be stored.
const closeGrace = 2 * time.Second

func (i *Ingress) cutOff(ctx context.Context, r *run, cause error) error {
	n := i.table.Len()
	i.table.FailAll(pending.ErrStopping)
	r.giveUp()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeGrace)
	defer cancel()
	if err := r.server.Drain(ctx); err != nil {
		i.log.Debug("closing connections", slog.Any("error", err))
	}
	if n == 0 {
		return nil // only connections without a request were left
	}
	return fmt.Errorf("%d answers cut off: %w", n, cause)
}

// close ends what is left of r.
func (r *run) close(ctx context.Context) error {
	r.giveUp()
	if r.server != nil {
		r.server.Close()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeGrace)
	defer cancel()
	r.decisions.Stop(ctx)
	err := errors.Join(r.fence.Stop(), r.replies.Stop())
	r.health.Stop()
	r.modelIndex.Stop()
	r.keys.Stop()
	r.sweeper.Stop()
	r.cancel()
	r.wg.Wait()
	return err
}
