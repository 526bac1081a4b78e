package dispatcher

import (
	"context"
	"log/slog"
	"time"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/keypool"
	"hydrallm/shared/config"
	"hydrallm/shared/fault"
	"hydrallm/shared/telemetry"
)

// pools makes the key pool of each provider that has one. A provider with a single key has none: its breaker is all it needs (C-11).
// rested is told of each rest that begins or ends by what is seen here.
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

// logCooldown says that a key is not used for a while, and why. A limit that is over soon is everyday; anything else somebody may have to mend.
func logCooldown(log *slog.Logger, provider string, r keypool.Cooldown) {
	level := slog.LevelWarn
	if r.Class == classify.Rate {
		level = slog.LevelInfo
	}
	pairs := []any{"provider", provider, "key", r.Index, "reason", string(r.Class), "for", time.Until(r.Until).Round(time.Second)}
	if r.Model != "" {
		pairs = append(pairs, "model", fault.Shown(r.Model))
	}
	telemetry.Event(context.Background(), log, level, "key rests", pairs...)
}
