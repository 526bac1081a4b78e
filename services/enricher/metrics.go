package enricher

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
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
	seconds    prometheus.Histogram
	characters prometheus.Counter
	unrecorded prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	const namespace, subsystem = "hydrallm", "enricher"
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "requests_total", Help: "Deliveries of requests by what the enricher did with them.",
		}, []string{"end"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "seconds", Help: "How long a request was in the hands of the enricher.",
			Buckets: []float64{.001, .005, .025, .1, .25, .5, 1, 2.5, 5, 10, 20, 45, 90},
		}),
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
	for _, c := range []prometheus.Collector{m.requests, m.seconds, m.characters, m.unrecorded} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("registering the metrics of the enricher: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) count(end string) { m.requests.WithLabelValues(end).Inc() }
