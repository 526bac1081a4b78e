package dispatcher

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"hydrallm/services/dispatcher/internal/execute"
	"hydrallm/services/dispatcher/internal/plan"
	"hydrallm/services/dispatcher/internal/slot"
	"hydrallm/shared/config"
	"hydrallm/shared/query"
)

// slotLoads shows the slots under the names that calls compare them with: each upstream, and each model of a provider that a call is under
// way to. Several may show the same calls.
func slotLoads(cfg *config.Config, slots slot.Acquirer) []query.Load {
	loads := make([]query.Load, 0, len(cfg.Upstreams))
	for _, u := range cfg.Upstreams {
		loads = append(loads, query.Load{ID: u.ID, Active: slots.Count(execute.SlotID(u.Provider, u.Model)), Limit: u.Limit})
	}
	for _, l := range slots.Active() {
		if l.Active == 0 {
			continue
		}
		if p, ok := providerOf(cfg, l.ID); ok {
			loads = append(loads, query.Load{ID: l.ID, Active: l.Active, Limit: p.Limit})
		}
	}
	return loads
}

// providerOf gives the provider that a slot is of.
func providerOf(cfg *config.Config, slotID string) (config.Provider, bool) {
	for _, p := range cfg.Providers {
		if strings.HasPrefix(slotID, p.ID+"/") {
			return p, true
		}
	}
	return config.Provider{}, false
}

// slotMetrics reads the slots when metrics are collected, so that no call has to keep a gauge up to date. Models have no series of their own:
// clients bring their names.
type slotMetrics struct {
	active, limit *prometheus.Desc
	cfg           func() *config.Config
	slots         func() slot.Acquirer // nil while the dispatcher does not run
}

func newSlotMetrics(cfg func() *config.Config, slots func() slot.Acquirer) *slotMetrics {
	return &slotMetrics{
		active: prometheus.NewDesc("hydrallm_slots_active", "Calls of this process under way.", []string{"upstream"}, nil),
		limit:  prometheus.NewDesc("hydrallm_slots_limit", "Limit of concurrent calls to a model over all dispatchers; 0 is none.", []string{"upstream"}, nil),
		cfg:    cfg, slots: slots,
	}
}

// Describe is for the registry.
func (m *slotMetrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.active
	ch <- m.limit
}

// Collect is for the registry.
func (m *slotMetrics) Collect(ch chan<- prometheus.Metric) {
	slots := m.slots()
	if slots == nil {
		return
	}
	cfg := m.cfg()
	put := func(id string, active, limit int) {
		ch <- prometheus.MustNewConstMetric(m.active, prometheus.GaugeValue, float64(active), id)
		ch <- prometheus.MustNewConstMetric(m.limit, prometheus.GaugeValue, float64(limit), id)
	}
	for _, u := range cfg.Upstreams {
		put(u.ID, slots.Count(execute.SlotID(u.Provider, u.Model)), u.Limit)
	}
	calls := map[string]int{}
	for _, l := range slots.Active() {
		if p, ok := providerOf(cfg, l.ID); ok {
			calls[p.ID] += l.Active
		}
	}
	for _, p := range cfg.Providers {
		put(plan.ProviderCircuit(p.ID), calls[p.ID], p.Limit)
	}
}
