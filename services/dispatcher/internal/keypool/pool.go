// Package keypool spreads the calls to a provider over its keys, lets keys cool down that the provider refuses, and tries them again.
package keypool

import (
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/shared/contract"
	"hydrallm/shared/query"
)

// Key is one credential.
type Key struct {
	Value string
	Tier  string // contract.TierFree and its like; "" = unknown
}

// Pool holds the keys of one provider. It is safe for concurrent use: choosing, reporting, probing and adding share one lock. Keys
// are known by their index, which never changes.
type Pool struct {
	cooldowns Cooldowns
	notify    func(Cooldown)

	mu    sync.Mutex
	state []keyState
}

// keyState is a key and what the pool knows of it.
type keyState struct {
	Key

	mark     string              // see Mark
	removed  bool                // it is kept as a place only, because the indexes of others never change
	cooldown cooldown            // of the key for every model; it stays after its end, until a success
	byModel  map[string]cooldown // of the key for one model
	calls    int64
	failures int64
	probed   time.Time
	usage    keyUsage
	last     query.CallError // the last failure that was the key's; zero for none
}

// New makes a pool whose keys are all usable. There may be none yet. notify may be nil; it is called without a lock when a failure seen
// here lets a key cool down, and, with a zero Until, when a success seen here ends a cooldown.
func New(keys []Key, cooldowns Cooldowns, notify func(Cooldown)) *Pool {
	if notify == nil {
		notify = func(Cooldown) {}
	}
	p := &Pool{cooldowns: cooldowns, notify: notify}
	for _, k := range keys {
		p.append(k)
	}
	return p
}

func (p *Pool) append(k Key) {
	if k.Tier == "" {
		k.Tier = contract.TierUnknown
	}
	p.state = append(p.state, keyState{Key: k, mark: Mark(k.Value)})
}

// Add takes in a key while the pool is in use. Space around it is dropped. added is false, and nothing changes, for a key that is
// there already, whose index is given, and for an empty one, with index -1.
func (p *Pool) Add(value, tier string) (index int, added bool) {
	value = strings.TrimSpace(value)
	if value == "" {
		return -1, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.state {
		if p.state[i].Value == value {
			return i, false
		}
	}
	p.append(Key{Value: value, Tier: tier})
	return len(p.state) - 1, true
}

// Remove takes a key out while the pool is in use. Calls that have it already go on. Its index is given to no other key.
func (p *Pool) Remove(index int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state[index] = keyState{removed: true}
}

// Len is the number of keys.
func (p *Pool) Len() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.state {
		if !p.state[i].removed {
			n++
		}
	}
	return n
}

// Lease is a key chosen for one call. It must be ended with Report.
type Lease struct {
	Index int
	Key   string

	pool    *Pool
	model   string
	started time.Time
}

// Pick chooses one of the keys that may be used for the model now: of those that suit best, each with the same chance.
// Keys for which tried says true are left out; tried may be nil.
func (p *Pool) Pick(model string, want Want, tried func(index int) bool) (*Lease, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	chosen, best, seen := -1, unfit, 0
	for i := range p.state {
		k := &p.state[i]
		rank := k.rank(want)
		if rank > best || !k.usable(model, want, now) || tried != nil && tried(i) {
			continue
		}
		if rank < best {
			best, seen = rank, 0
		}
		seen++
		if rand.IntN(seen) == 0 { //nolint:gosec // spreading load needs no secrecy
			chosen = i
		}
	}
	if chosen < 0 {
		return nil, false
	}
	k := &p.state[chosen]
	k.calls++
	k.usage.called(model, now)
	return &Lease{Index: chosen, Key: k.Value, pool: p, model: model, started: now}, true
}

// Usable says whether Pick would find a key now. It changes nothing.
func (p *Pool) Usable(model string, want Want, tried func(index int) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for i := range p.state {
		if p.state[i].usable(model, want, now) && (tried == nil || !tried(i)) {
			return true
		}
	}
	return false
}

// Wait is how long it takes until a key may be used for the model; 0 when one may be used now, or when there is none at all.
func (p *Pool) Wait(model string, want Want) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	shortest := time.Duration(-1)
	for i := range p.state {
		k := &p.state[i]
		if k.rank(want) == unfit {
			continue
		}
		wait := max(0, k.cooldownEnd(model).Sub(now))
		if shortest < 0 || wait < shortest {
			shortest = wait
		}
	}
	return max(0, shortest)
}

// Resting counts, by the class of their failure, the keys that would do for the model and cool down. all says that there are some, and that every
// one of them does.
func (p *Pool) Resting(model string, want Want) (resting map[classify.Class]int, all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	resting = map[classify.Class]int{}
	free := 0
	for i := range p.state {
		k := &p.state[i]
		if k.rank(want) == unfit {
			continue
		}
		if c := k.cooldownFor(model); c.left(now) > 0 {
			resting[c.class]++
		} else {
			free++
		}
	}
	return resting, free == 0 && len(resting) > 0
}

// rank is how well a key suits.
func (k *keyState) rank(want Want) int {
	if k.removed {
		return unfit
	}
	return want.rank(k.Tier)
}

func (k *keyState) usable(model string, want Want, now time.Time) bool {
	return k.rank(want) != unfit && !k.cooldownEnd(model).After(now)
}

// Report ends the call with its verdict. A failure lets the key cool down as the verdict says: for the time that the provider states, else for
// the default of the category, at most for Max; of two cooldowns the one that ends later counts (KEY-03), and the other one changes nothing
// . A success ends only a cooldown that was imposed before the call began, so that a stream which was under way when the limit was hit
// does not lift it.
func (l *Lease) Report(v classify.Verdict) {
	p := l.pool
	p.mu.Lock()
	now := time.Now()
	k := &p.state[l.Index]
	if k.removed {
		p.mu.Unlock()
		return
	}
	var ended []string
	if v.Class == classify.Success {
		ended = k.recover(l.model, l.started)
	}
	if v.Class == classify.Rate || v.Class == classify.Quota {
		k.usage.limited(l.model, now)
	}
	r, imposed := Cooldown{Index: l.Index, Class: v.Class, Until: now.Add(p.cooldowns.of(v))}, false
	if v.PerModel {
		r.Model = l.model
	}
	if v.Cooldown != classify.NoCooldown {
		k.failures++
		k.last = query.CallError{At: now, Class: string(v.Class), Model: l.model}
		imposed = k.impose(r, now)
	}
	p.mu.Unlock()
	if imposed {
		p.notify(r)
	}
	for _, model := range ended {
		p.notify(Cooldown{Index: l.Index, Model: model})
	}
}

// Observe takes in a cooldown that another dispatcher imposed, or an earlier run of this one. It is not told on. A cooldown of a key that is not here yet is forgotten.
func (p *Pool) Observe(r Cooldown) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Index < 0 || r.Index >= len(p.state) || p.state[r.Index].removed {
		return
	}
	now := time.Now()
	if latest := now.Add(p.cooldowns.Max); r.Until.After(latest) {
		r.Until = latest
	}
	p.state[r.Index].impose(r, now)
}
