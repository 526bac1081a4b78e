package plan

import (
	"slices"

	"hydrallm/services/dispatcher/internal/discover"
	"hydrallm/services/dispatcher/internal/execute"
	"hydrallm/shared/catalog"
	"hydrallm/shared/contract"
)

// route is the chain of one decision while it is built.
type route struct {
	planner  *Planner
	decision *contract.Decision
	book     *catalog.Book
	stream   bool
	links    []execute.Link
	used     []string // providers that have a link
}

// build puts first who was decided, then, unless that is strict, who may take its place: for a model that the client named the other
// providers that have the same one, for any other request the rest of the priority list with their own models and the last resort.
func (r *route) build() {
	d := r.decision
	if d.Agent != "" {
		r.agent(d.Agent, d.Model, d.Named)
	} else {
		r.provider(d.Provider, d.Model, d.Premium)
	}
	switch {
	case d.Strict:
	case d.Named:
		r.same(d.Model)
	default:
		for _, id := range r.planner.cloud() {
			r.provider(id, "", false)
		}
		r.lastResort()
	}
}

// provider adds a cloud provider with the model, or with its default when there is none. It is left out when no model is known.
func (r *route) provider(id, model string, premium bool) {
	at, ok := r.planner.places[id]
	if !ok || slices.Contains(r.used, id) {
		return
	}
	if model == "" || !r.decision.Named && r.planner.absent.is(id, model) {
		m, ok := r.defaultModel(at)
		if !ok {
			return
		}
		model, premium = m.ID, m.Tier == contract.TierPremium
	}
	r.add(at, execute.Link{Model: model, Premium: premium, Large: id == r.planner.cfg.Gateway.Routing.Large})
}

// defaultModel chooses the model of a provider: one that takes images if the request has some and one is known, and never one that turned out
// to be missing (C-43).
func (r *route) defaultModel(at *place) (catalog.Model, bool) {
	id := at.provider.ID
	defaults := catalog.Defaults{Free: at.provider.DefaultModels.Free, Premium: at.provider.DefaultModels.Premium}
	absent := func(model string) bool { return r.planner.absent.is(id, model) }
	if r.decision.Images {
		m, ok := r.book.Default(id, defaults, r.premiumKey(at), func(model string) bool {
			known, ok := r.book.Find(id, model)
			return !ok || !known.Images || absent(model)
		})
		if ok {
			return m, true
		}
	}
	return r.book.Default(id, defaults, r.premiumKey(at), absent)
}

// premiumKey says whether a premium key of the provider may be used now.
func (r *route) premiumKey(at *place) bool {
	pool := at.channel.Pool
	if pool == nil {
		return len(at.provider.Keys) > 0 && at.provider.Keys[0].Tier == contract.TierPremium
	}
	return pool.Count("")[contract.TierPremium] > 0
}

// same adds the other providers that discovery knows to have exactly this model.
func (r *route) same(model string) {
	for _, id := range r.planner.cloud() {
		if m, ok := r.book.Find(id, model); ok {
			r.provider(id, model, m.Tier == contract.TierPremium)
		}
	}
}

// agent adds a local agent. Which model it uses is its own affair unless the client named one.
func (r *route) agent(id, model string, named bool) {
	at, ok := r.planner.places[id]
	if !ok || slices.Contains(r.used, id) {
		return
	}
	r.add(at, execute.Link{Model: r.agentModel(at, model, named)})
}

func (r *route) agentModel(at *place, model string, named bool) string {
	switch {
	case named && model != "":
		return model
	case at.provider.Dialect == "opencode", at.provider.Dialect == "openclaw": // they have a default of their own
		return model
	}
	l, discovered := r.book.Listing(at.provider.ID)
	if model == "" {
		model = at.provider.DefaultModels.Free
	}
	if !discovered && model != "" {
		return model
	}
	models := l.Models
	if seeing := withImages(models); r.decision.Images && len(seeing) > 0 {
		models = seeing
	}
	return discover.Preferred(models, model)
}

func withImages(models []catalog.Model) []catalog.Model {
	return slices.DeleteFunc(slices.Clone(models), func(m catalog.Model) bool { return !m.Images })
}

// lastResort adds the local fallback, which has no breaker and no budget.
func (r *route) lastResort() {
	id := r.planner.cfg.Gateway.Routing.FinalFallback
	at, ok := r.planner.places[id]
	if !ok {
		return
	}
	if i := slices.Index(r.used, id); i >= 0 {
		r.links[i].Final = true
		return
	}
	model := ""
	if !at.agent {
		r.provider(id, "", false)
	} else {
		model = r.agentModel(at, "", false)
		r.add(at, execute.Link{Model: model})
	}
	if i := slices.Index(r.used, id); i >= 0 {
		r.links[i].Final = true
	}
}

func (r *route) add(at *place, l execute.Link) {
	l.Channel, l.Patch = at.channel, at.patch
	if r.stream {
		l.Patch = at.streamed
	}
	l.NoImages = r.decision.Images && !r.decision.Named && !r.takesImages(at, l)
	r.links = append(r.links, l)
	r.used = append(r.used, at.provider.ID)
}

// takesImages says whether a model is known to take images. Of the provider for large requests it is assumed while discovery has not answered
//
func (r *route) takesImages(at *place, l execute.Link) bool {
	if m, ok := r.book.Find(at.provider.ID, l.Model); ok {
		return m.Images || l.Large && at.channel.Vendor == "gemini"
	}
	return l.Large
}
