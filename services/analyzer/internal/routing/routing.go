// Package routing decides which model serves a request. It is pure: the same request over the same data gives the same decision, without
// network, disk or clock. Its only side effect is the counter that lets the fast providers take turns.
package routing

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"hydrallm/shared/config"
	"hydrallm/shared/contract"
	"hydrallm/shared/modelindex"
)

// Question is what routing wants to know of a request.
type Question struct {
	Operation contract.Operation
	Model     string            // the name as the client sent it; "" is automatic
	Tokens    int64             // estimated size
	Needs     contract.Features // of a model
	Search    bool              // the client asks for a web search; it never decides where a request goes
}

// State is what is known of the providers at the moment of a decision.
type State struct {
	Providers map[string]contract.ProviderState // by id
	Book      *modelindex.Book                  // discovered models; nil is an empty one
}

// Router knows the names of the configuration. It is read-only and safe for concurrent use.
type Router struct {
	configured map[string]struct{}
	exact      map[string]*place // by id
	folded     map[string]*place // by id in lower case; of two the first in the configuration
	idSlashes  int               // most slashes in an id
	ordered    []*place          // all: those of the priority list in its order, then the rest
	priority   []*place
	fast       []*place // only those that are in the priority list
	large      *place   // or nil
	fallback   *place   // or nil
	threshold  int64

	aliases        map[string]string
	foldedAliases  map[string]string // by name in lower case
	defaultAliases bool              // the operator has given none
	freeModels     []string          // in lower case
	premiumModels  []string
}

// place is a configured provider or local agent.
type place struct {
	id       string
	folded   string
	agent    bool
	hinted   bool // keywords lead to it
	defaults modelindex.Defaults
}

// New makes a router for a configuration. Names in the routing settings that lead nowhere are left out.
func New(cfg *config.Config) *Router {
	r := &Router{
		configured: map[string]struct{}{}, exact: map[string]*place{}, folded: map[string]*place{},
		threshold: int64(cfg.Routing.MaxTokensFast), aliases: cfg.Routing.Aliases, foldedAliases: map[string]string{},
		defaultAliases: maps.Equal(cfg.Routing.Aliases, config.DefaultAliases()), freeModels: lower(cfg.Routing.FreeModels), premiumModels: lower(cfg.Routing.PremiumModels),
	}
	for _, m := range cfg.Models {
		if m.Usable() {
			r.configured[m.Name] = struct{}{}
		}
	}
	for i := range cfg.Providers {
		r.add(&cfg.Providers[i])
	}
	for _, p := range cfg.Providers { // the rest, in their order
		if at := r.exact[p.ID]; !slices.Contains(cfg.Routing.Priority, p.ID) {
			r.ordered = append(r.ordered, at)
		}
	}
	r.priority = r.known(cfg.Routing.Priority)
	r.ordered = append(slices.Clone(r.priority), r.ordered...)
	for _, p := range r.known(cfg.Routing.Fast) {
		if slices.Contains(r.priority, p) {
			r.fast = append(r.fast, p)
		}
	}
	r.large, r.fallback = r.exact[cfg.Routing.Large], r.exact[cfg.Routing.FinalFallback]
	for _, name := range slices.Sorted(maps.Keys(r.aliases)) {
		if folded := strings.ToLower(name); r.foldedAliases[folded] == "" {
			r.foldedAliases[folded] = r.aliases[name]
		}
	}
	return r
}

func (r *Router) add(p *config.Provider) {
	at := &place{
		id: p.ID, folded: strings.ToLower(p.ID), agent: p.Agent(), hinted: hinted(p.ID),
		defaults: modelindex.Defaults{Free: p.DefaultModels.Free, Premium: p.DefaultModels.Premium},
	}
	r.exact[p.ID] = at
	if r.folded[at.folded] == nil {
		r.folded[at.folded] = at
	}
	r.idSlashes = max(r.idSlashes, strings.Count(p.ID, "/"))
}

// known gives the places of ids that are configured, each once.
func (r *Router) known(ids []string) []*place {
	var list []*place
	for _, id := range ids {
		if p := r.exact[id]; p != nil && !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}

func lower(words []string) []string {
	list := make([]string, 0, len(words))
	for _, w := range words {
		if w != "" {
			list = append(list, strings.ToLower(w))
		}
	}
	return list
}

// lookup gives the place with an id in any case, or nil.
func (r *Router) lookup(id string) *place {
	if p := r.exact[id]; p != nil {
		return p
	}
	return r.folded[strings.ToLower(id)]
}

// Decide says where a request goes. A name of the configuration matches exactly and shadows all others. Only a small automatic request
// takes a turn. The error is a fault for the client: the model does not exist, or nothing is configured that automatic routing could
// call.
func (r *Router) Decide(q Question, s State, turn *atomic.Uint64) (contract.Decision, error) {
	if s.Book == nil {
		s.Book = modelindex.NewBook()
	}
	c := &choice{Router: r, Question: q, State: s, turn: turn}
	d, ok := r.configuredModel(q.Model)
	if !ok {
		var err error
		if d, err = c.decide(); err != nil {
			return d, err
		}
	}
	d.Needs, d.Search, d.Tokens = q.Needs, q.Search, q.Tokens
	if !d.Configured {
		d.Premium = c.premium(d.Provider, d.Model)
	}
	return d, nil
}

func (r *Router) configuredModel(name string) (d contract.Decision, ok bool) {
	if _, ok := r.configured[name]; !ok {
		return contract.Decision{}, false
	}
	return contract.ConfiguredModel(name), true
}

// choice is one decision while it is being made.
type choice struct {
	*Router
	Question
	State

	turn *atomic.Uint64
}

func (c *choice) decide() (contract.Decision, error) {
	name := strings.TrimSpace(c.Model)
	if c.Operation == contract.Embeddings {
		return c.embeddings(name)
	}
	return c.resolve(name, true)
}

// usable says whether a place may be called now. Agents need no key, so that one of which nothing is said is thought to be there.
func (c *choice) usable(p *place) bool {
	if s, known := c.Providers[p.id]; known {
		return s.Usable()
	}
	return p.agent
}

// at is the decision to call a place first.
func at(p *place, model, reason string) contract.Decision {
	d := contract.Decision{Model: model, Reason: reason}
	if p.agent {
		d.Agent = p.id
	} else {
		d.Provider = p.id
	}
	return d
}
