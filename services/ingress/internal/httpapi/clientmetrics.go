package httpapi

import (
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"hydrallm/shared/contract"
)

// maxClients bounds the names of client keys in the metrics; all others are "other".
const maxClients = 100

// clientMetrics are figures by the names of client keys.
type clientMetrics struct {
	requests, tokens *prometheus.CounterVec

	mu    sync.Mutex
	names map[string]bool
}

func newClientMetrics() *clientMetrics {
	return &clientMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hydrallm_client_requests_total", Help: "Requests by the name of the client key and class of the status.",
		}, []string{"client_key", "class"}),
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hydrallm_client_tokens_total", Help: "Tokens by the name of the client key, as far as upstreams tell them.",
		}, []string{"client_key", "type"}),
		names: map[string]bool{},
	}
}

// label gives the name of a key, or "other" when there are too many.
func (m *clientMetrics) label(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.names[name] {
		if len(m.names) >= maxClients {
			return "other"
		}
		m.names[name] = true
	}
	return name
}

func (m *clientMetrics) answered(name string, status int) {
	m.requests.WithLabelValues(m.label(name), fmt.Sprintf("%dxx", min(max(status/100, 1), classCount))).Inc()
}

func (m *clientMetrics) used(name string, end contract.End) {
	if end.Prompt > 0 || end.Completion > 0 {
		name = m.label(name)
		m.tokens.WithLabelValues(name, "input").Add(float64(end.Prompt))
		m.tokens.WithLabelValues(name, "output").Add(float64(end.Completion))
	}
}
