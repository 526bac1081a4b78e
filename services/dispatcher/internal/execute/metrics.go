package execute

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hydrallm/services/dispatcher/internal/classify"
)

// Metrics are the figures of upstream calls. Label values are ids of the configuration or from closed sets.
type Metrics struct {
	attempts  *prometheus.CounterVec
	failovers *prometheus.CounterVec
	gates     *prometheus.CounterVec
	skips     *prometheus.CounterVec
	duration  *prometheus.HistogramVec
}

// Reasons to pass over a channel.
const (
	skipOpen = "open"
	skipBusy = "busy"
	skipKeys = "no_key"
)

// NewMetrics registers the figures with reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hydrallm_upstream_attempts_total", Help: "Upstream calls by their result.",
		}, []string{"upstream", "class"}),
		failovers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hydrallm_failovers_total", Help: "Moves to the next channel by the class of failure that caused them.",
		}, []string{"class"}),
		gates: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hydrallm_stream_gate_total", Help: "How the stream gate decided: content, error, timeout or overflow.",
		}, []string{"outcome"}),
		skips: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hydrallm_channels_skipped_total", Help: "Channels passed over without a call because they were open, busy or without a usable key.",
		}, []string{"upstream", "reason"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "hydrallm_upstream_call_seconds", Help: "Duration of upstream calls, from sending to the last byte.",
			Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300},
		}, []string{"upstream"}),
	}
	reg.MustRegister(m.attempts, m.failovers, m.gates, m.skips, m.duration)
	return m
}

// Expect shows the figures of channels as 0 from the start: what alerts compare must be there before it happens for the first time.
func (m *Metrics) Expect(channels []string) {
	for _, id := range channels {
		for _, reason := range []string{skipOpen, skipBusy, skipKeys} {
			m.skips.WithLabelValues(id, reason)
		}
		for _, class := range classify.Classes {
			m.attempts.WithLabelValues(id, string(class))
		}
		m.duration.WithLabelValues(id)
	}
	for _, class := range classify.Classes {
		if class != classify.Success && class != classify.Cancelled {
			m.failovers.WithLabelValues(string(class))
		}
	}
	for _, outcome := range []string{gateContent, gateError, gateTimeout, gateOverflow} {
		m.gates.WithLabelValues(outcome)
	}
}

func (m *Metrics) attempt(c *Channel, v classify.Verdict, took time.Duration) {
	m.attempts.WithLabelValues(c.ID, string(v.Class)).Inc()
	m.duration.WithLabelValues(c.ID).Observe(took.Seconds())
}

func (m *Metrics) failover(class classify.Class) { m.failovers.WithLabelValues(string(class)).Inc() }

func (m *Metrics) gate(outcome string) { m.gates.WithLabelValues(outcome).Inc() }

func (m *Metrics) skipped(c *Channel, reason string) { m.skips.WithLabelValues(c.ID, reason).Inc() }
