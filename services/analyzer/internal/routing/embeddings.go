package routing

import (
	"strings"

	"hydrallm/shared/contract"
	"hydrallm/shared/modelindex"
)

// embeddings resolves the name of an embedding model. The gateway never chooses one: the client stores vectors, and those of different
// models can't be compared.
func (c *choice) embeddings(name string) (contract.Decision, error) {
	folded := strings.ToLower(name)
	_, alias := c.alias(name, folded)
	if automatic(folded) || alias || c.lookup(name) != nil {
		return contract.Decision{}, mustName(name)
	}
	if d, ok, err := c.addressed(name); ok || err != nil {
		if err == nil && !d.PinModel {
			return contract.Decision{}, mustName(name)
		}
		return d, err
	}
	if p, m := c.find(name, func(m modelindex.Model) bool { return m.Embedding }); p != nil {
		return named(p, m.ID), nil
	}
	if p := c.begun(folded); p != nil {
		return named(p, name), nil
	}
	// A hint in the name counts only for a model that is known to be there.
	id, _ := keyword(folded)
	if p := c.exact[id]; p != nil {
		m, ok := c.Book.Find(p.id, name)
		if !ok {
			m, ok = c.findFolded(p, name)
		}
		if ok {
			return named(p, m.ID), nil
		}
	}
	return contract.Decision{}, notFound(name)
}
