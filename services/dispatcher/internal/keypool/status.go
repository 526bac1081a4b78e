package keypool

import (
	"maps"
	"slices"
	"time"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/shared/config"
	"hydrallm/shared/query"
)

// Snapshot reads the state of all keys.
func (p *Pool) Snapshot() []query.KeyStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	all := make([]query.KeyStatus, 0, len(p.state))
	for i := range p.state {
		if !p.state[i].removed {
			all = append(all, p.state[i].status(i, now))
		}
	}
	return all
}

func (k *keyState) status(index int, now time.Time) query.KeyStatus {
	s := query.KeyStatus{
		Index: index, ID: config.Mask(k.Value), Tier: k.Tier, State: query.KeyActive, Active: k.cooldown.left(now) == 0, Calls: k.calls,
		Failures: k.failures, FailedAt: k.cooldown.since, Reason: string(k.cooldown.class), Until: k.cooldown.until, Remaining: seconds(k.cooldown.left(now)),
		LastProbed: k.probed,
	}
	if k.failed() {
		s.State = query.KeyFailed
	}
	switch k.cooldown.class {
	case classify.Rate, classify.Quota, classify.Payment:
		s.QuotaLimit = true
	case classify.Auth, classify.Forbidden:
		s.Forbidden = true
	default:
	}
	for _, model := range slices.Sorted(maps.Keys(k.byModel)) {
		if r := k.byModel[model]; r.left(now) > 0 {
			s.Models = append(s.Models, model)
			s.Cooldowns = append(s.Cooldowns, query.ModelCooldown{Model: model, Reason: string(r.class), Until: r.until, Remaining: seconds(r.left(now))})
		}
	}
	if !k.last.At.IsZero() {
		last := k.last
		s.LastError = &last
	}
	return s
}

// seconds rounds up.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
