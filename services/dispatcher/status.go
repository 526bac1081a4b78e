package dispatcher

import (
	"context"
	"encoding/json"

	"hydrallm/services/dispatcher/internal/keypool"
	"hydrallm/services/dispatcher/internal/plan"
	"hydrallm/shared/config"
	"hydrallm/shared/query"
)

// status answers query.GetStatus.
func (r *run) status(context.Context, query.None) (query.Status, error) {
	d := r.d
	s := query.Status{
		Status: query.Online, Providers: map[string]query.ProviderStatus{}, Agents: map[string]query.AgentStatus{},
		KeyStatistics: map[string]query.KeyStatistics{}, Circuits: map[string]query.Circuit{}, Channels: d.channelStatus(), Slots: slotLoads(d.gateway(), r.slots), Queues: r.waits.status(d.gateway()), Chains: d.planner.Chains(),
	}
	known := circuits(d.gateway())
	for id, c := range d.breakers.Snapshot() {
		if _, ok := known[id]; !ok { // of an upstream that was taken out of the file
			continue
		}
		s.Circuits[id] = query.Circuit{State: c.State.String(), Failures: c.Failures, Remaining: c.Remaining, Probing: c.Probing, Remote: c.Remote}
	}
	for _, p := range d.gateway().Providers {
		if pool := d.keys[p.ID]; pool != nil {
			s.KeyStatistics[p.ID] = statistics(pool)
		}
		sum := d.providerStatus(p, s.Channels, s.KeyStatistics[p.ID])
		s.Providers[p.ID] = sum
		if p.Agent() {
			_, found := d.models().Listing(p.ID)
			s.Agents[p.ID] = query.AgentStatus{Healthy: found && sum.Healthy, BaseURL: p.URL}
		}
	}
	return s, shorten(&s)
}

// noModel is the problem of a provider that requests can't be routed to, because nothing is known of what it offers.
const noModel = "no model is known"

// channelStatus shows each upstream that a model has, and each provider as requests are routed to it, by the name of its circuit.
func (d *Dispatcher) channelStatus() map[string]query.Channel {
	all := map[string]query.Channel{}
	for _, l := range d.planner.Configured() {
		all[l.Channel.Circuit] = d.channel(l.Channel.Circuit, l.Channel.Provider, d.exec.Problem(l))
	}
	for _, p := range d.gateway().Providers {
		problem := noModel
		if l, ok := d.planner.Direct(p.ID); ok {
			problem = d.exec.Problem(l)
		}
		circuit := plan.ProviderCircuit(p.ID)
		all[circuit] = d.channel(circuit, p.ID, problem)
	}
	return all
}

func (d *Dispatcher) channel(circuit, provider, problem string) query.Channel {
	last := d.exec.Health.Last(circuit)
	c := query.Channel{Provider: provider, Usable: problem == "", Problem: problem, LastSuccess: last.Success}
	if f := last.Failure; !f.At.IsZero() {
		c.LastError = &query.CallError{At: f.At, Class: string(f.Class), Reason: f.Reason, Status: f.Status, Model: f.Model}
	}
	return c
}

// providerStatus sums a provider up. That no model is known is no problem of one with upstreams, which name theirs.
func (d *Dispatcher) providerStatus(p config.Provider, channels map[string]query.Channel, keys query.KeyStatistics) query.ProviderStatus {
	sum := query.ProviderStatus{
		Unreachable: d.exec.Health.Unreachable(p.ID), ActiveKeys: keys.Active, UsableKeys: keys.Active, FailedKeys: keys.Failed, TotalKeys: keys.Total,
	}
	if d.keys[p.ID] == nil {
		sum.ActiveKeys, sum.UsableKeys, sum.TotalKeys = len(p.Keys), len(p.Keys), len(p.Keys)
	} else {
		sum.UsableKeys = usableKeys(keys.Keys)
	}
	if l, ok := d.models().Listing(p.ID); ok {
		sum.Models = len(l.Models)
	}
	sum.Problem = channels[plan.ProviderCircuit(p.ID)].Problem
	for _, u := range d.gateway().Upstreams {
		c, used := channels[u.ID]
		if u.Provider == p.ID && used && (sum.Problem == "" || sum.Problem == noModel) {
			sum.Problem = c.Problem
		}
	}
	if !sum.Unreachable.IsZero() {
		sum.Problem = "no connection"
	}
	sum.Healthy = sum.Problem == ""
	return sum
}

// usableKeys counts the keys that rest for no model.
func usableKeys(keys []query.KeyStatus) (n int) {
	for _, k := range keys {
		if k.Active && len(k.Models) == 0 {
			n++
		}
	}
	return n
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
			k.Keys[i].Models, k.Keys[i].Cooldowns = nil, nil
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
