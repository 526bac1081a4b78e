package dispatcher

import (
	"github.com/prometheus/client_golang/prometheus"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/keypool"
	"hydrallm/shared/config"
)

// States of a key, as the label of the metric.
const (
	keyUsable  = "usable"
	keyPartly  = "partly"  // it rests for some models
	keyResting = "resting" // it rests for all
)

// keyMetrics counts the keys of the pools when metrics are collected.
type keyMetrics struct {
	keys  *prometheus.Desc
	pools map[string]*keypool.Pool // by provider
}

func newKeyMetrics(pools map[string]*keypool.Pool) *keyMetrics {
	return &keyMetrics{
		keys: prometheus.NewDesc("hydrallm_keys", "Keys of a provider's pool: usable, resting for some models (partly), or resting for all.",
			[]string{"provider", "state"}, nil),
		pools: pools,
	}
}

// Describe is for the registry.
func (m *keyMetrics) Describe(ch chan<- *prometheus.Desc) { ch <- m.keys }

// Collect is for the registry.
func (m *keyMetrics) Collect(ch chan<- prometheus.Metric) {
	for provider, pool := range m.pools {
		count := map[string]int{keyUsable: 0, keyPartly: 0, keyResting: 0}
		for _, k := range pool.Snapshot() {
			switch {
			case !k.Active:
				count[keyResting]++
			case len(k.Models) > 0:
				count[keyPartly]++
			default:
				count[keyUsable]++
			}
		}
		for state, n := range count {
			ch <- prometheus.MustNewConstMetric(m.keys, prometheus.GaugeValue, float64(n), provider, state)
		}
	}
}

// newRests counts the rests of keys that begin by what is seen here.
func newRests(cfg *config.Config, reg prometheus.Registerer) *prometheus.CounterVec {
	rests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "hydrallm_key_rests_total", Help: "Times that a key of a provider's pool began to rest, by the class of failure that caused it.",
	}, []string{"provider", "class"})
	reg.MustRegister(rests)
	for _, p := range cfg.Providers {
		for _, class := range []classify.Class{classify.Rate, classify.Quota, classify.Auth} {
			if p.Pooled {
				rests.WithLabelValues(p.ID, string(class)) // shown as 0 from the start
			}
		}
	}
	return rests
}
