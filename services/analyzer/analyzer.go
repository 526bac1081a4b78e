// Package analyzer is the service that decides which model serves a request. It takes received requests from the work stream and hands them
// on with a decision, or answers the client itself when there is nothing to decide for.
package analyzer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hydrallm/services/analyzer/internal/routing"
	"hydrallm/shared/bus"
	"hydrallm/shared/config"
	"hydrallm/shared/fault"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/process"
	"hydrallm/shared/subject"
	"hydrallm/shared/telemetry"
	"hydrallm/shared/topology"
)

// Config is what an analyzer needs to know.
type Config struct {
	Gateway *config.Config // models
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
	bus       *bus.Bus
	log       *slog.Logger
	metrics   *metrics
	catalogue *routing.Catalogue

	work *bus.Consumer
}

// New makes an analyzer that has not started. It registers its metrics with reg and keeps b, which the caller owns and closes after Stop.
func New(cfg Config, b *bus.Bus, log *slog.Logger, reg prometheus.Registerer) (*Analyzer, error) {
	m, err := newMetrics(reg)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, model := range cfg.Gateway.Models {
		if model.Usable() {
			names = append(names, model.Name)
		}
	}
	return &Analyzer{bus: b, log: log, metrics: m, catalogue: routing.NewCatalogue(names...)}, nil
}

// Build makes the service from what all services are built from.
func Build(p process.Parts) (lifecycle.Service, error) {
	return New(Config{Gateway: p.Config}, p.Bus, p.Log, p.Metrics)
}

// Start begins to take requests.
func (a *Analyzer) Start(ctx context.Context) error {
	work, err := a.bus.ConsumeWork(ctx, bus.WorkConfig{Consumer: topology.Analyzer, MaxInFlight: maxInFlight}, a.handle)
	if err != nil {
		return err
	}
	a.work = work
	return nil
}

// Stop takes no more requests and waits for those under way; what has not begun is handed back.
func (a *Analyzer) Stop(ctx context.Context) error { return a.work.Stop(ctx) }

// handle settles one delivery. Doing it twice for one request is harmless: the next stage stores a forwarded request once, and the ingress
// ignores the answer to a request that it has answered.
func (a *Analyzer) handle(ctx context.Context, w *bus.Work) {
	ctx = telemetry.WithRequest(ctx, w.Request.ID)
	end, err := a.settle(ctx, w)
	a.metrics.count(end)
	if err != nil {
		a.log.WarnContext(ctx, "deciding about a request", slog.String("end", end), slog.Uint64("attempt", w.Attempt), slog.Any("error", err))
	}
}

func (a *Analyzer) settle(ctx context.Context, w *bus.Work) (end string, err error) {
	if time.Now().After(w.Request.StartBy) {
		return endLate, a.drop(ctx, w) // the ingress has answered 503
	}
	if w.Attempt > maxDeliveries {
		return endPoison, a.giveUp(ctx, w)
	}
	decision, err := a.catalogue.Decide(w.Request.Model)
	if err != nil {
		if err := a.refuse(ctx, w, fault.From(err)); err != nil {
			w.Retry(retryPause)
			return endRetry, err
		}
		w.Done()
		return endUnknown, w.Discard(ctx)
	}
	w.Request.Decision = &decision
	// Nothing is to be added from the web, so the request skips the enricher.
	if err := w.Forward(ctx, subject.Enriched); err != nil {
		w.Retry(retryPause)
		return endRetry, err
	}
	return endRouted, nil
}

// drop removes a request that nobody waits for.
func (a *Analyzer) drop(ctx context.Context, w *bus.Work) error {
	w.Drop()
	return w.Discard(ctx)
}

// giveUp puts a request that keeps coming back among the dead letters and tells its client.
func (a *Analyzer) giveUp(ctx context.Context, w *bus.Work) error {
	reason := fmt.Sprintf("given up after %d deliveries", w.Attempt-1)
	return errors.Join(
		errors.New(reason),
		a.refuse(ctx, w, fault.New(fault.Internal, "Internal server error")),
		w.Dead(ctx, topology.Analyzer, reason),
		w.Discard(ctx),
	)
}
