package dispatcher

import (
	"context"
	"encoding/json"

	"hydrallm/services/dispatcher/internal/breaker"
	"hydrallm/services/dispatcher/internal/keypool"
	"hydrallm/services/dispatcher/internal/plan"
	"hydrallm/services/dispatcher/internal/slot"
)

// statusAnswer is the body of GET /v1/admin/status: providers, keys, chains, circuits and slots as this process sees them (R-116, C-39).
type statusAnswer struct {
	Status        string                      `json:"status"`
	Providers     map[string]*providerStatus  `json:"providers"`
	Agents        map[string]agentStatus      `json:"agents"`
	KeyStatistics map[string]keyStatistics    `json:"key_statistics"`
	Circuits      map[string]breaker.Snapshot `json:"circuits"`
	Slots         []slot.Load                 `json:"slots"`
	Chains        map[string][]string         `json:"chains"`
}

// agentStatus is a local agent: healthy once it has listed its models and while its circuit is not open (B-41).
type agentStatus struct {
	Healthy bool   `json:"healthy"`
	BaseURL string `json:"base_url"`
}

type providerStatus struct {
	Healthy    bool `json:"healthy"`
	ActiveKeys int  `json:"active_keys"`
	FailedKeys int  `json:"failed_keys"`
	TotalKeys  int  `json:"total_keys"`
}

type keyStatistics struct {
	Total  int                `json:"total"`
	Active int                `json:"active"`
	Failed int                `json:"failed"`
	Keys   []keypool.Status   `json:"keys"`
	Usage  map[int]int64      `json:"usage"`
	Quota  []keypool.KeyUsage `json:"quota"` // calls of this process in the current minute and day
}

// status answers the query of the admin API.
func (d *Dispatcher) status(context.Context, []byte) ([]byte, error) {
	answer := statusAnswer{
		Status: "online", Providers: map[string]*providerStatus{}, Agents: map[string]agentStatus{}, KeyStatistics: map[string]keyStatistics{},
		Circuits: d.breakers.Snapshot(), Slots: d.slots.Active(), Chains: d.planner.Chains(),
	}
	for _, p := range d.cfg.Gateway.Providers {
		answer.Providers[p.ID] = &providerStatus{Healthy: true, ActiveKeys: len(p.Keys), TotalKeys: len(p.Keys)}
		if pool := d.keys[p.ID]; pool != nil {
			keys := statistics(pool)
			answer.KeyStatistics[p.ID] = keys
			*answer.Providers[p.ID] = providerStatus{Healthy: keys.Active > 0, ActiveKeys: keys.Active, FailedKeys: keys.Failed, TotalKeys: keys.Total}
		}
	}
	for _, p := range d.cfg.Gateway.Providers {
		open := d.breakers.Get(plan.ProviderCircuit(p.ID)).State() == breaker.Open
		if open {
			answer.Providers[p.ID].Healthy = false
		}
		if p.Agent() {
			_, found := d.models().Listing(p.ID)
			answer.Agents[p.ID] = agentStatus{Healthy: found && !open, BaseURL: p.URL}
		}
	}
	for _, u := range d.cfg.Gateway.Upstreams {
		if d.breakers.Get(u.ID).State() == breaker.Open {
			answer.Providers[u.Provider].Healthy = false
		}
	}
	return answer.encode()
}

// Bounds of an answer, which must fit into a message: clients bring names of models, and operators any number of keys.
const (
	maxStatus = 900 << 10
	maxShown  = 100 // keys of a provider in an answer that is too large otherwise
)

// encode leaves out what is said of single models if the answer is too large, and then most keys; the counts stay true.
func (a *statusAnswer) encode() ([]byte, error) {
	data, err := json.Marshal(a)
	if err != nil || len(data) <= maxStatus {
		return data, err
	}
	for _, s := range a.KeyStatistics {
		for i := range s.Keys {
			s.Keys[i].Models = nil
		}
		for i := range s.Quota {
			s.Quota[i].Models = []keypool.ModelUsage{}
		}
	}
	if data, err = json.Marshal(a); err != nil || len(data) <= maxStatus {
		return data, err
	}
	for provider, s := range a.KeyStatistics {
		s.Keys, s.Quota = s.Keys[:min(len(s.Keys), maxShown)], s.Quota[:min(len(s.Quota), maxShown)]
		s.Usage = map[int]int64{}
		for _, k := range s.Keys {
			s.Usage[k.Index] = k.Calls
		}
		a.KeyStatistics[provider] = s
	}
	return json.Marshal(a)
}

func statistics(pool *keypool.Pool) keyStatistics {
	s := keyStatistics{Usage: map[int]int64{}, Keys: pool.Snapshot(), Quota: pool.Quota(nil)}
	for _, k := range s.Keys {
		if k.State == keypool.StateFailed {
			s.Failed++
		} else {
			s.Active++
		}
		s.Total++
		s.Usage[k.Index] = k.Calls
	}
	return s
}
