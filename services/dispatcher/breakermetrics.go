package dispatcher

import (
	"github.com/prometheus/client_golang/prometheus"

	"hydrallm/services/dispatcher/internal/breaker"
	"hydrallm/shared/config"
)

// breakerMetrics reads the circuits when metrics are collected: one opens by a call, but its time is over by itself.
type breakerMetrics struct {
	open     *prometheus.Desc
	cfg      func() *config.Config
	breakers *breaker.Set
}

func newBreakerMetrics(cfg func() *config.Config, breakers *breaker.Set) *breakerMetrics {
	return &breakerMetrics{
		open:     prometheus.NewDesc("hydrallm_breaker_open", "1 while a circuit lets no call through.", []string{"upstream"}, nil),
		cfg:      cfg,
		breakers: breakers,
	}
}

// Describe is for the registry.
func (m *breakerMetrics) Describe(ch chan<- *prometheus.Desc) { ch <- m.open }

// Collect is for the registry.
func (m *breakerMetrics) Collect(ch chan<- prometheus.Metric) {
	known := circuits(m.cfg())
	for id, b := range m.breakers.All() {
		if _, ok := known[id]; !ok { // of an upstream that was taken out of the file
			continue
		}
		open := 0.0
		if b.Snapshot().Remaining > 0 {
			open = 1
		}
		ch <- prometheus.MustNewConstMetric(m.open, prometheus.GaugeValue, open, id)
	}
}
