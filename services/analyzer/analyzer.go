// Package analyzer is the service that decides which model serves a request. It takes received requests from the work stream and hands them
// on with a decision, or answers the client itself when there is nothing to decide for.
package analyzer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hydrallm/services/analyzer/internal/routing"
	"hydrallm/shared/bus"
	"hydrallm/shared/config"
	"hydrallm/shared/contract"
	"hydrallm/shared/decisionlog"
	"hydrallm/shared/dispatcherhealth"
	"hydrallm/shared/fault"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/modelindex"
	"hydrallm/shared/process"
	"hydrallm/shared/settings"
	"hydrallm/shared/telemetry"
	"hydrallm/shared/topology"
)

// Config is what an analyzer needs to know.
type Config struct {
	Gateway  *config.Config // models, providers, routing
	Settings *settings.View // the same as it is now; nil = it does not change
}

const (
	// maxInFlight bounds the requests under way in one process; a decision takes microseconds, the rest is waiting for the next stage's
	// acknowledgement.
	maxInFlight = 1024
	// maxDeliveries is how often a request may come back before it is given up as poison.
	maxDeliveries = 10
	retryPause    = 500 * time.Millisecond
)

// Analyzer decides about requests. It is a lifecycle.Service: Start begins to follow the dispatchers and the discovered models, and then to take
// requests; Stop takes no more and waits for those under way, what has not begun is handed back.
type Analyzer struct {
	*lifecycle.Switch[run]

	bus     *bus.Bus
	log     *slog.Logger
	metrics *metrics
	rules   atomic.Pointer[rules]
	assumed map[string]contract.ProviderState // until dispatchers speak
	turn    atomic.Uint64                     // of the fast providers
}

// rules are what a configuration says of decisions. They are never changed.
type rules struct {
	*routing.Router

	pipeline map[string]bool // configured models that get text from the web unasked (C-03)
}

func newRules(c *config.Config) *rules {
	r := &rules{Router: routing.New(c), pipeline: map[string]bool{}}
	for _, m := range c.Models {
		r.pipeline[m.Name] = m.Pipeline
	}
	return r
}

// run is what exists between Start and Stop.
type run struct {
	analyzer   *Analyzer
	health     *dispatcherhealth.Follower
	modelIndex *modelindex.Copy
	decisions  *decisionlog.Log
	work       *bus.Consumer
}

// New makes an analyzer that has not started. It registers its metrics with reg and keeps b, which the caller owns and closes after Stop.
func New(cfg Config, b *bus.Bus, log *slog.Logger, reg prometheus.Registerer) (*Analyzer, error) {
	m, err := newMetrics(reg)
	if err != nil {
		return nil, err
	}
	if cfg.Settings == nil {
		cfg.Settings = settings.New(cfg.Gateway, log)
	}
	a := &Analyzer{
		bus: b, log: log, metrics: m, assumed: dispatcherhealth.Assume(cfg.Gateway.Providers),
	}
	cfg.Settings.OnChange(func(now *config.Config) { a.rules.Store(newRules(now)) })
	a.Switch = lifecycle.NewSwitch(a.begin, a.end)
	return a, nil
}

// Build makes the service from what all services are built from.
func Build(p process.Parts) (lifecycle.Service, error) {
	return New(Config{Gateway: p.Config, Settings: p.Settings}, p.Bus, p.Log, p.Metrics)
}

func (a *Analyzer) begin(ctx context.Context, r *run) (err error) {
	r.analyzer = a
	if r.health, err = dispatcherhealth.Follow(ctx, a.bus, a.assumed); err != nil {
		return err
	}
	if r.modelIndex, err = modelindex.Follow(ctx, a.bus, nil); err != nil {
		return err
	}
	r.decisions = decisionlog.New(a.bus, a.log, a.metrics.unrecorded.Inc)
	late := func(context.Context, *bus.Work) { a.metrics.count(endLate) }
	r.work, err = a.bus.ConsumeWork(ctx, bus.WorkConfig{Consumer: topology.Analyzer, MaxInFlight: maxInFlight, Refused: late}, r.handle)
	return err
}

func (a *Analyzer) end(ctx context.Context, r *run) error {
	err := r.work.Stop(ctx)
	r.decisions.Stop(ctx)
	r.modelIndex.Stop()
	r.health.Stop()
	return err
}

// handle settles one delivery. Doing it twice for one request is harmless: the next stage stores a forwarded request once, and the ingress
// ignores the answer to a request that it has answered.
func (r *run) handle(ctx context.Context, w *bus.Work) {
	a := r.analyzer
	ctx = telemetry.WithRequest(ctx, w.Request.ID)
	end, err := r.settle(ctx, w)
	a.metrics.count(end)
	if err != nil {
		a.log.WarnContext(ctx, "deciding about a request", slog.String("end", end), slog.Uint64("delivery", w.Delivery), slog.Any("error", err))
	}
}

func (r *run) settle(ctx context.Context, w *bus.Work) (end string, err error) {
	if len(w.Lost) >= maxDeliveries {
		return endPoison, r.analyzer.giveUp(ctx, w)
	}
	decision, err := r.decide(w.Request)
	if err != nil {
		f := fault.From(err)
		if err := w.Refuse(ctx, f); err != nil {
			w.Retry(retryPause)
			return endRetry, err
		}
		w.Done()
		return refusal(f.Kind), w.Discard(ctx)
	}
	w.Request.Decision = &decision
	if decision.Configured && !r.analyzer.rules.Load().pipeline[decision.Model] && !w.Request.Web.Asked() { // an alias of a configured model, which is transparent
		w.Request.Slip = w.Request.Slip.Skip(contract.StageAnalyzed)
	}
	if err := w.Forward(ctx, nil); err != nil {
		w.Retry(retryPause)
		return endRetry, err
	}
	r.record(ctx, w.Request)
	return endRouted, nil
}

// decide makes the decision from what the ingress found in the request.
func (r *run) decide(req *contract.Request) (contract.Decision, error) {
	q := routing.Question{Operation: req.Operation, Model: req.Model, Tokens: req.Traits.Tokens, Needs: req.Traits.Needs(), Search: req.Web.Search}
	return r.analyzer.rules.Load().Decide(q, routing.State{Providers: r.health.Providers(), Book: r.modelIndex.Book()}, &r.analyzer.turn)
}

// record counts a decision and tells it to the session writer and, unless the model is one of the configuration, in the log. It does not wait.
func (r *run) record(ctx context.Context, req *contract.Request) {
	d := req.Decision
	r.analyzer.metrics.decided(d.Reason)
	r.decisions.Note(req)
	if d.Configured {
		return
	}
	where, place := "provider", d.Provider
	if d.Agent != "" {
		where, place = "agent", d.Agent
	}
	telemetry.Event(ctx, r.analyzer.log, slog.LevelInfo, "routing", "model", fault.Shown(req.Model), where, place, "target", fault.Shown(d.Model), "reason", d.Reason,
		"tokens", d.Tokens)
}

// giveUp puts a request that keeps coming back among the dead letters and tells its client.
func (a *Analyzer) giveUp(ctx context.Context, w *bus.Work) error {
	reason := fmt.Sprintf("given up after %d deliveries", len(w.Lost))
	return errors.Join(
		errors.New(reason),
		w.Refuse(ctx, fault.New(fault.Internal, "Internal server error")),
		w.Dead(ctx, topology.Analyzer, reason),
		w.Discard(ctx),
	)
}
