package dispatcher

import (
	"log/slog"
	"slices"

	"hydrallm/services/dispatcher/internal/breaker"
	"hydrallm/services/dispatcher/internal/systemcontext"
	"hydrallm/shared/config"
)

// gateway is the configuration that is in use.
func (d *Dispatcher) gateway() *config.Config {
	if c := d.using.Load(); c != nil {
		return c
	}
	return d.cfg.Gateway
}

// use has requests from now on go as the configuration says now. Those under way keep their chains, keys and breakers. Which providers there are, and
// where, does not change (config.Reload).
func (d *Dispatcher) use(now *config.Config) {
	before := d.gateway()
	d.front.Store(systemcontext.New(now))
	fresh := map[string]breaker.Config{}
	for id, c := range circuits(now) {
		if target(before, id) != target(now, id) || d.breakers.Get(id) == nil {
			fresh[id] = c
		}
	}
	if err := d.breakers.Renew(fresh); err != nil {
		d.log.Error("taking over settings", slog.Any("error", err))
		return
	}
	d.secrets.add(now.Secrets()...)
	for _, p := range now.Providers {
		was, _ := before.Provider(p.ID)
		d.exchange(p, was.Keys)
	}
	if err := d.planner.Use(now, d.keys); err != nil {
		d.log.Error("taking over settings", slog.Any("error", err))
		return
	}
	d.using.Store(now)
	expect(d.exec.Metrics, now)
	d.note(news{})
}

// exchange gives the pool of a provider the keys that its configuration has now, and takes those out that it had before.
func (d *Dispatcher) exchange(p config.Provider, before []config.Key) {
	pool := d.keys[p.ID]
	if pool == nil {
		return
	}
	has := func(keys []config.Key, value config.Secret) bool {
		return slices.ContainsFunc(keys, func(k config.Key) bool { return k.Value == value })
	}
	for _, k := range p.Keys {
		if !has(before, k.Value) {
			pool.Add(k.Value.Reveal(), k.Tier)
		}
	}
	for _, k := range before {
		if index := pool.Index(k.Value.Reveal()); index >= 0 && !has(p.Keys, k.Value) {
			pool.Remove(index)
		}
	}
}
