package dispatcher

import (
	"hydrallm/services/dispatcher/internal/keypool"
	"hydrallm/shared/config"
)

// pools makes the key pool of each provider that has one. A provider with a single key has none: its breaker is all it needs (C-11).
// rested is told of each rest that a failure seen here imposes.
func pools(cfg *config.Config, rested func(provider string, r keypool.Cooldown)) map[string]*keypool.Pool {
	c := cfg.Resilience.Cooldowns
	cooldowns := keypool.Cooldowns{Forbidden: c.Forbidden, Quota: c.Quota, Other: c.Other, Max: c.Max}
	all := map[string]*keypool.Pool{}
	for _, p := range cfg.Providers {
		if !p.Pooled {
			continue
		}
		keys := make([]keypool.Key, len(p.Keys))
		for i, k := range p.Keys {
			keys[i] = keypool.Key{Value: k.Value.Reveal(), Tier: k.Tier}
		}
		all[p.ID] = keypool.New(keys, cooldowns, func(r keypool.Cooldown) { rested(p.ID, r) })
	}
	return all
}
