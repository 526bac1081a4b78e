// Package enricher is the service between decision and execution. It takes analyzed requests from the work stream and hands them on. It
// never fails a request and never changes the decision.
package enricher

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hydrallm/shared/bus"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/process"
	"hydrallm/shared/telemetry"
	"hydrallm/shared/topology"
)

const (
	maxInFlight = 1024 // requests under way in one process
	retryPause  = 500 * time.Millisecond
)

// Enricher hands requests on. It is a lifecycle.Service: Start begins to take requests; Stop takes no more and waits for those under way, what
// has not begun is handed back.
type Enricher struct {
	*lifecycle.Switch[run]

	bus     *bus.Bus
	log     *slog.Logger
	handled *prometheus.CounterVec
}

// run is what exists between Start and Stop.
type run struct{ work *bus.Consumer }

// Ends of a delivery, as the label of the metric.
const (
	endForwarded = "forwarded" // handed on
	endLate      = "late"      // nobody waits any more
	endRetry     = "retry"     // handed back
)

// New makes an enricher that has not started. It registers its metrics with reg and keeps b, which the caller owns and closes after Stop.
func New(b *bus.Bus, log *slog.Logger, reg prometheus.Registerer) (*Enricher, error) {
	handled := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "hydrallm", Subsystem: "enricher", Name: "requests_total", Help: "Deliveries of requests by what the enricher did with them.",
	}, []string{"end"})
	for _, end := range []string{endForwarded, endLate, endRetry} {
		handled.WithLabelValues(end) // shown as 0 from the start
	}
	if err := reg.Register(handled); err != nil {
		return nil, fmt.Errorf("registering the metrics of the enricher: %w", err)
	}
	e := &Enricher{bus: b, log: log, handled: handled}
	e.Switch = lifecycle.NewSwitch(e.begin, e.end)
	return e, nil
}

// Build makes the service from what all services are built from.
func Build(p process.Parts) (lifecycle.Service, error) { return New(p.Bus, p.Log, p.Metrics) }

func (e *Enricher) begin(ctx context.Context, r *run) (err error) {
	late := func(context.Context, *bus.Work) { e.handled.WithLabelValues(endLate).Inc() }
	r.work, err = e.bus.ConsumeWork(ctx, bus.WorkConfig{Consumer: topology.Enricher, MaxInFlight: maxInFlight, Refused: late}, e.handle)
	return err
}

func (e *Enricher) end(ctx context.Context, r *run) error { return r.work.Stop(ctx) }

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
