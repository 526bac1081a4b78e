// Package analyzer is the service that decides which model serves a request. It takes received requests from the work stream and hands them
// on with a decision, or answers the client itself when there is nothing to decide for.
package analyzer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hydrallm/services/analyzer/internal/fleet"
	"hydrallm/services/analyzer/internal/routing"
	"hydrallm/shared/bus"
	"hydrallm/shared/config"
	"hydrallm/shared/contract"
	"hydrallm/shared/decisionlog"
	"hydrallm/shared/fault"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/modelindex"
	"hydrallm/shared/process"
	"hydrallm/shared/telemetry"
	"hydrallm/shared/topology"
)

// Config is what an analyzer needs to know.
type Config struct {
	Gateway *config.Config // models, providers, routing
}

const (
	// maxInFlight bounds the requests under way in one process; a decision takes microseconds, the rest is waiting for the next stage's
	// acknowledgement.
	maxInFlight = 1024
	// maxDeliveries is how often a request may come back before it is given up as poison.
	maxDeliveries = 10
	retryPause    = 500 * time.Millisecond
)

// Analyzer decides about requests. It is a lifecycle.Service.
type Analyzer struct {
	bus     *bus.Bus
	log     *slog.Logger
	metrics *metrics
	router  *routing.Router
	assumed map[string]contract.ProviderState // until dispatchers speak
	turn    atomic.Uint64                     // of the fast providers

	fleet      *fleet.Fleet
	modelIndex *modelindex.Copy
	decisions  *decisionlog.Log
	work       *bus.Consumer

	stopping sync.Mutex // one stop at a time
}

// New makes an analyzer that has not started. It registers its metrics with reg and keeps b, which the caller owns and closes after Stop.
func New(cfg Config, b *bus.Bus, log *slog.Logger, reg prometheus.Registerer) (*Analyzer, error) {
	m, err := newMetrics(reg)
	if err != nil {
		return nil, err
	}
	return &Analyzer{
		bus: b, log: log, metrics: m, router: routing.New(cfg.Gateway), assumed: fleet.Assume(cfg.Gateway.Providers),
	}, nil
}

// Build makes the service from what all services are built from.
func Build(p process.Parts) (lifecycle.Service, error) {
	return New(Config{Gateway: p.Config}, p.Bus, p.Log, p.Metrics)
}

// Start begins to follow the dispatchers and the discovered models, and then to take requests.
func (a *Analyzer) Start(ctx context.Context) error {
	if err := a.start(ctx); err != nil {
		return errors.Join(err, a.Stop(context.WithoutCancel(ctx)))
	}
	return nil
}

func (a *Analyzer) start(ctx context.Context) (err error) {
	if a.fleet, err = fleet.Follow(ctx, a.bus, a.assumed); err != nil {
		return err
	}
	if a.modelIndex, err = modelindex.Follow(ctx, a.bus, nil); err != nil {
		return err
	}
	a.decisions = decisionlog.New(a.bus, a.log, a.metrics.unrecorded.Inc)
	late := func(context.Context, *bus.Work) { a.metrics.count(endLate) }
	a.work, err = a.bus.ConsumeWork(ctx, bus.WorkConfig{Consumer: topology.Analyzer, MaxInFlight: maxInFlight, Refused: late}, a.handle)
	return err
}

// Stop takes no more requests and waits for those under way; what has not begun is handed back.
func (a *Analyzer) Stop(ctx context.Context) error {
	a.stopping.Lock()
	defer a.stopping.Unlock()
	err := a.work.Stop(ctx)
	a.decisions.Stop(ctx)
	err = errors.Join(err, a.modelIndex.Stop(), a.fleet.Stop())
	a.modelIndex, a.fleet = nil, nil
	return err
}

// handle settles one delivery. Doing it twice for one request is harmless: the next stage stores a forwarded request once, and the ingress
// ignores the answer to a request that it has answered.
func (a *Analyzer) handle(ctx context.Context, w *bus.Work) {
	ctx = telemetry.WithRequest(ctx, w.Request.ID)
	end, err := a.settle(ctx, w)
	a.metrics.count(end)
	if err != nil {
		a.log.WarnContext(ctx, "deciding about a request", slog.String("end", end), slog.Uint64("delivery", w.Delivery), slog.Any("error", err))
	}
}

func (a *Analyzer) settle(ctx context.Context, w *bus.Work) (end string, err error) {
	if w.Delivery > maxDeliveries {
		return endPoison, a.giveUp(ctx, w)
	}
	decision, err := a.decide(w.Request)
	if err != nil {
		f := fault.From(err)
		if err := a.refuse(ctx, w, f); err != nil {
			w.Retry(retryPause)
			return endRetry, err
		}
		w.Done()
		return refusal(f.Kind), w.Discard(ctx)
	}
	w.Request.Decision = &decision
	if decision.Configured && !w.Request.Web.Asked() { // an alias of a configured model, which is transparent
		w.Request.Slip = w.Request.Slip.Skip(contract.StageAnalyzed)
	}
	if err := w.Forward(ctx, nil); err != nil {
		w.Retry(retryPause)
		return endRetry, err
	}
	a.record(ctx, w.Request)
	return endRouted, nil
}

// decide makes the decision from what the ingress found in the request.
func (a *Analyzer) decide(r *contract.Request) (contract.Decision, error) {
	q := routing.Question{Operation: r.Operation, Model: r.Model, Tokens: r.Traits.Tokens, Needs: r.Traits.Needs(), Search: r.Web.Search}
	return a.router.Decide(q, routing.State{Providers: a.fleet.Providers(), Book: a.modelIndex.Book()}, &a.turn)
}

// record counts a decision and tells it to the session writer and, unless the model is one of the configuration, in the log. It does not wait.
func (a *Analyzer) record(ctx context.Context, r *contract.Request) {
	d := r.Decision
	a.metrics.decided(d.Reason)
	a.decisions.Note(r)
	if d.Configured {
		return
	}
	where, place := "provider", d.Provider
	if d.Agent != "" {
		where, place = "agent", d.Agent
	}
	telemetry.Event(ctx, a.log, slog.LevelInfo, "routing", "model", fault.Shown(r.Model), where, place, "target", fault.Shown(d.Model), "reason", d.Reason,
		"tokens", d.Tokens)
}

// giveUp puts a request that keeps coming back among the dead letters and tells its client.
func (a *Analyzer) giveUp(ctx context.Context, w *bus.Work) error {
	reason := fmt.Sprintf("given up after %d deliveries", w.Delivery-1)
	return errors.Join(
		errors.New(reason),
		a.refuse(ctx, w, fault.New(fault.Internal, "Internal server error")),
		w.Dead(ctx, topology.Analyzer, reason),
		w.Discard(ctx),
	)
}
