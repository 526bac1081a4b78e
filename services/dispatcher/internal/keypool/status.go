package keypool

import (
	"slices"
	"time"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/shared/config"
)

// States of a key.
const (
	StateActive = "active"
	StateFailed = "failed" // and no success since; it may be used again once its cooldown is over
)

// Status is what the admin API shows of a key. It holds the key only masked, and nothing that a provider wrote.
type Status struct {
	Index      int            `json:"index"`
	ID         string         `json:"id"` // the masked key
	Tier       string         `json:"tier"`
	State      string         `json:"status"`
	Active     bool           `json:"usable"` // may be used for some model now, whatever its state
	Calls      int64          `json:"usage"`
	Failures   int64          `json:"failures"` // calls that cost the key a cooldown
	FailedAt   time.Time      `json:"failed_at,omitzero"`
	Reason     classify.Class `json:"error,omitempty"`
	QuotaLimit bool           `json:"is_quota_limit"`
	Forbidden  bool           `json:"is_forbidden"`
	Until      time.Time      `json:"cooldown_until,omitzero"` // of the cooldown for every model; may be past
	Remaining  int            `json:"cooldown_remaining"`      // of the same in seconds, rounded up
	Models     []string       `json:"resting_models,omitempty"`
	LastProbed time.Time      `json:"last_probed,omitzero"`
}

// Snapshot reads the state of all keys.
func (p *Pool) Snapshot() []Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	all := make([]Status, len(p.state))
	for i := range p.state {
		all[i] = p.state[i].status(i, now)
	}
	return all
}

func (k *keyState) status(index int, now time.Time) Status {
	s := Status{
		Index: index, ID: config.Mask(k.Value), Tier: k.Tier, State: StateActive, Active: k.cooldown.left(now) == 0, Calls: k.calls,
		Failures: k.failures, FailedAt: k.cooldown.since, Reason: k.cooldown.class, Until: k.cooldown.until, Remaining: seconds(k.cooldown.left(now)),
		LastProbed: k.probed,
	}
	if k.failed() {
		s.State = StateFailed
	}
	switch k.cooldown.class {
	case classify.Rate, classify.Quota, classify.Payment:
		s.QuotaLimit = true
	case classify.Auth, classify.Forbidden:
		s.Forbidden = true
	default:
	}
	for model, r := range k.byModel {
		if r.left(now) > 0 {
			s.Models = append(s.Models, model)
		}
	}
	slices.Sort(s.Models)
	return s
}

// seconds rounds up.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
