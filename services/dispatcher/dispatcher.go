// Package dispatcher is the service that calls upstreams: it takes decided requests from the work stream, walks the chain of channels,
// and streams the answer to the ingress that owns the client.
package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hydrallm/services/dispatcher/internal/breaker"
	"hydrallm/services/dispatcher/internal/discover"
	"hydrallm/services/dispatcher/internal/execute"
	"hydrallm/services/dispatcher/internal/keypool"
	"hydrallm/services/dispatcher/internal/plan"
	"hydrallm/services/dispatcher/internal/sessionheader"
	"hydrallm/services/dispatcher/internal/slot"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/services/dispatcher/internal/usage"
	"hydrallm/shared/bus"
	"hydrallm/shared/config"
	"hydrallm/shared/contract"
	"hydrallm/shared/modelindex"
	"hydrallm/shared/query"
	"hydrallm/shared/subject"
	"hydrallm/shared/telemetry"
	"hydrallm/shared/topology"
)

// Config is what a dispatcher needs to know.
type Config struct {
	ID      string         // unique among dispatchers that run at the same time; one NATS subject token
	Gateway *config.Config // providers, upstreams, models, resilience
	Version string
	Alone   bool // the only dispatcher: slots and dialogues need no shared store

	// Environ is the environment of programs that take the place of a local agent's server when that can't be reached, such as os.Environ().
	// nil: no program is run.
	Environ []string
}

// maxInFlight bounds the requests under way in one process; more wait in the stream.
const maxInFlight = 20000

// Slots that a stopping dispatcher gives back become free for others a moment later.
const (
	giveBackTime  = 250 * time.Millisecond // until a request is handed back, which may want the slot that it had
	giveBackLimit = 2 * time.Second        // for writing it, also when the time for the stop is over
)

// Dispatcher runs requests. It is a lifecycle.Service.
type Dispatcher struct {
	cfg      Config
	bus      *bus.Bus
	log      *slog.Logger
	client   *upstream.Client
	breakers *breaker.Set
	keys     map[string]*keypool.Pool // by provider
	secrets  *secrets
	slots    slot.Acquirer
	shared   *slot.Shared // slots when it is not alone
	dialects *dialects
	planner  *plan.Planner
	exec     *execute.Executor
	state    *state
	reg      prometheus.Registerer
	load     *slotMetrics // registered while the service runs
	tokens   *tokenMetrics

	mu         sync.Mutex // held while the service starts or stops
	running    bool
	usage      *usage.Recorder
	modelIndex atomic.Pointer[modelindex.Copy] // nil while the service is stopped

	// What a run of the service adds; nil before the first.
	added     *addedKeys
	discovery *discover.Runner
	prober    *keypool.Prober
	work      *bus.Consumer
	queries   *bus.Service
}

// New checks the configuration. Nothing runs before Start.
func New(cfg Config, b *bus.Bus, log *slog.Logger, reg prometheus.Registerer) (*Dispatcher, error) {
	d := &Dispatcher{cfg: cfg, bus: b, log: log, reg: reg}
	d.state = newState(cfg.ID, cfg.Gateway, b, log)
	var err error
	if d.breakers, err = newBreakers(cfg.Gateway, log, reg, func(channel string) { d.state.note(news{channel: channel}) }); err != nil {
		return nil, err
	}
	d.keys = pools(cfg.Gateway, func(provider string, r keypool.Cooldown) {
		logCooldown(log, provider, r)
		d.state.note(news{provider: provider, cooldown: r})
	})
	d.client = upstream.New(upstream.Config{UserAgent: "HydraLLM/" + cfg.Version})
	d.dialects = newDialects(d.client, cfg.Environ)
	d.planner, err = plan.New(plan.Config{Gateway: cfg.Gateway, Pools: d.keys, Book: d.models, Dialect: d.dialects.of})
	if err != nil {
		return nil, err
	}
	d.secrets = newSecrets(cfg.Gateway)
	d.exec = newExecutor(cfg, d.planner, d.breakers, d.secrets, log, reg)
	d.tokens = newTokenMetrics(cfg.Gateway, d.models)
	reg.MustRegister(d.tokens.tokens, newKeyMetrics(d.keys))
	return d, nil
}

// Start begins to take requests. It does nothing when the service runs already.
func (d *Dispatcher) Start(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running {
		return nil
	}
	if err := d.start(ctx); err != nil {
		return errors.Join(err, d.stop(ctx))
	}
	d.running = true
	return nil
}

func (d *Dispatcher) start(ctx context.Context) error {
	if err := d.share(ctx); err != nil {
		return err
	}
	models, err := modelindex.Follow(ctx, d.bus, nil)
	if err != nil {
		return err
	}
	d.modelIndex.Store(models)
	if err := d.forgetMoved(ctx); err != nil {
		return err
	}
	d.discovery = d.newDiscovery()
	d.prober = keypool.NewProber(d.keys, d.probe, d.cfg.Gateway.Resilience.ProbeInterval, d.log)
	d.added = &addedKeys{d: d}
	if err := d.added.follow(ctx); err != nil {
		return err
	}
	load := newSlotMetrics(d.slots.Active)
	if err := d.reg.Register(load); err != nil {
		return fmt.Errorf("registering the metrics of slots: %w", err)
	}
	d.load = load
	d.usage = usage.NewRecorder(d.bus)
	if d.queries, err = d.bus.Serve(ctx, d.queryConfig()); err != nil {
		return err
	}
	if d.work, err = d.bus.ConsumeWork(ctx, bus.WorkConfig{Consumer: topology.Dispatcher, MaxInFlight: maxInFlight, Refused: d.refused}, d.handle); err != nil {
		return err
	}
	if err := d.state.start(ctx); err != nil {
		return err
	}
	d.discovery.Start()
	return d.prober.Start(ctx)
}

// queryConfig is what the dispatcher answers to other services.
func (d *Dispatcher) queryConfig() bus.QueryConfig {
	h := query.Handlers{}
	query.GetStatus.Handle(h, d.status)
	query.AddKeys.Handle(h, d.added.add)
	query.ProbeKeys.Handle(h, d.probeKeys)
	query.RefreshModels.Handle(h, d.refreshModels)
	return bus.QueryConfig{Service: query.Dispatcher, Instance: d.cfg.ID, Version: d.cfg.Version, Handlers: h}
}

// share sets up what has to agree with other dispatchers: slots are counted and dialogues known in this process alone, or through the
// stores.
func (d *Dispatcher) share(ctx context.Context) error {
	d.slots, d.exec.Dialogues = &slot.Local{}, &sessionheader.Registry{}
	if !d.cfg.Alone {
		slots, err := d.bus.Bucket(ctx, subject.SlotsBucket)
		if err != nil {
			return err
		}
		dialogues, err := d.bus.Bucket(ctx, subject.DialogueBucket)
		if err != nil {
			return err
		}
		d.shared = slot.NewShared(ctx, store{slots}, slot.Config{Owner: d.cfg.ID}, d.log)
		d.slots, d.exec.Dialogues = d.shared, sessionheader.NewShared(store{dialogues}, d.log)
	}
	d.exec.Slots, d.state.breakers, d.state.keys = d.slots, d.breakers, d.keys
	return nil
}

// Busy says how many requests are being answered. Stop waits for them.
func (d *Dispatcher) Busy() string {
	if d.work == nil {
		return ""
	}
	return fmt.Sprintf("%d requests", d.work.InFlight())
}

// Stop takes no more requests, lets those under way finish until ctx ends, and hands back the rest.
func (d *Dispatcher) Stop(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.running {
		return nil
	}
	d.running = false
	return d.stop(ctx)
}

// stop ends what start began, in whole or in part.
func (d *Dispatcher) stop(ctx context.Context) error {
	errs := []error{d.state.stop(ctx), d.work.Stop(ctx), d.queries.Stop(ctx)}
	if d.usage != nil {
		d.usage.Stop()
	}
	if d.shared != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackLimit)
		defer cancel()
		errs = append(errs, d.shared.Close(ctx))
	}
	if d.discovery != nil {
		d.discovery.Stop()
		errs = append(errs, d.prober.Stop(ctx))
	}
	if d.added != nil {
		errs = append(errs, d.added.stop())
	}
	errs = append(errs, d.modelIndex.Swap(nil).Stop())
	if d.load != nil {
		d.reg.Unregister(d.load)
	}
	d.dialects.opencode.Close() // sessions at its server end with the calls
	d.client.Close()
	return errors.Join(errs...)
}

// models is what discovery knows now.
func (d *Dispatcher) models() *modelindex.Book {
	if c := d.modelIndex.Load(); c != nil {
		return c.Book()
	}
	return modelindex.NewBook()
}

// handle runs one delivery of a request.
func (d *Dispatcher) handle(ctx context.Context, w *bus.Work) {
	ctx = telemetry.WithRequest(ctx, w.Request.ID)
	if w.Request.Decision == nil {
		d.settle(ctx, w, errors.Join(w.Dead(ctx, topology.Dispatcher, "request without a decision"), w.Discard(ctx)))
		return
	}
	reply := w.OpenReply()
	defer reply.Close()
	out := d.exec.Run(ctx, execute.Job{Request: w.Request, Body: w.Body, Lost: int(w.Delivery - 1)}, reply)
	if out.HandBack {
		w.Retry(giveBackTime)
		return
	}
	d.record(ctx, w, out.Usage)
}

// refused records what the workers cost that died with a request which must not run again.
func (d *Dispatcher) refused(ctx context.Context, w *bus.Work) {
	if w.Delivery == 1 || w.Request.Decision == nil {
		return
	}
	if err := d.usage.Record(ctx, lost(w)); err != nil {
		d.log.WarnContext(ctx, "recording a lost request", slog.String("rid", w.Request.ID), slog.Any("error", err))
	}
}

// lost is the ledger entry of a request whose worker died and which nobody will finish. If its worker had recorded it before it died,
// the entry of the same id is already there and this one is ignored.
func lost(w *bus.Work) contract.RequestRecord {
	u := contract.RequestRecord{
		RequestID: w.Request.ID, SessionID: w.Request.SessionID, Endpoint: w.Request.Endpoint(), Model: w.Request.Model,
		Stream: w.Request.Stream, Status: "error: SERVICE_UNAVAILABLE", RoutingReason: w.Request.Decision.Reason,
		LatencyMS: time.Since(w.Request.ReceivedAt).Milliseconds(), At: time.Now().UTC(),
	}
	for range w.Delivery - 1 {
		u.Attempts = append(u.Attempts, contract.Attempt{Outcome: "lost", Reason: "worker died"})
	}
	return u
}

// record stores the usage and then settles the request. Its answer is out already; nobody waits here.
func (d *Dispatcher) record(ctx context.Context, w *bus.Work, u contract.RequestRecord) {
	// The client's leaving must not lose the ledger entry of what it cost.
	ctx = context.WithoutCancel(ctx)
	d.tokens.count(&u)
	err := d.usage.Record(ctx, u)
	d.settle(ctx, w, errors.Join(err, w.Discard(ctx)))
}

func (d *Dispatcher) settle(ctx context.Context, w *bus.Work, err error) {
	if err != nil {
		d.log.WarnContext(ctx, "closing a request", slog.Any("error", err))
	}
	w.Done()
}
