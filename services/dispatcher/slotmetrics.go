package dispatcher

import (
	"github.com/prometheus/client_golang/prometheus"

	"hydrallm/services/dispatcher/internal/slot"
)

// slotMetrics reads the slots when metrics are collected, so that no call has to keep a gauge up to date.
type slotMetrics struct {
	active, limit *prometheus.Desc
	read          func() []slot.Load
}

func newSlotMetrics(read func() []slot.Load) *slotMetrics {
	return &slotMetrics{
		active: prometheus.NewDesc("hydrallm_slots_active", "Calls of this process under way.", []string{"upstream"}, nil),
		limit:  prometheus.NewDesc("hydrallm_slots_limit", "Limit of concurrent calls over all dispatchers; 0 is none.", []string{"upstream"}, nil),
		read:   read,
	}
}

// Describe is for the registry.
func (m *slotMetrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.active
	ch <- m.limit
}

// Collect is for the registry.
func (m *slotMetrics) Collect(ch chan<- prometheus.Metric) {
	for _, u := range m.read() {
		ch <- prometheus.MustNewConstMetric(m.active, prometheus.GaugeValue, float64(u.Active), u.ID)
		ch <- prometheus.MustNewConstMetric(m.limit, prometheus.GaugeValue, float64(u.Limit), u.ID)
	}
}
