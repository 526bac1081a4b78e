package dispatcher

import (
	"context"
	"encoding/json"

	"hydrallm/services/dispatcher/internal/breaker"
	"hydrallm/services/dispatcher/internal/keypool"
	"hydrallm/services/dispatcher/internal/slot"
	"hydrallm/shared/config"
)

// statusAnswer is the body of GET /v1/admin/status: providers, keys, chains, circuits and slots as this process sees them (R-116, C-39).
type statusAnswer struct {
	Status        string                      `json:"status"`
	Providers     map[string]*providerStatus  `json:"providers"`
	Agents        map[string]any              `json:"agents"`
	KeyStatistics map[string]keyStatistics    `json:"key_statistics"`
	Circuits      map[string]breaker.Snapshot `json:"circuits"`
	Slots         []slot.Usage                `json:"slots"`
	Chains        map[string][]string         `json:"chains"`
}

type providerStatus struct {
	Healthy    bool `json:"healthy"`
	ActiveKeys int  `json:"active_keys"`
	FailedKeys int  `json:"failed_keys"`
	TotalKeys  int  `json:"total_keys"`
}

type keyStatistics struct {
	Total  int           `json:"total"`
	Active int           `json:"active"`
	Failed int           `json:"failed"`
	Keys   []keyStatus   `json:"keys"`
	Usage  map[int]int64 `json:"usage"`
}

// keyStatus is one key, by index and masked.
type keyStatus struct {
	keypool.Status
	ID    string `json:"id"`
	State string `json:"status"`
}

// status answers the query of the admin API.
func (d *Dispatcher) status(context.Context, []byte) ([]byte, error) {
	answer := statusAnswer{
		Status: "online", Providers: map[string]*providerStatus{}, Agents: map[string]any{}, KeyStatistics: map[string]keyStatistics{},
		Circuits: d.breakers.Snapshot(), Slots: d.slots.Active(), Chains: d.planner.Chains(),
	}
	for _, p := range d.cfg.Gateway.Providers {
		answer.Providers[p.ID] = &providerStatus{Healthy: true, ActiveKeys: len(p.Keys), TotalKeys: len(p.Keys)}
		if pool := d.keys[p.ID]; pool != nil {
			keys := statistics(p, pool)
			answer.KeyStatistics[p.ID] = keys
			*answer.Providers[p.ID] = providerStatus{Healthy: keys.Active > 0, ActiveKeys: keys.Active, FailedKeys: keys.Failed, TotalKeys: keys.Total}
		}
	}
	for _, u := range d.cfg.Gateway.Upstreams {
		if d.breakers.Get(u.ID).State() == breaker.Open {
			answer.Providers[u.Provider].Healthy = false
		}
	}
	return json.Marshal(answer)
}

func statistics(p config.Provider, pool *keypool.Pool) keyStatistics {
	s := keyStatistics{Usage: map[int]int64{}, Keys: []keyStatus{}}
	for i, k := range pool.Snapshot() {
		state := "active"
		if !k.Active {
			state = "failed"
			s.Failed++
		} else {
			s.Active++
		}
		s.Total++
		s.Usage[i] = k.Calls
		s.Keys = append(s.Keys, keyStatus{Status: k, ID: config.Mask(p.Keys[i].Value.Reveal()), State: state})
	}
	return s
}
