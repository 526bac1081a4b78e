package plan

import (
	"cmp"
	"slices"
	"time"

	"hydrallm/services/dispatcher/internal/discover"
	"hydrallm/services/dispatcher/internal/execute"
	"hydrallm/services/dispatcher/internal/keypool"
	"hydrallm/shared/config"
	"hydrallm/shared/contract"
	"hydrallm/shared/modelindex"
)

// route is the chain of one decision while it is built.
type route struct {
	*table

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
		for _, id := range r.cloud() {
			r.provider(id, "", false)
		}
		r.lastResort()
	}
}

// provider adds a cloud provider with the model, or with its default when there is none or the gateway chose one that can't be called now. It
// is left out when no model is known.
func (r *route) provider(id, model string, premium bool) {
	at, ok := r.places[id]
	if !ok || slices.Contains(r.used, id) {
		return
	}
	if model == "" || !r.decision.PinModel && (r.missing(at, model) || r.resting(at, model, premium) || r.fit(at, model) == modelindex.Unfit) {
		m, ok := r.defaultModel(at)
		if !ok {
			return
		}
		model, premium = m.ID, m.Tier == contract.TierPremium
	}
	r.add(at, execute.Link{Model: model, Premium: premium, Large: id == r.routing.Large})
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

// fit says how well a model suits what the request needs, as far as lists and refusals tell.
func (r *route) fit(at *place, model string) modelindex.Fit {
	if r.planner.lacks.is(at.provider.ID, model, r.decision.Needs) {
		return modelindex.Unfit
	}
	m, _ := r.book.Find(at.provider.ID, model)
	return m.Fit(r.decision.Needs)
}

// fits are the judgements in order of preference.
var fits = [...]modelindex.Fit{modelindex.Fits, modelindex.MayFit, modelindex.Unfit}

// defaultModel chooses the model of a provider: never one that turned out to be missing (C-43), if possible one that has what the request needs,
// or may have it, and of those one for which a key may be used now.
func (r *route) defaultModel(at *place) (modelindex.Model, bool) {
	for _, worst := range fits {
		refused := func(m modelindex.Model) bool {
			return r.missing(at, m.ID) || m.Fit(r.decision.Needs) > worst || worst != modelindex.Unfit && r.planner.lacks.is(at.provider.ID, m.ID, r.decision.Needs)
		}
		resting := func(m modelindex.Model) bool { return refused(m) || r.resting(at, m.ID, r.premium(at, m.ID)) }
		if m, ok := r.choose(at, resting); ok {
			return m, true
		}
		if m, ok := r.choose(at, refused); ok {
			return m, true
		}
	}
	return modelindex.Model{}, false
}

func (r *route) choose(at *place, refused func(m modelindex.Model) bool) (modelindex.Model, bool) {
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

// same adds the other providers that discovery knows to have exactly this model, the cheapest first, those of the same cost in order of priority
//
func (r *route) same(model string) {
	providers := r.cloud()
	slices.SortStableFunc(providers, func(a, b string) int {
		return cmp.Compare(r.rates.cost(a, model), r.rates.cost(b, model))
	})
	for _, id := range providers {
		if m, ok := r.book.Find(id, model); ok {
			r.provider(id, model, m.Tier == contract.TierPremium)
		}
	}
}

// agent adds a local agent. Which model it uses is its own affair unless the client named one.
func (r *route) agent(id, model string, named bool) {
	at, ok := r.places[id]
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
	case config.Dialects[at.provider.Dialect].Chooses:
		return cmp.Or(model, ownChoice)
	}
	l, discovered := r.book.Listing(at.provider.ID)
	if model == "" {
		model = at.provider.DefaultModels.Free
	}
	if !discovered && model != "" {
		return model
	}
	for _, worst := range fits {
		left := slices.DeleteFunc(slices.Clone(l.Models), func(m modelindex.Model) bool { return r.missing(at, m.ID) || r.fit(at, m.ID) > worst })
		if id, ok := discover.Preferred(left, model); ok {
			return id
		}
	}
	id, _ := discover.Preferred(nil, model)
	return id
}

// lastResort adds the local fallback, which has no breaker and no budget.
func (r *route) lastResort() {
	id := r.routing.FinalFallback
	at, ok := r.places[id]
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
	if r.stream && !at.refuses.Load() {
		l.Patch, l.Plain = at.streamed, at.patch
	}
	l.Counted = r.limited.has(at.provider.ID, l.Model)
	l.Price = cmp.Or(r.rates.price(at.provider.ID, l.Model), at.prices.Of(l.Model))
	m, _ := r.book.Find(at.provider.ID, l.Model)
	l.NoEffort = m.Cannot.Has(contract.FeatureThinking) || r.planner.lacks.is(at.provider.ID, l.Model, contract.FeatureThinking)
	l.NoImages = r.decision.Needs.Has(contract.FeatureImages) && !r.decision.PinModel && m.Cannot.Has(contract.FeatureImages)
	r.links = append(r.links, l)
	r.used = append(r.used, at.provider.ID)
}

// sort puts last who is known not to have what the request needs, and before the others who is known to take its media, behind who was decided;
// sound and files never go to who can't take them, unless nobody else is there. Where the client named the model, the order stands.
func (r *route) sort() {
	needs := r.decision.Needs
	if needs == 0 || r.decision.PinModel || len(r.links) < 2 {
		return
	}
	media := needs & contract.FeaturesMedia
	rank := func(l execute.Link) modelindex.Fit {
		at := r.places[l.Channel.Provider]
		if r.fit(at, l.Model) == modelindex.Unfit {
			return modelindex.Unfit
		}
		m, _ := r.book.Find(at.provider.ID, l.Model)
		return m.Fit(media)
	}
	rest := r.links
	if rank(rest[0]) != modelindex.Unfit {
		rest = rest[1:]
	}
	slices.SortStableFunc(rest, func(a, b execute.Link) int { return cmp.Compare(rank(a), rank(b)) })
	taken := slices.DeleteFunc(slices.Clone(r.links), func(l execute.Link) bool {
		m, _ := r.book.Find(l.Channel.Provider, l.Model)
		return m.Cannot.Any(needs & (contract.FeatureAudio | contract.FeatureFiles))
	})
	if len(taken) > 0 {
		r.links = taken
	}
}
