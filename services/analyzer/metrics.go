package analyzer

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Ends of a delivery, as the label of the metric.
const (
	endRouted  = "routed"    // forwarded with a decision
	endUnknown = "not_found" // answered 404
	endLate    = "late"      // nobody waits any more
	endPoison  = "poison"    // given up
	endRetry   = "retry"     // handed back
)

type metrics struct{ requests *prometheus.CounterVec }

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{requests: prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "hydrallm", Subsystem: "analyzer", Name: "requests_total", Help: "Deliveries of requests by what the analyzer did with them.",
	}, []string{"end"})}
	for _, end := range []string{endRouted, endUnknown, endLate, endPoison, endRetry} {
		m.requests.WithLabelValues(end) // shown as 0 from the start
	}
	if err := reg.Register(m.requests); err != nil {
		return nil, fmt.Errorf("registering the metrics of the analyzer: %w", err)
	}
	return m, nil
}

func (m *metrics) count(end string) { m.requests.WithLabelValues(end).Inc() }
