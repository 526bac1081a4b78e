package dispatcher

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/discover"
	"hydrallm/services/dispatcher/internal/keypool"
	"hydrallm/services/dispatcher/internal/plan"
	"hydrallm/shared/config"
	"hydrallm/shared/modelindex"
	"hydrallm/shared/query"
)

// freshFor is how long a listing of another dispatcher spares this one the asking.
const freshFor = 10 * time.Minute

// sourceOf says where a provider lists its models.
func sourceOf(p config.Provider) discover.Source {
	s := discover.Source{Provider: p.ID, Vendor: plan.Vendor(p), Dialect: p.Dialect, URL: p.URL, Header: http.Header{}}
	for name, value := range p.Headers {
		s.Header.Set(name, value.Reveal())
	}
	return s
}

// newDiscovery makes what asks the providers for their models.
func (d *Dispatcher) newDiscovery() *discover.Runner {
	g := d.gateway()
	sources := make([]discover.Source, len(g.Providers))
	for i, p := range g.Providers {
		sources[i] = sourceOf(p)
	}
	return discover.NewRunner(discover.Config{
		Sources: sources, Client: d.client, Premium: g.Routing.PremiumModels, Free: g.Routing.FreeModels, Logger: d.log,
		Keys:    d.listingKeys,
		Reached: d.exec.Health.Reached,
		Publish: func(ctx context.Context, l modelindex.Listing) error { return modelindex.Put(ctx, d.bus, l) },
		Fresh: func(s discover.Source) bool {
			l, ok := d.models().Listing(s.Provider)
			return ok && l.From == s.Fingerprint() && time.Since(l.At) < freshFor
		},
	})
}

// relist gives a function that is told of each change of the model index. It has a provider asked again whose listing has vanished, as all do
// when NATS loses its disk.
func (d *Dispatcher) relist(r *discover.Runner) func(*modelindex.Book) {
	before := modelindex.NewBook()
	return func(now *modelindex.Book) {
		for _, p := range d.gateway().Providers {
			_, was := before.Listing(p.ID)
			if _, is := now.Listing(p.ID); was && !is {
				r.RefreshSoon(p.ID)
			}
		}
		before = now
	}
}

// listingKeys gives the keys to list models with.
func (d *Dispatcher) listingKeys(provider string) []discover.Key {
	if pool := d.keys[provider]; pool != nil {
		var keys []discover.Key
		for _, s := range pool.Samples() {
			keys = append(keys, discover.Key{Index: s.Index, Value: s.Key})
		}
		return keys
	}
	if p, _ := d.gateway().Provider(provider); len(p.Keys) > 0 {
		return []discover.Key{{Value: p.Keys[0].Value.Reveal()}}
	}
	return []discover.Key{{}}
}

// forgetMoved removes the lists of providers that were asked for them elsewhere: the configuration has changed since.
func (d *Dispatcher) forgetMoved(ctx context.Context) error {
	var errs []error
	for _, p := range d.gateway().Providers {
		if l, ok := d.models().Listing(p.ID); ok && l.From != sourceOf(p).Fingerprint() {
			errs = append(errs, modelindex.Remove(ctx, d.bus, p.ID))
		}
	}
	return errors.Join(errs...)
}

// probe asks a provider for its models with one of its keys: what it answers tells whether the key is good.
func (d *Dispatcher) probe(ctx context.Context, provider string, _ int, key string) (v classify.Verdict, tier string) {
	p, _ := d.gateway().Provider(provider)
	_, err := discover.List(ctx, d.client, sourceOf(p), key)
	if refused, ok := errors.AsType[*discover.RefusedError](err); ok {
		return refused.Verdict, ""
	}
	if err != nil {
		return classify.Transport(ctx, err), ""
	}
	return classify.Verdict{Class: classify.Success}, ""
}

// probeKeys answers query.ProbeKeys.
func (r *run) probeKeys(ctx context.Context, q query.Probe) (query.Probed, error) {
	result, err := r.prober.Round(ctx, q.Force)
	if errors.Is(err, keypool.ErrRunning) {
		return query.Probed{}, query.ErrProbing
	}
	result.Status = query.Success
	return result, err
}

// refreshModels answers query.RefreshModels.
func (r *run) refreshModels(ctx context.Context, _ query.None) (query.Done, error) {
	if err := r.discovery.Refresh(ctx); err != nil {
		return query.Done{}, err
	}
	r.d.log.InfoContext(ctx, "models refreshed on demand", slog.Int("providers", len(r.d.gateway().Providers)))
	return query.Done{Status: query.Success}, nil
}
