// Package snapshot makes one picture of what several dispatchers know.
package snapshot

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"hydrallm/shared/query"
)

// Status is what all dispatchers know, and which of them were asked.
type Status struct {
	query.Status

	Dispatchers []Dispatcher `json:"dispatchers"`
}

// Dispatcher is one that was asked.
type Dispatcher struct {
	ID    string `json:"id"`
	Error string `json:"error,omitempty"` // why its answer is missing
}

// Of makes a picture of the answers that came. Something is usable when it is for one dispatcher, as routing has it; counts of calls are sums; of
// keys, channels and circuits the worst or the newest counts. ok is false when nobody answered.
func Of(replies []query.Reply[query.Status]) (all Status, ok bool) {
	for _, r := range replies {
		d := Dispatcher{ID: r.Instance}
		switch {
		case r.Err != nil:
			d.Error = r.Err.Error()
		case !ok:
			all.Status, ok = r.Answer, true
		default:
			add(&all.Status, r.Answer)
		}
		all.Dispatchers = append(all.Dispatchers, d)
	}
	return all, ok
}

// add takes the word of a further dispatcher into s.
func add(s *query.Status, o query.Status) {
	merge(s.Providers, o.Providers, provider)
	merge(s.Agents, o.Agents, func(a, b query.AgentStatus) query.AgentStatus {
		a.Healthy = a.Healthy || b.Healthy
		return a
	})
	merge(s.KeyStatistics, o.KeyStatistics, statistics)
	merge(s.Circuits, o.Circuits, circuit)
	merge(s.Channels, o.Channels, channel)
	merge(s.Chains, o.Chains, func(a, _ []string) []string { return a })
	for _, q := range o.Queues { // each of them knows all who wait
		i := slices.IndexFunc(s.Queues, func(known query.Queue) bool { return known.Model == q.Model })
		switch {
		case i < 0:
			s.Queues = append(s.Queues, q)
		case q.Waiting > s.Queues[i].Waiting:
			s.Queues[i] = q
		}
	}
	for _, l := range o.Slots {
		i := slices.IndexFunc(s.Slots, func(known query.Load) bool { return known.ID == l.ID })
		if i < 0 {
			s.Slots = append(s.Slots, l)
			continue
		}
		s.Slots[i].Active += l.Active
	}
}

func merge[V any](all, others map[string]V, join func(a, b V) V) {
	for id, o := range others {
		if known, there := all[id]; there {
			o = join(known, o)
		}
		all[id] = o
	}
}

// provider joins two views of a provider: that of a dispatcher for which it is healthy, if there is one.
func provider(a, b query.ProviderStatus) query.ProviderStatus {
	if !a.Healthy && b.Healthy {
		a, b = b, a
	}
	a.Models, a.TotalKeys = max(a.Models, b.Models), max(a.TotalKeys, b.TotalKeys)
	a.ActiveKeys, a.UsableKeys, a.FailedKeys = min(a.ActiveKeys, b.ActiveKeys), min(a.UsableKeys, b.UsableKeys), max(a.FailedKeys, b.FailedKeys)
	return a
}

func channel(a, b query.Channel) query.Channel {
	if !a.Usable && b.Usable {
		a, b = b, a
	}
	if b.LastSuccess.After(a.LastSuccess) {
		a.LastSuccess = b.LastSuccess
	}
	a.LastError = newest(a.LastError, b.LastError)
	return a
}

func newest(a, b *query.CallError) *query.CallError {
	if a == nil || b != nil && b.At.After(a.At) {
		return b
	}
	return a
}

// severity orders the states of circuits.
var severity = map[string]int{"half-open": 1, "open": 2}

func circuit(a, b query.Circuit) query.Circuit {
	if c := cmp.Compare(severity[b.State], severity[a.State]); c > 0 || c == 0 && b.Remaining > a.Remaining {
		a, b = b, a
	}
	a.Failures, a.Probing, a.Remote = max(a.Failures, b.Failures), a.Probing || b.Probing, a.Remote && b.Remote
	return a
}

// statistics joins what two dispatchers know of the keys of a provider, which have the same indexes in both.
func statistics(a, b query.KeyStatistics) query.KeyStatistics {
	a.Total, a.Failed = max(a.Total, b.Total), max(a.Failed, b.Failed)
	a.Active = a.Total - a.Failed
	at := make(map[int]int, len(a.Keys))
	for i, k := range a.Keys {
		at[k.Index] = i
	}
	for _, k := range b.Keys {
		if i, there := at[k.Index]; there {
			a.Keys[i] = key(a.Keys[i], k)
		} else {
			a.Keys = append(a.Keys, k)
		}
	}
	a.Usage = maps.Clone(a.Usage)
	for index, n := range b.Usage {
		if a.Usage == nil {
			a.Usage = map[int]int64{}
		}
		a.Usage[index] += n
	}
	for _, q := range b.Quota {
		i := slices.IndexFunc(a.Quota, func(known query.KeyQuota) bool { return known.Index == q.Index })
		if i < 0 {
			a.Quota = append(a.Quota, q)
			continue
		}
		a.Quota[i] = quota(a.Quota[i], q)
	}
	return a
}

// key joins two views of a key: that of the dispatcher that saw it fail later.
func key(a, b query.KeyStatus) query.KeyStatus {
	if b.State == query.KeyFailed && (a.State != query.KeyFailed || b.FailedAt.After(a.FailedAt)) {
		a, b = b, a
	}
	a.Active = a.Active && b.Active
	a.Calls, a.Failures = a.Calls+b.Calls, a.Failures+b.Failures
	a.LastError = newest(a.LastError, b.LastError)
	a.LastProbed = later(a.LastProbed, b.LastProbed)
	for _, c := range b.Cooldowns {
		if !slices.Contains(a.Models, c.Model) {
			a.Models, a.Cooldowns = append(a.Models, c.Model), append(a.Cooldowns, c)
		}
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// quota adds two counts of calls with one key.
func quota(a, b query.KeyQuota) query.KeyQuota {
	a.QuotaUse = use(a.QuotaUse, b.QuotaUse)
	for _, m := range b.Models {
		i := slices.IndexFunc(a.Models, func(known query.ModelQuota) bool { return known.Model == m.Model })
		if i < 0 {
			a.Models = append(a.Models, m)
			continue
		}
		a.Models[i].QuotaUse = use(a.Models[i].QuotaUse, m.QuotaUse)
	}
	return a
}

func use(a, b query.QuotaUse) query.QuotaUse {
	a.Minute, a.Day = window(a.Minute, b.Minute), window(a.Day, b.Day)
	a.Cooldown, a.Last429 = max(a.Cooldown, b.Cooldown), later(a.Last429, b.Last429)
	return a
}

// window adds the calls of two processes. Of two windows the later one counts.
func window(a, b query.Window) query.Window {
	switch {
	case b.Reset.After(a.Reset):
		return b
	case a.Reset.Equal(b.Reset):
		a.Used += b.Used
	}
	return a
}
