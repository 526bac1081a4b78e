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
	Gateway *config.Config
	Pools   map[string]*keypool.Pool // by provider
	Book    func() *modelindex.Book  // the models that are known now

	// Dialect gives how a provider is spoken to. routed says that clients do not know which provider it will be, so that their requests have to
	// be fitted to it; a configured model gets them as they are.
	Dialect func(p config.Provider, routed bool) dialect.Dialect
}

// Planner is safe for concurrent use.
type Planner struct {
	cfg        Config
	configured map[string]*execute.Chain
	places     map[string]*place // by provider
	limited    limits
	rates      rates
	absent     absent
	lacks      lacks
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
	refuses  *atomic.Bool  // the provider refuses to be asked for it
}

// New checks the patches of the configuration.
func New(cfg Config) (*Planner, error) {
	p := &Planner{cfg: cfg, places: map[string]*place{}, limited: limitsOf(cfg.Gateway.Upstreams), rates: ratesOf(cfg.Gateway.Upstreams)}
	var err error
	if p.configured, err = configured(cfg, p.limited); err != nil {
		return nil, err
	}
	for _, provider := range cfg.Gateway.Providers {
		if p.places[provider.ID], err = newPlace(cfg, provider); err != nil {
			return nil, err
		}
	}
	return p, nil
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
	return &place{provider: p, channel: c, agent: c.Agent != "", fill: defaults, patch: patch, streamed: streamed, refuses: &atomic.Bool{}}, nil
}

// ProviderCircuit names the breaker of a provider, apart from those of upstreams.
func ProviderCircuit(provider string) string { return "provider:" + provider }

// Plan gives the chain for a decision. The error is a *fault.Fault.
func (p *Planner) Plan(d *contract.Decision, stream bool) (*execute.Chain, error) {
	if d.Configured {
		chain, ok := p.configured[d.Model]
		if !ok {
			f := fault.New(fault.ModelNotFound, fmt.Sprintf("The model `%s` does not exist", d.Model))
			f.Param = "model"
			return nil, f
		}
		return chain, nil
	}
	r := &route{planner: p, decision: d, book: p.cfg.Book(), stream: stream}
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
	if at, ok := p.places[provider]; ok {
		at.refuses.Store(true)
	}
}

// Direct gives the link that a request takes which names a provider and leaves the model to it. ok is false when no model is known.
func (p *Planner) Direct(provider string) (l execute.Link, ok bool) {
	at, known := p.places[provider]
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
	for _, chain := range p.configured {
		all = append(all, chain.Links...)
	}
	return all
}

// Chains lists the upstreams of each configured model, in order.
func (p *Planner) Chains() map[string][]string {
	names := make(map[string][]string, len(p.configured))
	for model, chain := range p.configured {
		for _, link := range chain.Links {
			names[model] = append(names[model], link.Channel.ID)
		}
	}
	return names
}

// cloud lists the providers that automatic routing may use, in order of priority.
func (p *Planner) cloud() []string {
	return slices.DeleteFunc(slices.Clone(p.cfg.Gateway.Routing.Priority), func(id string) bool {
		place, ok := p.places[id]
		return !ok || place.agent
	})
}
