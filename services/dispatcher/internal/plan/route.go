package plan

import (
	"cmp"
	"slices"
	"time"

	"hydrallm/services/dispatcher/internal/discover"
	"hydrallm/services/dispatcher/internal/execute"
	"hydrallm/services/dispatcher/internal/keypool"
	"hydrallm/shared/contract"
	"hydrallm/shared/modelindex"
)

// route is the chain of one decision while it is built.
type route struct {
	planner  *Planner
	decision *contract.Decision
	book     *modelindex.Book
	stream   bool
	links    []execute.Link
	used     []string      // providers that have a link
	patience time.Duration // how long a model counts as missing
}

// build puts first who was decided, then, unless that is strict, who may take its place: for a model that the client named the other
// providers that have the same one, for any other request the rest of the priority list with their own models and the last resort.
func (r *route) build() {
	r.patience = absentFor
	if r.fill(); len(r.links) > 0 {
		return
	}
	// There is nothing else, and a model that was missing may be there again.
	if r.patience = 0; r.decision.PinProvider {
		r.patience = absentAlone
	}
	r.fill()
}

func (r *route) fill() {
	d := r.decision
	if d.Agent != "" {
		r.agent(d.Agent, d.Model, d.PinModel)
	} else {
		r.provider(d.Provider, d.Model, d.Premium)
	}
	switch {
	case d.PinProvider:
	case d.PinModel:
		r.same(d.Model)
	default:
		for _, id := range r.planner.cloud() {
			r.provider(id, "", false)
		}
		r.lastResort()
	}
}

// provider adds a cloud provider with the model, or with its default when there is none or the gateway chose one that can't be called now. It
// is left out when no model is known.
func (r *route) provider(id, model string, premium bool) {
	at, ok := r.planner.places[id]
	if !ok || slices.Contains(r.used, id) {
		return
	}
	if model == "" || !r.decision.PinModel && (r.missing(at, model) || r.resting(at, model, premium)) {
		m, ok := r.defaultModel(at)
		if !ok {
			return
		}
		model, premium = m.ID, m.Tier == contract.TierPremium
	}
	r.add(at, execute.Link{Model: model, Premium: premium, Large: id == r.planner.cfg.Gateway.Routing.Large})
}

// missing says whether a model turned out to be missing (C-43).
func (r *route) missing(at *place, model string) bool {
	l, _ := r.book.Listing(at.provider.ID)
	return r.planner.absent.is(l, at.provider.ID, model, r.patience)
}

// resting says whether keys may be used, but none of them for this model: its limit is reached, or it is premium and they are not.
func (r *route) resting(at *place, model string, premium bool) bool {
	pool := at.channel.Pool
	if pool == nil || !pool.Usable("", keypool.AnyKey, nil) {
		return false
	}
	want := keypool.AnyKey
	if premium {
		want = keypool.PremiumKey
	}
	return !pool.Usable(model, want, nil)
}

// defaultModel chooses the model of a provider: never one that turned out to be missing (C-43), and if possible one for which a key may be
// used now, and one that takes images if the request has some.
func (r *route) defaultModel(at *place) (modelindex.Model, bool) {
	missing := func(model string) bool { return r.missing(at, model) }
	blind := func(model string) bool {
		known, ok := r.book.Find(at.provider.ID, model)
		return missing(model) || r.decision.Images && (!ok || !known.Images)
	}
	for _, refused := range [...]func(string) bool{blind, missing} {
		if m, ok := r.choose(at, func(model string) bool { return refused(model) || r.resting(at, model, r.premium(at, model)) }); ok {
			return m, true
		}
		if m, ok := r.choose(at, refused); ok {
			return m, true
		}
	}
	return modelindex.Model{}, false
}

func (r *route) choose(at *place, refused func(model string) bool) (modelindex.Model, bool) {
	return r.book.Default(at.provider.ID, at.defaults(), r.premiumKey(at), refused)
}

// premium says whether a model that Default may choose is of the premium tier.
func (r *route) premium(at *place, model string) bool {
	if m, ok := r.book.Find(at.provider.ID, model); ok {
		return m.Tier == contract.TierPremium
	}
	d := at.defaults()
	return model == d.Premium && model != d.Free
}

func (p *place) defaults() modelindex.Defaults {
	return modelindex.Defaults{Free: p.provider.DefaultModels.Free, Premium: p.provider.DefaultModels.Premium}
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

// ownChoice lets an agent that has a default of its own use that.
const ownChoice = "auto"

func (r *route) agentModel(at *place, model string, named bool) string {
	switch {
	case named && model != "":
		return model
	case at.provider.Dialect == "opencode", at.provider.Dialect == "openclaw":
		return cmp.Or(model, ownChoice)
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
	chosen := discover.Preferred(models, model)
	if missing := func(m modelindex.Model) bool { return r.missing(at, m.ID) }; r.missing(at, chosen) {
		chosen = discover.Preferred(slices.DeleteFunc(slices.Clone(models), missing), model)
	}
	return chosen
}

func withImages(models []modelindex.Model) []modelindex.Model {
	return slices.DeleteFunc(slices.Clone(models), func(m modelindex.Model) bool { return !m.Images })
}

// lastResort adds the local fallback, which has no breaker and no budget.
func (r *route) lastResort() {
	id := r.planner.cfg.Gateway.Routing.FinalFallback
	at, ok := r.planner.places[id]
	if !ok {
		return
	}
	if i := slices.Index(r.used, id); i >= 0 {
		r.links[i].LastResort = true
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
		r.links[i].LastResort = true
	}
}

func (r *route) add(at *place, l execute.Link) {
	l.Channel, l.Defaults, l.Patch = at.channel, at.fill, at.patch
	if r.stream {
		l.Patch = at.streamed
	}
	l.NoImages = r.decision.Images && !r.decision.PinModel && !r.takesImages(at, l)
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
