package execute

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/shared/contract"
)

// Metrics are the figures of upstream calls. Label values are ids of the configuration or from closed sets.
type Metrics struct {
	attempts  *prometheus.CounterVec
	failovers *prometheus.CounterVec
	gates     *prometheus.CounterVec
	skips     *prometheus.CounterVec
	waits     *prometheus.HistogramVec
	genAI     genAI
}

// Reasons to pass over a channel.
const (
	skipOpen = "open"
	skipBusy = "busy"
	skipKeys = "no_key"
)

// NewMetrics registers the figures with reg. known tells the models of providers that have label values of their own: those of the configuration, and
// those that are discovered.
func NewMetrics(reg prometheus.Registerer, known func(provider, model string) bool) *Metrics {
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
		waits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "hydrallm_slot_wait_seconds", Help: "How long requests waited for a slot in the queue of their model, by how that ended: served, full, timeout or left.",
			Buckets: []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300},
		}, []string{"model", "outcome"}),
		genAI: newGenAI(reg, known),
	}
	reg.MustRegister(m.attempts, m.failovers, m.gates, m.skips, m.waits)
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

// ExpectModel shows the figures of calls to a model of a provider as 0 from the start.
func (m *Metrics) ExpectModel(provider, model string) {
	m.genAI.expect(contract.Chat.Name(contract.SurfaceChat), provider, model)
}

// attempt takes in what came of a call.
func (m *Metrics) attempt(a *attempt, v classify.Verdict, took time.Duration) {
	m.attempts.WithLabelValues(a.link.Channel.ID, string(v.Class)).Inc()
	if v.Class != classify.Untranslatable { // no call was made
		m.genAI.call(a.run.operationName(), a.link.Channel.Provider, a.link.Model, v, a.usage, took)
	}
}

// ExpectQueue shows the figures of a queue as 0 from the start.
func (m *Metrics) ExpectQueue(model string) {
	for _, outcome := range []string{waitServed, waitFull, waitTimeout, waitLeft} {
		m.waits.WithLabelValues(model, outcome)
	}
}

func (m *Metrics) waited(model, outcome string, took time.Duration) {
	m.waits.WithLabelValues(model, outcome).Observe(took.Seconds())
}

func (m *Metrics) failover(class classify.Class) { m.failovers.WithLabelValues(string(class)).Inc() }

func (m *Metrics) gate(outcome string) { m.gates.WithLabelValues(outcome).Inc() }

func (m *Metrics) skipped(c *Channel, reason string) { m.skips.WithLabelValues(c.ID, reason).Inc() }
