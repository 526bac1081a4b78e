// Package plan turns a routing decision into the channels that may carry it out: the chain of a configured model, or the providers, agents and
// the last resort that automatic routing may use, in order.
package plan

import (
	"fmt"
	"slices"
	"sync/atomic"

	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/execute"
	"hydrallm/services/dispatcher/internal/keypool"
	"hydrallm/shared/config"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/modelindex"
	"hydrallm/shared/openai"
)

// Config is what a planner is built from.
type Config struct {
	Gateway *config.Config           // at first, see Use
	Pools   map[string]*keypool.Pool // by provider
	Book    func() *modelindex.Book  // the models that are known now

	// Dialect gives how a provider is spoken to. routed says that clients do not know which provider it will be, so that their requests have to
	// be fitted to it; a configured model gets them as they are.
	Dialect func(p config.Provider, routed bool) dialect.Dialect
}

// Planner is safe for concurrent use.
type Planner struct {
	cfg    Config
	now    atomic.Pointer[table]
	absent absent
	lacks  lacks
}

// table is what a configuration says of chains. It is never changed.
type table struct {
	routing    config.Routing
	configured map[string]*execute.Chain
	places     map[string]*place // by provider
	limited    limits
	rates      rates
}

var _ execute.Planner = (*Planner)(nil)

// place is a provider as automatic routing uses it.
type place struct {
	provider config.Provider
	channel  *execute.Channel
	agent    bool
	fill     *openai.Patch // defaults of the provider
	patch    *openai.Patch // of the provider
	streamed *openai.Patch // the same for streams, whose usage is asked for too
	prices   config.Estimates
	refuses  *atomic.Bool // the provider refuses to be asked for it
}

// New checks the patches of the configuration.
func New(cfg Config) (*Planner, error) {
	p := &Planner{cfg: cfg}
	return p, p.Use(cfg.Gateway, cfg.Pools)
}

// Use has requests from now on go as another configuration says. Those under way keep their chains. With an error nothing changes. It must not be called
// by two at the same time.
func (p *Planner) Use(gateway *config.Config, pools map[string]*keypool.Pool) (err error) {
	cfg := p.cfg
	cfg.Gateway, cfg.Pools = gateway, pools
	t := &table{routing: gateway.Routing, places: map[string]*place{}, limited: limitsOf(gateway.Upstreams), rates: ratesOf(gateway.Upstreams)}
	if t.configured, err = configured(cfg, t.limited); err != nil {
		return err
	}
	before := p.now.Load()
	for _, provider := range gateway.Providers {
		at, err := newPlace(cfg, provider)
		if err != nil {
			return err
		}
		if before != nil {
			if was, there := before.places[provider.ID]; there && was.provider.URL == provider.URL {
				at.refuses = was.refuses
			}
		}
		t.places[provider.ID] = at
	}
	p.now.Store(t)
	return nil
}

// askUsage makes a stream end with its usage, for the ledger; the client gets it if it asked too.
var askUsage = []byte(`{"stream_options":{"include_usage":true}}`)

func newPlace(cfg Config, p config.Provider) (*place, error) {
	patch, err := openai.CompilePatch(p.Patch)
	if err != nil {
		return nil, fmt.Errorf("reading the patch of provider %q: %w", p.ID, err)
	}
	streamed, err := openai.CompilePatch(askUsage, p.Patch)
	if err != nil {
		return nil, fmt.Errorf("reading the patch of provider %q: %w", p.ID, err)
	}
	defaults, err := openai.CompilePatch(p.Defaults)
	if err != nil {
		return nil, fmt.Errorf("reading the defaults of provider %q: %w", p.ID, err)
	}
	c := channel(p)
	c.ID, c.Circuit, c.Limit, c.Think, c.Pool = p.ID, ProviderCircuit(p.ID), p.Limit, think(p.ThinkTags), cfg.Pools[p.ID]
	c.Dialect = cfg.Dialect(p, true)
	return &place{provider: p, channel: c, agent: c.Agent != "", fill: defaults, patch: patch, streamed: streamed, prices: cfg.Gateway.Routing.Estimates(p), refuses: &atomic.Bool{}}, nil
}

// ProviderCircuit names the breaker of a provider, apart from those of upstreams.
func ProviderCircuit(provider string) string { return "provider:" + provider }

// Plan gives the chain for a decision. The error is a *fault.Fault.
func (p *Planner) Plan(d *contract.Decision, stream bool) (*execute.Chain, error) {
	if d.Configured {
		chain, ok := p.now.Load().configured[d.Model]
		if !ok {
			f := fault.New(fault.ModelNotFound, fmt.Sprintf("The model `%s` does not exist", d.Model))
			f.Param = "model"
			return nil, f
		}
		return chain, nil
	}
	r := &route{planner: p, table: p.now.Load(), decision: d, book: p.cfg.Book(), stream: stream}
	r.build()
	r.sort()
	if len(r.links) == 0 {
		return nil, fault.New(fault.Failed, "all upstreams failed (no model is known that could answer)")
	}
	return execute.NewChain(r.links), nil
}

// Absent notes that a provider does not have a model that the gateway chose (C-43). It is not chosen again for a while.
func (p *Planner) Absent(provider, model string) { p.absent.note(provider, model) }

// Lacks notes that a model which the gateway chose refused a request for what it needs. It is not chosen for such a request again for a while
//
func (p *Planner) Lacks(provider, model string, needs contract.Features) {
	p.lacks.note(provider, model, needs)
}

// Refuses notes that a provider refuses to be asked for the usage of streams. It is not asked again.
func (p *Planner) Refuses(provider string) {
	if at, ok := p.now.Load().places[provider]; ok {
		at.refuses.Store(true)
	}
}

// Direct gives the link that a request takes which names a provider and leaves the model to it. ok is false when no model is known.
func (p *Planner) Direct(provider string) (l execute.Link, ok bool) {
	at, known := p.now.Load().places[provider]
	if !known {
		return execute.Link{}, false
	}
	d := &contract.Decision{Provider: provider, PinProvider: true}
	if at.agent {
		d.Provider, d.Agent = "", provider
	}
	chain, err := p.Plan(d, false)
	if err != nil {
		return execute.Link{}, false
	}
	return chain.Links[0], true
}

// Configured lists the links of the configured models.
func (p *Planner) Configured() []execute.Link {
	var all []execute.Link
	for _, chain := range p.now.Load().configured {
		all = append(all, chain.Links...)
	}
	return all
}

// Chains lists the upstreams of each configured model, in order.
func (p *Planner) Chains() map[string][]string {
	configured := p.now.Load().configured
	names := make(map[string][]string, len(configured))
	for model, chain := range configured {
		for _, link := range chain.Links {
			names[model] = append(names[model], link.Channel.ID)
		}
	}
	return names
}

// cloud lists the providers that automatic routing may use, in order of priority.
func (t *table) cloud() []string {
	return slices.DeleteFunc(slices.Clone(t.routing.Priority), func(id string) bool {
		place, ok := t.places[id]
		return !ok || place.agent
	})
}
