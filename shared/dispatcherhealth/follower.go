// Package dispatcherhealth knows which dispatchers are there, and what they say of the providers: which keys may be used now and which circuits
// are open. It reads a local copy that a watch keeps current, so that asking costs nothing and takes nothing from anybody.
package dispatcherhealth

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hydrallm/shared/bus"
	"hydrallm/shared/config"
	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
)

// keepFor is how long a dispatcher counts that has not been heard of, by the clock of this process. It publishes every few seconds.
const keepFor = 15 * time.Second

// Follower is what is known of the dispatchers. It is safe for concurrent use.
type Follower struct {
	assumed map[string]contract.ProviderState // holds while no dispatcher is known
	view    atomic.Pointer[view]
	watch   *bus.Watch

	mu      sync.Mutex
	reports map[string]report // by id of the dispatcher
}

// report is the last word of one dispatcher.
type report struct {
	providers map[string]contract.ProviderState
	heard     time.Time
}

// view is all reports in one. It is never changed.
type view struct {
	dispatchers []string // ids, in order
	providers   map[string]contract.ProviderState
	until       time.Time // when a report gets too old; zero = never
}

// prefix begins the keys of dispatchers in the state bucket; the id follows.
const prefix = "dispatcher."

// Key is where the dispatcher of an id publishes its contract.DispatcherState in the state bucket, every few seconds.
func Key(id string) string { return prefix + id }

// Follow begins to watch the dispatchers and returns when those that are there are known. assumed holds while no dispatcher is known; it may be
// nil and must not change any more. The caller must Stop the follower.
func Follow(ctx context.Context, b *bus.Bus, assumed map[string]contract.ProviderState) (*Follower, error) {
	bucket, err := b.Bucket(ctx, subject.StateBucket)
	if err != nil {
		return nil, err
	}
	f := newFollower(assumed)
	if f.watch, err = bucket.Watch(ctx, Key("*"), f.observe); err != nil {
		return nil, err
	}
	return f, nil
}

func newFollower(assumed map[string]contract.ProviderState) *Follower {
	f := &Follower{assumed: assumed, reports: map[string]report{}}
	f.view.Store(&view{providers: assumed})
	return f
}

// Assume is what to think of the providers of a configuration before any dispatcher has spoken: each key works, and so does a provider that
// needs none.
func Assume(providers []config.Provider) map[string]contract.ProviderState {
	states := make(map[string]contract.ProviderState, len(providers))
	for _, p := range providers {
		keys := map[string]int{}
		for _, k := range p.Keys {
			keys[k.Tier]++
		}
		if len(p.Keys) == 0 && !p.Pooled {
			keys[contract.TierUnknown] = 1
		}
		states[p.ID] = contract.ProviderState{Keys: keys}
	}
	return states
}

// Providers gives the state of each provider by id: usable if any live dispatcher says so. The caller must not change it.
func (f *Follower) Providers() map[string]contract.ProviderState { return f.current().providers }

// Dispatchers gives the ids of those that have shown themselves lately, in order. The caller must not change it.
func (f *Follower) Dispatchers() []string { return f.current().dispatchers }

func (f *Follower) current() *view {
	v := f.view.Load()
	if !v.until.IsZero() && !time.Now().Before(v.until) {
		v = f.refresh()
	}
	return v
}

// observe takes in what one dispatcher says; something that can't be read, or says nothing of providers, counts as nothing.
func (f *Follower) observe(e bus.Entry) {
	var said contract.DispatcherState
	gone := e.Deleted || json.Unmarshal(e.Value, &said) != nil || said.Providers == nil
	id := strings.TrimPrefix(e.Key, prefix)
	f.mu.Lock()
	defer f.mu.Unlock()
	if gone {
		delete(f.reports, id)
	} else {
		f.reports[id] = report{providers: said.Providers, heard: time.Now()}
	}
	f.merge()
}

func (f *Follower) refresh() *view {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.merge()
}

// merge drops the reports that are too old and makes a view of the others. The caller holds mu.
func (f *Follower) merge() *view {
	now := time.Now()
	maps.DeleteFunc(f.reports, func(_ string, r report) bool { return now.Sub(r.heard) >= keepFor })
	v := &view{dispatchers: slices.Sorted(maps.Keys(f.reports)), providers: f.assumed}
	if len(f.reports) > 0 {
		v.providers = map[string]contract.ProviderState{}
	}
	for _, r := range f.reports {
		if until := r.heard.Add(keepFor); v.until.IsZero() || until.Before(v.until) {
			v.until = until
		}
		for id, s := range r.providers {
			known, seen := v.providers[id]
			v.providers[id] = either(known, seen, s)
		}
	}
	f.view.Store(v)
	return v
}

// either joins what two dispatchers say of a provider. The keys of one whose circuit is open count only where all circuits are.
func either(a contract.ProviderState, seen bool, b contract.ProviderState) contract.ProviderState {
	switch {
	case !seen, a.Open && !b.Open:
		return b
	case b.Open && !a.Open:
		return a
	}
	keys := make(map[string]int, len(a.Keys)+len(b.Keys))
	for _, s := range []contract.ProviderState{a, b} {
		for tier, n := range s.Keys {
			keys[tier] = max(keys[tier], n)
		}
	}
	return contract.ProviderState{Keys: keys, Open: a.Open}
}

// Stop ends the watch.
func (f *Follower) Stop() {
	if f != nil {
		f.watch.Stop()
	}
}
