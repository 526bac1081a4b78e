package clientkey

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/query"
)

// Gate holds the limits and budgets of keys. It is safe for concurrent use.
type Gate struct {
	counters Counters
	usage    Usage
	clock    func() time.Time // of limits
	zone     *time.Location
	log      *slog.Logger

	uncovered chan *meter // that have used more than they had taken

	mu   sync.RWMutex
	keys map[string]*account // by id
}

// account is what is known of a key that was used.
type account struct {
	requests, tokens meter
	spent            spending
}

// NewGate makes a gate. The minutes of limits are those of clock, and budgets begin at midnight in zone.
func NewGate(counters Counters, usage Usage, clock func() time.Time, zone *time.Location, log *slog.Logger) *Gate {
	const waiting = 1024
	return &Gate{counters: counters, usage: usage, clock: clock, zone: zone, log: log, uncovered: make(chan *meter, waiting), keys: map[string]*account{}}
}

func (g *Gate) account(id string) *account {
	g.mu.RLock()
	a := g.keys[id]
	g.mu.RUnlock()
	if a != nil {
		return a
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if a = g.keys[id]; a == nil {
		a = &account{
			requests: meter{store: g.counters, clock: g.clock, name: id + ".requests"},
			tokens:   meter{store: g.counters, clock: g.clock, name: id + ".tokens"},
		}
		g.keys[id] = a
	}
	return a
}

// Pass is a request that was let in. Settle must be called when it has ended.
type Pass struct {
	gate   *Gate
	acc    *account
	key    *Key
	tokens int64     // that were taken
	taken  time.Time // begin of their window
	once   sync.Once
}

// Admit lets a request of a key in, of which tokens is the estimated size, or gives the fault to answer. It does no I/O but for a portion of a limit now
// and then.
func (g *Gate) Admit(ctx context.Context, k *Key, tokens int64) (*Pass, *fault.Fault) {
	p := &Pass{gate: g, key: k, acc: g.account(k.ID)}
	if b := k.Budget; b != nil {
		if left, reset := p.acc.spent.check(ctx, k.ID, b, g.zone, g.usage); !left {
			return nil, &fault.Fault{
				Kind: fault.RateLimited, Code: "insufficient_quota", ErrorType: "insufficient_quota", RetryAfter: reset,
				Message: fmt.Sprintf("The budget of this API key for the %s is used up", b.Period),
			}
		}
	}
	var requests reading
	if limit := k.Limits.Requests; limit > 0 {
		r, ok := p.acc.requests.take(ctx, 1, limit)
		if !ok {
			return nil, limited("requests", r, 1)
		}
		requests = r
	}
	if limit := k.Limits.Tokens; limit > 0 {
		r, ok := p.acc.tokens.take(ctx, tokens, limit)
		if !ok {
			if k.Limits.Requests > 0 { // it is not made after all
				p.acc.requests.correct(1, 0, k.Limits.Requests, requests.start)
			}
			return nil, limited("tokens", r, tokens)
		}
		p.tokens, p.taken = tokens, r.start
	}
	return p, nil
}

// limited gives the fault of a limit that is reached, in OpenAI's words.
func limited(what string, r reading, need int64) *fault.Fault {
	f := &fault.Fault{
		Kind: fault.RateLimited, ErrorType: what, RetryAfter: max(r.reset, time.Millisecond),
		Message: fmt.Sprintf("Rate limit reached for this API key on %s per min: Limit %d, Remaining %d, Requested %d", what, r.limit, r.remaining, need),
	}
	if need > r.limit { // it will never be let in
		f.Message = fmt.Sprintf("Request too large for this API key on %s per min: Limit %d, Requested %d", what, r.limit, need)
		f.RetryAfter = fault.Never
	}
	return f
}

// Name is the name of the key.
func (p *Pass) Name() string { return p.key.Name }

// Settle takes in what the request used in truth. Of one whose end nobody told, and of one that did not tell its tokens, the estimate counts.
func (p *Pass) Settle(end contract.End) {
	p.once.Do(func() { p.settle(end) })
}

func (p *Pass) settle(end contract.End) {
	used := max(end.Total, end.Prompt+end.Completion)
	if p.key.Budget != nil {
		p.acc.spent.add(used, end.CostNanos)
	}
	if used == 0 && end.Outcome != contract.OutcomeError {
		return
	}
	if limit := p.key.Limits.Tokens; limit > 0 && p.acc.tokens.correct(p.tokens, used, limit, p.taken) {
		select {
		case p.gate.uncovered <- &p.acc.tokens:
		default: // the next request does it
		}
	}
}

// Run keeps the gate up to date until ctx ends: it asks what keys with budgets have used elsewhere, and tells the counters what was used here.
func (g *Gate) Run(ctx context.Context) {
	ticker := time.NewTicker(askAgain)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-g.uncovered:
			m.cover(ctx)
		case <-ticker.C:
			g.refresh(ctx)
		}
	}
}

// refresh asks for the usage of the keys that were used since it was asked for last.
func (g *Gate) refresh(ctx context.Context) {
	var accounts []*account
	var question []query.ClientSince
	g.mu.RLock()
	for id, a := range g.keys {
		a.spent.mu.Lock()
		if a.spent.touched && !a.spent.from.IsZero() {
			a.spent.touched = false
			accounts, question = append(accounts, a), append(question, query.ClientSince{Principal: id, Since: a.spent.from})
		}
		a.spent.mu.Unlock()
	}
	g.mu.RUnlock()
	if len(question) == 0 {
		return
	}
	usage, err := g.usage(ctx, question)
	if err != nil || len(usage) != len(question) {
		g.log.DebugContext(ctx, "the usage of client keys can't be had", slog.Any("error", err))
		for _, a := range accounts {
			a.spent.add(0, 0)
		}
		return
	}
	for i, a := range accounts {
		a.spent.told(question[i].Since, usage[i])
	}
}

// State is how the limits of a key stand.
type State struct {
	Requests, Tokens Rate
}

// Rate is how one limit stands.
type Rate struct {
	Limit, Remaining int64         // Limit 0 = none
	Reset            time.Duration // until nothing of it is used
}

// Now is the time by the clock of the limits.
func (g *Gate) Now() time.Time { return g.clock() }

// State gives how the limits of a key stand, as far as it is known here.
func (g *Gate) State(k *Key, now time.Time) (s State) {
	rate := func(m *meter, limit int64) Rate {
		if limit == 0 {
			return Rate{}
		}
		r := m.state(limit, now)
		return Rate{Limit: limit, Remaining: r.remaining, Reset: r.reset}
	}
	a := g.account(k.ID)
	return State{Requests: rate(&a.requests, k.Limits.Requests), Tokens: rate(&a.tokens, k.Limits.Tokens)}
}

// Used gives what keys have used of their budgets, and when each was last used, in their order: from the database, and while that can't be had, as far as it
// is known here.
func (g *Gate) Used(ctx context.Context, keys []*Key) (used []float64, last []time.Time) {
	used, last = make([]float64, len(keys)), make([]time.Time, len(keys))
	question := make([]query.ClientSince, len(keys))
	now := time.Now()
	for i, k := range keys {
		from := now
		if k.Budget != nil {
			from, _ = k.Budget.Period.Bounds(now, g.zone)
		}
		question[i] = query.ClientSince{Principal: k.ID, Since: from}
	}
	usage, err := g.usage(ctx, question)
	for i, k := range keys {
		if err == nil && i < len(usage) {
			last[i] = usage[i].LastUsed.Time
		}
		if k.Budget == nil {
			continue
		}
		s := &g.account(k.ID).spent
		if err == nil && i < len(usage) {
			s.mu.Lock()
			s.roll(k.Budget.Period, now, g.zone)
			s.mu.Unlock()
			s.told(question[i].Since, usage[i])
		}
		s.mu.Lock()
		used[i] = s.used(k.Budget)
		s.mu.Unlock()
	}
	return used, last
}
