// Package keypool spreads the calls to a provider over its keys and lets keys rest that the provider refuses.
package keypool

import (
	"math/rand/v2"
	"sync"
	"time"

	"hydrallm/services/dispatcher/internal/classify"
)

// Cooldowns are how long a key rests by default, and at most.
type Cooldowns struct{ Forbidden, Quota, Other, Max time.Duration }

// Key is one credential.
type Key struct {
	Value string
	Tier  string // free | standard | premium | experimental | unknown
}

// Pool holds the keys of one provider. It is safe for concurrent use: choosing and reporting share one lock.
type Pool struct {
	cooldowns Cooldowns
	keys      []Key
	notify    func(Rest)

	mu    sync.Mutex
	state []keyState
}

// keyState is what a pool knows of one key.
type keyState struct {
	rest     rest            // of the key for every model
	byModel  map[string]rest // of the key for one model
	calls    int64
	failures int64
	failedAt time.Time
	reason   string // class of the last failure
}

// rest is a time in which a key is not used.
type rest struct {
	until time.Time
	since time.Time // when it was imposed
}

// Rest is a cooldown that began, to be told to other dispatchers.
type Rest struct {
	Index int
	Model string // "" = for every model
	Until time.Time
}

// New makes a pool whose keys are all usable. notify may be nil; it is called without a lock when a failure seen here lets a key rest.
func New(keys []Key, cooldowns Cooldowns, notify func(Rest)) *Pool {
	if notify == nil {
		notify = func(Rest) {}
	}
	return &Pool{cooldowns: cooldowns, keys: keys, notify: notify, state: make([]keyState, len(keys))}
}

// Len is the number of keys.
func (p *Pool) Len() int { return len(p.keys) }

// Lease is a key chosen for one call. It must be ended with Report.
type Lease struct {
	Index int
	Key   string

	pool    *Pool
	model   string
	started time.Time
}

// Pick chooses one of the keys that may be used for the model now, each with the same chance. Keys for which tried says true are
// left out; tried may be nil.
func (p *Pool) Pick(model string, tried func(index int) bool) (*Lease, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	chosen, seen := -1, 0
	for i := range p.state {
		if tried != nil && tried(i) || p.state[i].restsUntil(model).After(now) {
			continue
		}
		seen++
		if rand.IntN(seen) == 0 { //nolint:gosec // spreading load needs no secrecy
			chosen = i
		}
	}
	if chosen < 0 {
		return nil, false
	}
	p.state[chosen].calls++
	return &Lease{Index: chosen, Key: p.keys[chosen].Value, pool: p, model: model, started: now}, true
}

// Usable says whether Pick would find a key now. It changes nothing.
func (p *Pool) Usable(model string, tried func(index int) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for i := range p.state {
		if (tried == nil || !tried(i)) && !p.state[i].restsUntil(model).After(now) {
			return true
		}
	}
	return false
}

// Wait is how long it takes until a key may be used for the model; 0 when one may be used now, or when there is none at all.
func (p *Pool) Wait(model string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	shortest := time.Duration(-1)
	for i := range p.state {
		wait := max(0, p.state[i].restsUntil(model).Sub(now))
		if shortest < 0 || wait < shortest {
			shortest = wait
		}
	}
	return max(0, shortest)
}

func (k *keyState) restsUntil(model string) time.Time {
	until := k.rest.until
	if m := k.byModel[model].until; m.After(until) {
		return m
	}
	return until
}

// Report ends the call with its verdict. A failure lets the key rest as the verdict says: for the time that the provider states, else for
// the default of the category, at most for Max; of two rests the one that ends later counts (KEY-03). A success ends only a rest that was
// imposed before the call began, so that a stream which was under way when the limit was hit does not lift it.
func (l *Lease) Report(v classify.Verdict) {
	p := l.pool
	p.mu.Lock()
	now := time.Now()
	k := &p.state[l.Index]
	if v.Class == classify.Success {
		k.recover(l.model, l.started)
	}
	r := Rest{Index: l.Index, Until: now.Add(p.duration(v))}
	if v.PerModel {
		r.Model = l.model
	}
	imposed := v.Cooldown != classify.NoCooldown && k.impose(r, now)
	if v.Failed() {
		k.failures++
		k.failedAt, k.reason = now, string(v.Class)
	}
	p.mu.Unlock()
	if imposed {
		p.notify(r)
	}
}

// duration is how long a verdict lets a key rest.
func (p *Pool) duration(v classify.Verdict) time.Duration {
	wait := p.cooldowns.Other
	switch v.Cooldown {
	case classify.ForbiddenCooldown:
		wait = p.cooldowns.Forbidden
	case classify.QuotaCooldown:
		wait = p.cooldowns.Quota
	case classify.OtherCooldown, classify.NoCooldown:
	}
	if v.Stated && v.Wait > 0 {
		wait = v.Wait
	}
	return min(wait, p.cooldowns.Max)
}

// impose lets the key rest unless it rests for longer already.
func (k *keyState) impose(r Rest, now time.Time) bool {
	if !r.Until.After(now) {
		return false
	}
	if r.Model == "" {
		if !r.Until.After(k.rest.until) {
			return false
		}
		k.rest = rest{until: r.Until, since: now}
		return true
	}
	if !r.Until.After(k.byModel[r.Model].until) {
		return false
	}
	if k.byModel == nil {
		k.byModel = map[string]rest{}
	}
	k.forget(now)
	k.byModel[r.Model] = rest{until: r.Until, since: now}
	return true
}

// forget drops rests that are over, so that the map holds no more models than rest now.
func (k *keyState) forget(now time.Time) {
	for model, r := range k.byModel {
		if !r.until.After(now) {
			delete(k.byModel, model)
		}
	}
}

func (k *keyState) recover(model string, started time.Time) {
	if k.rest.since.Before(started) {
		k.rest = rest{}
	}
	if r, ok := k.byModel[model]; ok && r.since.Before(started) {
		delete(k.byModel, model)
	}
}

// Observe takes in a rest that another dispatcher imposed. It is not told on.
func (p *Pool) Observe(r Rest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if r.Index < 0 || r.Index >= len(p.state) {
		return
	}
	r.Until = earlier(r.Until, now.Add(p.cooldowns.Max))
	p.state[r.Index].impose(r, now)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Status is what the admin API shows of a key. It never holds the key.
type Status struct {
	Index    int       `json:"index"`
	Tier     string    `json:"tier"`
	Active   bool      `json:"active"`                   // usable for some model now
	Until    time.Time `json:"cooldown_until,omitzero"`  // of the rest for every model
	Models   []string  `json:"resting_models,omitempty"` // for which it rests
	Calls    int64     `json:"usage"`
	Failures int64     `json:"failures"`
	FailedAt time.Time `json:"failed_at,omitzero"`
	Reason   string    `json:"error,omitempty"`
}

// Snapshot reads the state of all keys.
func (p *Pool) Snapshot() []Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	all := make([]Status, len(p.keys))
	for i := range p.state {
		k := &p.state[i]
		all[i] = Status{
			Index: i, Tier: p.keys[i].Tier, Active: !k.rest.until.After(now), Calls: k.calls, Failures: k.failures, FailedAt: k.failedAt, Reason: k.reason,
		}
		if !all[i].Active {
			all[i].Until = k.rest.until
		}
		for model, r := range k.byModel {
			if r.until.After(now) {
				all[i].Models = append(all[i].Models, model)
			}
		}
	}
	return all
}
