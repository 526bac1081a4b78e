package enricher

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hydrallm/shared/contract"
)

// Ends of a delivery, as the label of the metric.
const (
	endInjected  = "injected"  // handed on with text from the web
	endForwarded = "forwarded" // handed on as it came
	endLate      = "late"      // nobody waits any more
	endRetry     = "retry"     // handed back
)

// metrics are those of the stage.
type metrics struct {
	requests   *prometheus.CounterVec
	visits     *prometheus.HistogramVec // by kind and status
	characters prometheus.Counter
	unrecorded prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	const namespace, subsystem = "hydrallm", "enricher"
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "requests_total", Help: "Deliveries of requests by what the enricher did with them.",
		}, []string{"end"}),
		visits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "visit_seconds", Help: "Duration of reading a page and of searching.",
			Buckets: []float64{.001, .005, .025, .1, .25, .5, 1, 2.5, 5, 10, 20, 45, 90},
		}, []string{"kind", "status"}),
		characters: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "injected_characters_total", Help: "Characters of text from the web that were put into requests.",
		}),
		unrecorded: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "unrecorded_total", Help: "Events WEB_ENRICH that could not be stored.",
		}),
	}
	for _, end := range []string{endInjected, endForwarded, endLate, endRetry} {
		m.requests.WithLabelValues(end) // shown as 0 from the start
	}
	for _, kind := range []contract.VisitKind{contract.VisitFetch, contract.VisitSearch} {
		for _, status := range []contract.VisitStatus{contract.VisitSuccess, contract.VisitCacheHit, contract.VisitFailed, contract.VisitError} {
			m.visits.WithLabelValues(string(kind), string(status))
		}
	}
	for _, c := range []prometheus.Collector{m.requests, m.visits, m.characters, m.unrecorded} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("registering the metrics of the enricher: %w", err)
		}
	}
	return m, nil
}

// visited takes in what was fetched and searched for a request.
func (m *metrics) visited(visits []contract.Visit) {
	for i := range visits {
		v := &visits[i]
		m.visits.WithLabelValues(string(v.Kind), string(v.Status)).Observe((time.Duration(v.LatencyMS) * time.Millisecond).Seconds())
	}
}

func (m *metrics) count(end string) { m.requests.WithLabelValues(end).Inc() }
