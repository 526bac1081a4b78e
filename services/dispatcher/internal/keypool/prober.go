package keypool

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/shared/contract"
	"hydrallm/shared/query"
)

const (
	probeLimit     = 20 * time.Second // of one probe
	parallelProbes = 4
)

// Errors of Round and Start.
var (
	ErrRunning = errors.New("keys are being probed already")
	ErrStopped = errors.New("the prober has stopped")
)

// Probe asks a provider with one of its keys for something that costs nothing. The verdict must be what package classify makes of the
// answer or of the failed call. tier is what the answer tells of the key, "" for nothing. It must return when ctx ends.
type Probe func(ctx context.Context, provider string, index int, key string) (v classify.Verdict, tier string)

// Prober probes keys that failed, once their cooldown is over, so that it is known which of them are good again even when nobody calls
// . A key that works is active again, another one cools down anew. It is a lifecycle service.
type Prober struct {
	pools    map[string]*Pool // by provider
	ask      Probe
	interval time.Duration
	log      *slog.Logger

	mu      sync.Mutex
	stopped bool
	round   context.CancelFunc // of the round under way, nil without one
	stop    context.CancelFunc // of the loop, nil before Start
	wg      sync.WaitGroup     // the loop and the round; nothing is added once stopped is set
}

// NewProber makes a prober of these pools, by provider. The map must not change any more; keys may be added to the pools.
func NewProber(pools map[string]*Pool, probe Probe, interval time.Duration, log *slog.Logger) *Prober {
	return &Prober{pools: pools, ask: probe, interval: interval, log: log}
}

// Start begins a round in every interval.
func (h *Prober) Start(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.stopped:
		return ErrStopped
	case h.stop != nil:
		return ErrRunning
	}
	ctx, h.stop = context.WithCancel(context.WithoutCancel(ctx))
	h.wg.Go(func() { h.run(ctx) })
	return nil
}

func (h *Prober) run(ctx context.Context) {
	ticker := time.NewTicker(h.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if _, err := h.Round(ctx, false); err != nil && ctx.Err() == nil {
			h.log.DebugContext(ctx, "no round of probes", slog.Any("error", err)) // an asked one is under way
		}
	}
}

// Stop cancels the probes under way, also those of an asked round, and waits for them.
func (h *Prober) Stop(context.Context) error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	h.stopped = true
	if h.stop != nil {
		h.stop()
	}
	if h.round != nil {
		h.round()
	}
	h.mu.Unlock()
	h.wg.Wait()
	return nil
}

// target is a key to probe.
type target struct {
	provider string
	pool     *Pool
	index    int
}

// Round probes the keys that failed and whose cooldown is over; with force also those that still cool down. It returns when all are
// probed, or with the cause when ctx ends; a probe that was cut short changes nothing. There is one round at a time: a second one fails
// with ErrRunning. It works without Start.
func (h *Prober) Round(ctx context.Context, force bool) (query.Probed, error) {
	ctx, end, err := h.begin(ctx)
	if err != nil {
		return query.Probed{}, err
	}
	defer end()
	if force {
		h.log.InfoContext(ctx, "probing failed keys although they cool down")
	}
	var r query.Probed
	var due []target
	for provider, pool := range h.pools {
		indexes, resting := pool.failures(force)
		r.Resting += resting
		for _, i := range indexes {
			due = append(due, target{provider, pool, i})
		}
	}
	h.probeAll(ctx, due, force, &r)
	return r, context.Cause(ctx)
}

// begin claims the one round.
func (h *Prober) begin(ctx context.Context) (context.Context, func(), error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.stopped:
		return nil, nil, ErrStopped
	case h.round != nil:
		return nil, nil, ErrRunning
	}
	ctx, cancel := context.WithCancel(ctx)
	h.round = cancel
	h.wg.Add(1)
	return ctx, func() {
		cancel()
		h.mu.Lock()
		h.round = nil
		h.mu.Unlock()
		h.wg.Done()
	}, nil
}

// probeAll probes a few keys at a time and adds up what comes out.
func (h *Prober) probeAll(ctx context.Context, due []target, force bool, r *query.Probed) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	targets := make(chan target)
	for range min(parallelProbes, len(due)) {
		wg.Go(func() {
			for t := range targets {
				healed, probed := h.probe(ctx, t, force)
				mu.Lock()
				switch {
				case !probed:
				case healed:
					r.Probed, r.Recovered = r.Probed+1, r.Recovered+1
				default:
					r.Probed, r.Failed = r.Probed+1, r.Failed+1
				}
				mu.Unlock()
			}
		})
	}
	for _, t := range due {
		select {
		case targets <- t:
		case <-ctx.Done():
		}
	}
	close(targets)
	wg.Wait()
}

// probe probes one key, unless that is no longer called for.
func (h *Prober) probe(ctx context.Context, t target, force bool) (healed, probed bool) {
	key, failure, ok := t.pool.suspect(t.index, force)
	if !ok || ctx.Err() != nil {
		return false, false
	}
	limited, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	v, tier := h.ask(limited, t.provider, t.index, key)
	if ctx.Err() != nil {
		return false, false
	}
	healed = t.pool.judge(t.index, failure, v, tier)
	h.log.InfoContext(ctx, "key probed", slog.String("provider", t.provider), slog.Int("key", t.index), slog.String("result", string(v.Class)),
		slog.Bool("active", healed))
	return healed, true
}

// failures gives the keys that failed and whose cooldown is over, with force also the others, and the number of those that are left out.
func (p *Pool) failures(force bool) (due []int, resting int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for i := range p.state {
		switch k := &p.state[i]; {
		case !k.failed():
		case force || k.cooldown.left(now) == 0:
			due = append(due, i)
		default:
			resting++
		}
	}
	return due, resting
}

// suspect gives the key at index and the failure that it is to be probed for, if it is still to be probed: a call may have succeeded or
// failed meanwhile, here or in another dispatcher.
func (p *Pool) suspect(index int, force bool) (key string, failure cooldown, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := &p.state[index]
	return k.Value, k.cooldown, k.failed() && (force || k.cooldown.left(time.Now()) == 0)
}

// judge takes in the verdict of a probe and says whether the key is active now. A success ends the failure that the key was probed for, and no
// newer one. A verdict about the key is a failure (R-165, B-05), for all models because a probe is about none. Anything else says nothing of the
// key, such as a provider that is down or has no list of models: the cooldown has ended, and the next call decides.
func (p *Pool) judge(index int, failure cooldown, v classify.Verdict, tier string) (active bool) {
	p.mu.Lock()
	now := time.Now()
	k := &p.state[index]
	if k.removed {
		p.mu.Unlock()
		return false
	}
	k.probed = now
	r, imposed, ended := Cooldown{Index: index, Class: v.Class, Until: now.Add(p.cooldowns.of(v))}, false, false
	switch {
	case aboutKey(v):
		imposed = k.impose(r, now)
	case k.cooldown == failure && (v.Class == classify.Success || failure.left(now) == 0):
		ended = v.Class == classify.Success && !failure.none()
		k.cooldown = cooldown{}
	}
	if v.Class == classify.Success && tier != "" && tier != contract.TierUnknown {
		k.Tier = tier
	}
	active = !k.failed()
	p.mu.Unlock()
	if imposed {
		p.notify(r)
	}
	if ended {
		p.notify(Cooldown{Index: index})
	}
	return active
}

// aboutKey says whether the verdict of a probe is one on the key. A refusal that is not about its account may be for listing models alone.
func aboutKey(v classify.Verdict) bool {
	switch v.Class { //nolint:exhaustive // the others are about the provider
	case classify.Auth, classify.Rate, classify.Quota, classify.Payment:
		return true
	case classify.Forbidden:
		return !v.PerModel
	}
	return false
}
