// Package enricher is the service between decision and execution. It takes analyzed requests from the work stream and hands them on. It
// never fails a request and never changes the decision.
package enricher

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hydrallm/services/enricher/internal/intent"
	"hydrallm/shared/bus"
	"hydrallm/shared/config"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/process"
	"hydrallm/shared/query"
	"hydrallm/shared/telemetry"
	"hydrallm/shared/topology"
)

const (
	maxInFlight = 1024 // requests under way in one process
	retryPause  = 500 * time.Millisecond
)

// Config says who an enricher is and how it works.
type Config struct {
	ID      string // unique among all processes; one NATS subject token
	Version string // of the program
	Web     config.Web
}

// Enricher hands requests on. It is a lifecycle.Service: Start begins to take requests; Stop takes no more and waits for those under way, what
// has not begun is handed back.
type Enricher struct {
	*lifecycle.Switch[run]

	cfg      Config
	bus      *bus.Bus
	log      *slog.Logger
	handled  *prometheus.CounterVec
	intent   *intent.Classifier // tells which questions need the web
	keywords *intent.Keywords
}

// run is what exists between Start and Stop.
type run struct {
	queries *bus.Service
	work    *bus.Consumer
}

// Ends of a delivery, as the label of the metric.
const (
	endForwarded = "forwarded" // handed on
	endLate      = "late"      // nobody waits any more
	endRetry     = "retry"     // handed back
)

// New makes an enricher that has not started. It registers its metrics with reg and keeps b, which the caller owns and closes after Stop.
func New(cfg Config, b *bus.Bus, log *slog.Logger, reg prometheus.Registerer) (*Enricher, error) {
	handled := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "hydrallm", Subsystem: "enricher", Name: "requests_total", Help: "Deliveries of requests by what the enricher did with them.",
	}, []string{"end"})
	for _, end := range []string{endForwarded, endLate, endRetry} {
		handled.WithLabelValues(end) // shown as 0 from the start
	}
	if err := reg.Register(handled); err != nil {
		return nil, fmt.Errorf("registering the metrics of the enricher: %w", err)
	}
	classifier, err := intent.New(cfg.Web.Intent, log)
	if err != nil {
		return nil, err
	}
	keywords, err := intent.NewKeywords(b, cfg.Web.Intent, classifier, log)
	if err != nil {
		return nil, err
	}
	e := &Enricher{cfg: cfg, bus: b, log: log, handled: handled, intent: classifier, keywords: keywords}
	e.Switch = lifecycle.NewSwitch(e.begin, e.end)
	return e, nil
}

// Build makes the service from what all services are built from.
func Build(p process.Parts) (lifecycle.Service, error) {
	return New(Config{ID: p.ID, Version: p.Version, Web: p.Config.Web}, p.Bus, p.Log, p.Metrics)
}

func (e *Enricher) begin(ctx context.Context, r *run) (err error) {
	if err := e.intent.Start(ctx); err != nil {
		return err
	}
	if err := e.keywords.Start(ctx); err != nil {
		return err
	}
	h := query.Handlers{}
	e.keywords.Handle(h)
	if r.queries, err = e.bus.Serve(ctx, bus.QueryConfig{Service: query.Enricher, Instance: e.cfg.ID, Version: e.cfg.Version, Handlers: h}); err != nil {
		return err
	}
	late := func(context.Context, *bus.Work) { e.handled.WithLabelValues(endLate).Inc() }
	r.work, err = e.bus.ConsumeWork(ctx, bus.WorkConfig{Consumer: topology.Enricher, MaxInFlight: maxInFlight, Refused: late}, e.handle)
	return err
}

func (e *Enricher) end(ctx context.Context, r *run) error {
	return errors.Join(r.work.Stop(ctx), r.queries.Stop(ctx), e.keywords.Stop(ctx), e.intent.Stop(ctx))
}

// handle settles one delivery. Doing it twice is harmless: the next stage stores a forwarded request once.
func (e *Enricher) handle(ctx context.Context, w *bus.Work) {
	ctx = telemetry.WithRequest(ctx, w.Request.ID)
	end, err := e.settle(ctx, w)
	e.handled.WithLabelValues(end).Inc()
	if err != nil {
		e.log.WarnContext(ctx, "handing a request on", slog.String("end", end), slog.Uint64("delivery", w.Delivery), slog.Any("error", err))
	}
}

func (e *Enricher) settle(ctx context.Context, w *bus.Work) (end string, err error) {
	if err := w.Forward(ctx, nil); err != nil {
		w.Retry(retryPause)
		return endRetry, err
	}
	return endForwarded, nil
}
