package analyzer

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
)

// Ends of a delivery, as the label of the metric.
const (
	endRouted     = "routed"      // forwarded with a decision
	endUnknown    = "not_found"   // answered 404
	endNoProvider = "no_provider" // answered 503: automatic routing has nothing to call
	endLate       = "late"        // nobody waits any more
	endPoison     = "poison"      // given up
	endRetry      = "retry"       // handed back
)

// refusal is the end of a request that was answered with a fault.
func refusal(kind fault.Kind) string {
	if kind == fault.ModelNotFound {
		return endUnknown
	}
	return endNoProvider
}

// reasons are all that a decision may have.
var reasons = []string{
	contract.ReasonModelHint, contract.ReasonTokenCount, contract.ReasonImagePresent, contract.ReasonKeyAvailability,
}

type metrics struct {
	requests   *prometheus.CounterVec
	decisions  *prometheus.CounterVec
	unrecorded prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	const namespace, subsystem = "hydrallm", "analyzer"
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "requests_total", Help: "Deliveries of requests by what the analyzer did with them.",
		}, []string{"end"}),
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "decisions_total", Help: "Routing decisions by their reason.",
		}, []string{"reason"}),
		unrecorded: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "unrecorded_decisions_total", Help: "Routing decisions whose log fact was not stored.",
		}),
	}
	for _, end := range []string{endRouted, endUnknown, endNoProvider, endLate, endPoison, endRetry} {
		m.requests.WithLabelValues(end) // shown as 0 from the start
	}
	for _, reason := range reasons {
		m.decisions.WithLabelValues(reason)
	}
	if err := errors.Join(reg.Register(m.requests), reg.Register(m.decisions), reg.Register(m.unrecorded)); err != nil {
		return nil, fmt.Errorf("registering the metrics of the analyzer: %w", err)
	}
	return m, nil
}

func (m *metrics) count(end string) { m.requests.WithLabelValues(end).Inc() }

func (m *metrics) decided(reason string) { m.decisions.WithLabelValues(reason).Inc() }
