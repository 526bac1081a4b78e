package dispatcher

import (
	"context"
	"encoding/json"

	"hydrallm/services/dispatcher/internal/breaker"
	"hydrallm/services/dispatcher/internal/keypool"
	"hydrallm/services/dispatcher/internal/plan"
	"hydrallm/shared/query"
)

// status answers query.GetStatus.
func (r *run) status(context.Context, query.None) (query.Status, error) {
	d := r.d
	s := query.Status{
		Status: query.Online, Providers: map[string]query.ProviderStatus{}, Agents: map[string]query.AgentStatus{},
		KeyStatistics: map[string]query.KeyStatistics{}, Circuits: map[string]query.Circuit{}, Slots: slotLoads(d.cfg.Gateway, r.slots), Chains: d.planner.Chains(),
	}
	for id, c := range d.breakers.Snapshot() {
		s.Circuits[id] = query.Circuit{State: c.State.String(), Failures: c.Failures, Remaining: c.Remaining, Probing: c.Probing, Remote: c.Remote}
	}
	for _, p := range d.cfg.Gateway.Providers {
		sum := query.ProviderStatus{Healthy: true, ActiveKeys: len(p.Keys), TotalKeys: len(p.Keys)}
		if pool := d.keys[p.ID]; pool != nil {
			keys := statistics(pool)
			s.KeyStatistics[p.ID] = keys
			sum = query.ProviderStatus{Healthy: keys.Active > 0, ActiveKeys: keys.Active, FailedKeys: keys.Failed, TotalKeys: keys.Total}
		}
		sum.Healthy = sum.Healthy && d.reachable(p.ID)
		s.Providers[p.ID] = sum
		if p.Agent() {
			_, found := d.models().Listing(p.ID)
			s.Agents[p.ID] = query.AgentStatus{Healthy: found && !d.open(plan.ProviderCircuit(p.ID)), BaseURL: p.URL}
		}
	}
	return s, shorten(&s)
}

// reachable says whether no circuit of a provider is open.
func (d *Dispatcher) reachable(provider string) bool {
	for _, u := range d.cfg.Gateway.Upstreams {
		if u.Provider == provider && d.open(u.ID) {
			return false
		}
	}
	return !d.open(plan.ProviderCircuit(provider))
}

func (d *Dispatcher) open(circuit string) bool {
	return d.breakers.Get(circuit).State() == breaker.Open
}

// Bounds of an answer, which must fit into a message: clients bring names of models, and operators any number of keys.
const (
	maxStatus = 900 << 10
	maxShown  = 100 // keys of a provider in an answer that is too large otherwise
)

// shorten leaves out what is said of single models if the answer is too large, and then most keys; the counts stay true.
func shorten(s *query.Status) error {
	if ok, err := fits(s); ok || err != nil {
		return err
	}
	for _, k := range s.KeyStatistics {
		for i := range k.Keys {
			k.Keys[i].Models = nil
		}
		for i := range k.Quota {
			k.Quota[i].Models = []query.ModelQuota{}
		}
	}
	if ok, err := fits(s); ok || err != nil {
		return err
	}
	for provider, k := range s.KeyStatistics {
		k.Keys, k.Quota = k.Keys[:min(len(k.Keys), maxShown)], k.Quota[:min(len(k.Quota), maxShown)]
		k.Usage = map[int]int64{}
		for _, key := range k.Keys {
			k.Usage[key.Index] = key.Calls
		}
		s.KeyStatistics[provider] = k
	}
	return nil
}

func fits(s *query.Status) (bool, error) {
	data, err := json.Marshal(s)
	return len(data) <= maxStatus, err
}

func statistics(pool *keypool.Pool) query.KeyStatistics {
	s := query.KeyStatistics{Usage: map[int]int64{}, Keys: pool.Snapshot(), Quota: pool.Quota(nil)}
	for _, k := range s.Keys {
		if k.State == query.KeyFailed {
			s.Failed++
		} else {
			s.Active++
		}
		s.Total++
		s.Usage[k.Index] = k.Calls
	}
	return s
}
