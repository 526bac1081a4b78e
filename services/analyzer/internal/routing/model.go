package routing

import (
	"slices"
	"strings"

	"hydrallm/shared/contract"
	"hydrallm/shared/modelindex"
)

// model chooses the model of a place for a request that names none: by the tiers of its usable keys, and one that has what the request
// needs, else one that may have it. It is "" when nothing is known, and for agents, which find one themselves, unless it is known
// which of theirs takes more than text.
func (c *choice) model(p *place) string {
	if p.agent {
		m, _ := c.suited(p, modelindex.Fits)
		if !c.Needs.Any(contract.FeaturesMedia) {
			return ""
		}
		return m.ID
	}
	for _, worst := range [...]modelindex.Fit{modelindex.Fits, modelindex.MayFit, modelindex.Unfit} {
		if m, ok := c.suited(p, worst); ok {
			return m.ID
		}
	}
	return ""
}

// suited gives the model that a place would have, among those that are no worse than this for what the request needs.
func (c *choice) suited(p *place, worst modelindex.Fit) (modelindex.Model, bool) {
	return c.Book.Default(p.id, p.defaults, c.Providers[p.id].Premium(), func(m modelindex.Model) bool {
		return m.Fit(c.Needs) > worst
	})
}

// fit says how well the best model of a place suits what the request needs. Where none is known, everything may be.
func (c *choice) fit(p *place) modelindex.Fit {
	if c.Needs == 0 {
		return modelindex.Fits
	}
	l, _ := c.Book.Listing(p.id)
	best, found := modelindex.Unfit, false
	for _, m := range l.Models {
		if m.Embedding {
			continue
		}
		found = true
		if best = min(best, m.Fit(c.Needs)); best == modelindex.Fits {
			break
		}
	}
	if !found {
		return modelindex.MayFit
	}
	return best
}

// serves says whether a place can be used for the request, as far as is known.
func (c *choice) serves(p *place) bool { return c.usable(p) && c.fit(p) != modelindex.Unfit }

// premium says whether a model of a provider is of the premium tier, as far as is known.
func (c *choice) premium(provider, model string) bool {
	p := c.exact[provider]
	if p == nil || model == "" {
		return false
	}
	if m, ok := c.Book.Find(provider, model); ok {
		return m.Tier == contract.TierPremium
	}
	if model == p.defaults.Free {
		return false
	}
	folded := strings.ToLower(model)
	contains := func(part string) bool { return strings.Contains(folded, part) }
	switch {
	case slices.ContainsFunc(c.premiumModels, contains):
		return true
	case slices.ContainsFunc(c.freeModels, contains):
		return false
	}
	return model == p.defaults.Premium
}
