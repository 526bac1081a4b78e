// Package dispatcher is the service that calls upstreams: it takes decided requests from the work stream, walks the chain of channels,
// and streams the answer to the ingress that owns the client.
package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hydrallm/services/dispatcher/internal/breaker"
	"hydrallm/services/dispatcher/internal/commlog"
	"hydrallm/services/dispatcher/internal/execute"
	"hydrallm/services/dispatcher/internal/keypool"
	"hydrallm/services/dispatcher/internal/plan"
	"hydrallm/services/dispatcher/internal/queue"
	"hydrallm/services/dispatcher/internal/slot"
	"hydrallm/services/dispatcher/internal/systemcontext"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/bus"
	"hydrallm/shared/config"
	"hydrallm/shared/contract"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/modelindex"
	"hydrallm/shared/settings"
	"hydrallm/shared/telemetry"
	"hydrallm/shared/topology"
)

// Config is what a dispatcher needs to know.
type Config struct {
	ID      string         // unique among dispatchers that run at the same time; one NATS subject token
	Gateway *config.Config // providers, upstreams, models, resilience

	Settings *settings.View // the same as it is now; nil = it does not change
	Version  string
	Alone    bool // the only dispatcher: slots and dialogues need no shared store

	// Environ is the environment of programs that take the place of a local agent's server when that can't be reached, such as os.Environ().
	// nil: no program is run.
	Environ []string
}

// maxInFlight bounds the requests under way in one process; more wait in the stream.
const maxInFlight = 20000

// Slots that a stopping dispatcher gives back become free for others a moment later.
const (
	giveBackTime  = 250 * time.Millisecond // until a request is handed back, which may want the slot that it had
	giveBackLimit = 10 * time.Second       // for writing it,
	giveBackLeast = 2 * time.Second        // also when the time for the stop is over
)

// givingBack is the time for what a stopping dispatcher gives back.
func givingBack(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := giveBackLeast
	if end, ok := ctx.Deadline(); ok {
		limit = min(max(time.Until(end), giveBackLeast), giveBackLimit)
	}
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}

// Dispatcher runs requests. It is a lifecycle.Service: Start begins to take requests; Stop takes no more, lets those under way finish until its
// time is over, and hands back the rest. What is learnt of channels and keys outlives a stop.
type Dispatcher struct {
	*lifecycle.Switch[run]

	cfg        Config
	bus        *bus.Bus
	log        *slog.Logger
	client     *upstream.Client
	breakers   *breaker.Set
	keys       map[string]*keypool.Pool // by provider
	secrets    *secrets
	dialects   *dialects
	planner    *plan.Planner
	exec       *execute.Executor // but for what each run adds
	using      atomic.Pointer[config.Config]
	front      atomic.Pointer[systemcontext.Context]
	comm       *commlog.Log
	news       chan news
	modelIndex atomic.Pointer[modelindex.Copy] // nil while the service is stopped
}

// New checks the configuration. Nothing runs before Start.
func New(cfg Config, b *bus.Bus, log *slog.Logger, reg prometheus.Registerer) (*Dispatcher, error) {
	if cfg.Settings == nil {
		cfg.Settings = settings.New(cfg.Gateway, log)
	}
	d := &Dispatcher{cfg: cfg, bus: b, log: log, news: make(chan news, newsQueue)}
	d.Switch = lifecycle.NewSwitch(d.begin, d.end)
	if err := errors.Join(reg.Register(newSlotMetrics(d.gateway, d.slots)), reg.Register(newQueueMetrics(d.gateway, d.queues))); err != nil {
		return nil, fmt.Errorf("registering the metrics of slots: %w", err)
	}
	var err error
	if d.breakers, err = newBreakers(cfg.Gateway, log, reg, func(channel string) { d.note(news{channel: channel}) }); err != nil {
		return nil, err
	}
	rests := newRests(cfg.Gateway, reg)
	d.keys = pools(cfg.Gateway, func(provider string, r keypool.Cooldown) {
		if !r.Until.IsZero() {
			rests.WithLabelValues(provider, string(r.Class)).Inc()
			logCooldown(log, provider, r)
		}
		d.note(news{provider: provider, index: r.Index, model: r.Model})
	})
	d.client = upstream.New(upstream.Config{UserAgent: "HydraLLM/" + cfg.Version})
	if d.dialects, err = newDialects(cfg.Gateway.Providers, d.client, cfg.Environ); err != nil {
		return nil, err
	}
	d.planner, err = plan.New(plan.Config{Gateway: cfg.Gateway, Pools: d.keys, Book: d.models, Dialect: d.dialects.of})
	if err != nil {
		return nil, err
	}
	d.secrets = newSecrets(cfg.Gateway)
	d.exec = newExecutor(cfg, d.planner, d.breakers, d.secrets, log, execute.NewMetrics(reg, d.knows))
	d.exec.Front = func(r *contract.Request, at time.Time) []byte { return d.front.Load().Message(r, at) }
	d.using.Store(cfg.Gateway)
	d.comm = commlog.New(func() bool { return cfg.Settings.Config().Log.Communication })
	d.exec.Comm = d.comm
	reg.MustRegister(newKeyMetrics(d.keys), newBreakerMetrics(d.gateway, d.breakers))
	cfg.Settings.OnChange(d.use)
	return d, nil
}

// models is what discovery knows now.
func (d *Dispatcher) models() *modelindex.Book {
	if c := d.modelIndex.Load(); c != nil {
		return c.Book()
	}
	return modelindex.NewBook()
}

// knows tells the models that have label values of their own: those of upstreams, and those that are discovered.
func (d *Dispatcher) knows(provider, model string) bool {
	if _, discovered := d.models().Find(provider, model); discovered {
		return true
	}
	return slices.ContainsFunc(d.gateway().Upstreams, func(u config.Upstream) bool { return u.Provider == provider && u.Model == model })
}

// Busy says how many requests are being answered. Stop waits for them.
func (d *Dispatcher) Busy() string {
	if r := d.Running(); r != nil {
		return fmt.Sprintf("%d requests", r.work.InFlight())
	}
	return ""
}

// slots are those of a dispatcher that runs; nil for one that does not.
func (d *Dispatcher) slots() slot.Acquirer {
	if r := d.Running(); r != nil {
		return r.slots
	}
	return nil
}

// queues are those of a dispatcher that runs; nil for one that does not.
func (d *Dispatcher) queues() *queue.Set {
	if r := d.Running(); r != nil {
		return r.waits.set
	}
	return nil
}

// handle runs one delivery of a request.
func (r *run) handle(ctx context.Context, w *bus.Work) {
	ctx = telemetry.WithRequest(ctx, w.Request.ID)
	if w.Request.Decision == nil {
		r.settle(ctx, w, errors.Join(w.Dead(ctx, topology.Dispatcher, "request without a decision"), w.Discard(ctx)))
		return
	}
	reply := w.OpenReply()
	defer reply.Close()
	out := r.exec.Run(ctx, execute.Job{Request: w.Request, Body: w.Body, Delivery: w.Delivery, Lost: w.Lost, Waits: w.Yield}, reply)
	// The client's leaving, or a stop, must not lose the ledger entry of what it cost.
	ctx = context.WithoutCancel(ctx)
	err := r.usage.Record(ctx, closed(out.Usage, w.Delivery))
	if out.HandBack {
		r.warn(ctx, err)
		w.HandBack(giveBackTime)
		return
	}
	r.settle(ctx, w, errors.Join(err, w.Discard(ctx)))
}

// closed is the record of a delivery that is over. If it made no call the record says so, or the delivery would pass for one that was lost if it came
// back.
func closed(u contract.RequestRecord, delivery uint64) contract.RequestRecord {
	if n := len(u.Attempts); n == 0 || u.Attempts[n-1].Delivery != delivery {
		u.Attempts = append(u.Attempts, contract.Attempt{Delivery: delivery, Ordinal: 1, Outcome: contract.CallNone})
	}
	return u
}

// refused records what the workers cost that died with a request which must not run again.
func (r *run) refused(ctx context.Context, w *bus.Work) {
	if len(w.Lost) == 0 || w.Request.Decision == nil {
		return
	}
	if err := r.usage.Record(ctx, lost(ctx, w)); err != nil {
		r.d.log.WarnContext(ctx, "recording a lost request", slog.String("rid", w.Request.ID), slog.Any("error", err))
	}
}

// lost is the ledger entry of a request whose worker died and which nobody will finish. If its worker had recorded it before it died,
// the entry of the same id is already there and this one is ignored.
func lost(ctx context.Context, w *bus.Work) contract.RequestRecord {
	return contract.RequestRecord{
		RequestID: w.Request.ID, TraceID: telemetry.TraceID(ctx), SessionID: w.Request.SessionID, Principal: w.Request.Principal, Endpoint: w.Request.Endpoint(), Model: w.Request.Model,
		Stream: w.Request.Stream, Status: "error: SERVICE_UNAVAILABLE", RoutingReason: w.Request.Decision.Reason,
		LatencyMS: time.Since(w.Request.ReceivedAt).Milliseconds(), Attempts: contract.LostCalls(w.Lost), At: time.Now().UTC(),
	}
}

// settle closes a request. Its answer is out already; nobody waits here.
func (r *run) settle(ctx context.Context, w *bus.Work, err error) {
	r.warn(ctx, err)
	w.Done()
}

func (r *run) warn(ctx context.Context, err error) {
	if err != nil {
		r.d.log.WarnContext(ctx, "closing a request", slog.Any("error", err))
	}
}
