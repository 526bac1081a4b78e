// Package enricher is the service between decision and execution: it adds text from the web to requests that need it. It never fails a request and never
// changes the decision.
package enricher

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hydrallm/services/enricher/internal/enrich"
	"hydrallm/services/enricher/internal/intent"
	"hydrallm/shared/bus"
	"hydrallm/shared/config"
	"hydrallm/shared/contract"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/process"
	"hydrallm/shared/query"
	"hydrallm/shared/telemetry"
	"hydrallm/shared/topology"
)

const (
	// maxInFlight bounds the memory of requests under way in one process. What they wait for, places of the fetcher and of the browser, has limits of its
	// own.
	maxInFlight = 1024
	// maxLost is how many workers may be lost with a request before it is handed on as it is: its pages may be why.
	maxLost    = 2
	retryPause = 500 * time.Millisecond
)

// Config says who an enricher is and how it works.
type Config struct {
	ID      string // unique among all processes; one NATS subject token
	Version string // of the program
	Web     config.Web
	Locale  func() string // of the words around the text, as it is now: en | ko; nil = en
}

// Enricher adds text from the web to requests. It is a lifecycle.Service: Start begins to take requests; Stop takes no more and waits for those under
// way, what has not begun is handed back.
type Enricher struct {
	*lifecycle.Switch[run]

	cfg      Config
	bus      *bus.Bus
	log      *slog.Logger
	metrics  *metrics
	intent   *intent.Classifier // tells which questions need the web
	keywords *intent.Keywords
}

// run is what exists between Start and Stop.
type run struct {
	enricher *Enricher
	backend  *backend
	web      *enrich.Enricher
	queries  *bus.Service
	work     *bus.Consumer
}

// New makes an enricher that has not started. It registers its metrics with reg and keeps b, which the caller owns and closes after Stop.
func New(cfg Config, b *bus.Bus, log *slog.Logger, reg prometheus.Registerer) (*Enricher, error) {
	m, err := newMetrics(reg)
	if err != nil {
		return nil, err
	}
	classifier, err := intent.New(cfg.Web.Intent, log)
	if err != nil {
		return nil, err
	}
	keywords, err := intent.NewKeywords(b, cfg.Web.Intent, classifier, log)
	if err != nil {
		return nil, err
	}
	e := &Enricher{cfg: cfg, bus: b, log: log, metrics: m, intent: classifier, keywords: keywords}
	e.Switch = lifecycle.NewSwitch(e.begin, e.end)
	return e, nil
}

// Build makes the service from what all services are built from.
func Build(p process.Parts) (lifecycle.Service, error) {
	return New(Config{ID: p.ID, Version: p.Version, Web: p.Config.Web, Locale: func() string { return p.Settings.Config().Server.Locale }}, p.Bus, p.Log, p.Metrics)
}

func (e *Enricher) begin(ctx context.Context, r *run) (err error) {
	r.enricher = e
	if r.backend, err = startBackend(ctx, e.bus, &e.cfg.Web, e.cfg.Version, e.log); err != nil {
		return err
	}
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
	r.web = enrich.New(enrich.Config{Web: e.cfg.Web, Locale: e.cfg.Locale}, r.backend, e.intent, e.log)
	late := func(context.Context, *bus.Work) { e.metrics.count(endLate) }
	r.work, err = e.bus.ConsumeWork(ctx, bus.WorkConfig{Consumer: topology.Enricher, MaxInFlight: maxInFlight, Refused: late}, r.handle)
	return err
}

func (e *Enricher) end(ctx context.Context, r *run) error {
	return errors.Join(r.work.Stop(ctx), r.queries.Stop(ctx), e.keywords.Stop(ctx), e.intent.Stop(ctx), r.backend.stop(ctx))
}

// handle settles one delivery. Doing it twice is harmless: the next stage stores a forwarded request once.
func (r *run) handle(ctx context.Context, w *bus.Work) {
	e := r.enricher
	ctx = telemetry.WithRequest(ctx, w.Request.ID)
	end, err := r.settle(ctx, w)
	e.metrics.count(end)
	if err != nil {
		e.log.WarnContext(ctx, "handing a request on", slog.String("end", end), slog.Uint64("delivery", w.Delivery), slog.Any("error", err))
	}
}

func (r *run) settle(ctx context.Context, w *bus.Work) (end string, err error) {
	began := time.Now()
	added := r.added(ctx, w)
	took := time.Since(began)
	r.enricher.metrics.visited(added.Visits)
	w.Request.WebParts = contract.WebParts(added.Visits)
	if added.Body != nil && ctx.Err() == nil { // told before the answer can be there
		telemetry.Line(ctx, r.enricher.log, enrich.LogLine(added.Chars, w.Request.SessionID))
	}
	if err := w.Forward(ctx, added.Body); err != nil {
		w.Retry(retryPause)
		return endRetry, err
	}
	r.enricher.record(ctx, w, &added, took)
	if added.Body == nil {
		return endForwarded, nil
	}
	return endInjected, nil
}

// added gives what there is to add to a request.
func (r *run) added(ctx context.Context, w *bus.Work) enrich.Result {
	if len(w.Lost) >= maxLost {
		return enrich.Result{}
	}
	return r.web.Enrich(ctx, w.Request, w.Body)
}
