package routing

import (
	"slices"
	"strings"

	"hydrallm/shared/contract"
	"hydrallm/shared/modelindex"
)

// model chooses the model of a place for a request that names none: by the tiers of its usable keys, and one that takes images when
// they are needed and such a model is known. It is "" when nothing is known, and for agents, which find one themselves.
func (c *choice) model(p *place) string {
	if c.Images {
		if m, ok := c.imageModel(p); ok {
			return m.ID
		}
	}
	if p.agent {
		return ""
	}
	m, _ := c.Book.Default(p.id, p.defaults, c.Providers[p.id].Premium(), nil)
	return m.ID
}

// imageModel gives a model of the place that is known to take images: the one that it would have anyway, else the first of the wanted tier,
// then the first.
func (c *choice) imageModel(p *place) (modelindex.Model, bool) {
	premium := c.Providers[p.id].Premium()
	if !p.agent {
		if m, ok := c.Book.Default(p.id, p.defaults, premium, nil); ok && m.Images {
			return m, true
		}
	}
	l, _ := c.Book.Listing(p.id)
	var found modelindex.Model
	var ok bool
	for _, m := range l.Models {
		if !m.Images || m.Embedding {
			continue
		}
		if (m.Tier == contract.TierPremium) == premium {
			return m, true
		}
		if !ok {
			found, ok = m, true
		}
	}
	return found, ok
}

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
