package routing

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"hydrallm/shared/contract"
	"hydrallm/shared/modelindex"
)

// keywords say where a model is by a part of its name; the first that fits counts.
var keywords = []struct{ word, id string }{
	{"gemini", "gemini"},
	{"ollama", "ollama"}, // before llama
	{"cerebras", "cerebras"},
	{"groq", "groq"},
	{"llama", "groq"},
	{"deepseek", "groq"},
	{"gemma", "ollama"},
	{"qwen", "ollama"},
	{"phi", "ollama"},
	{"opencode", "opencode"},
	{"openclaw", "openclaw"},
}

func hinted(id string) bool {
	return slices.ContainsFunc(keywords, func(k struct{ word, id string }) bool { return k.id == id })
}

// inferred finds the place of a model that the client named without one. The model is forwarded as asked.
func (c *choice) inferred(name, folded string) (contract.Decision, error) {
	if d, ok := c.discovered(name); ok {
		return d, nil
	}
	if p := c.begun(folded); p != nil {
		return named(p, name), nil
	}
	id, ok := keyword(folded)
	if !ok {
		return contract.Decision{}, notFound(name)
	}
	p := c.exact[id]
	if p == nil {
		return contract.Decision{}, notConfigured(name, id)
	}
	d := named(p, name)
	d.PinModel = !strings.Contains(folded, "ollama") // such a name is that of the agent, which finds a model for it
	return d, nil
}

func named(p *place, model string) contract.Decision {
	d := at(p, model, contract.ReasonModelHint)
	d.PinModel = true
	return d
}

// discovered finds a model that some place is known to offer, in the spelling of that place (B-14). Until its discovery has answered, a place
// has the models that the configuration names.
func (c *choice) discovered(name string) (d contract.Decision, ok bool) {
	anything := func(modelindex.Model) bool { return true }
	p, m := c.find(name, anything)
	if p == nil {
		p, m = c.search(anything, func(p *place) (modelindex.Model, bool) {
			_, answered := c.Book.Listing(p.id)
			return modelindex.Model{ID: name}, !answered && (name == p.defaults.Free || name == p.defaults.Premium)
		})
	}
	if p == nil {
		return d, false
	}
	return named(p, m.ID), true
}

// find looks for a model by its id, and if there is none by its id in any case. Of several places the first that is usable counts, else the
// first.
func (c *choice) find(name string, accept func(modelindex.Model) bool) (*place, modelindex.Model) {
	if len(c.Book.Providers(name)) > 0 {
		if p, m := c.search(accept, func(p *place) (modelindex.Model, bool) { return c.Book.Find(p.id, name) }); p != nil {
			return p, m
		}
	}
	return c.search(accept, func(p *place) (modelindex.Model, bool) { return c.findFolded(p, name) })
}

func (c *choice) search(accept func(modelindex.Model) bool, in func(*place) (modelindex.Model, bool)) (*place, modelindex.Model) {
	var first *place
	var model modelindex.Model
	for _, p := range c.ordered {
		m, ok := in(p)
		if !ok || !accept(m) {
			continue
		}
		if c.usable(p) {
			return p, m
		}
		if first == nil {
			first, model = p, m
		}
	}
	return first, model
}

func (c *choice) findFolded(p *place, name string) (modelindex.Model, bool) {
	l, _ := c.Book.Listing(p.id)
	for _, m := range l.Models {
		if strings.EqualFold(m.ID, name) {
			return m, true
		}
	}
	return modelindex.Model{}, false
}

// begun gives the place whose id is the first word of the name, as mistral is of mistral-large, unless keywords lead to it anyway; the
// longest id counts.
func (c *choice) begun(folded string) *place {
	var best *place
	for _, p := range c.ordered {
		rest, ok := strings.CutPrefix(folded, p.folded)
		if ok && !p.hinted && wordEnds(p.folded, rest) && (best == nil || len(p.folded) > len(best.folded)) {
			best = p
		}
	}
	return best
}

// wordEnds says whether a word ends before rest: where letters or digits do not go on.
func wordEnds(word, rest string) bool {
	last, _ := utf8.DecodeLastRuneInString(word)
	next, _ := utf8.DecodeRuneInString(rest)
	if unicode.IsDigit(next) {
		return !unicode.IsDigit(last)
	}
	return !unicode.IsLetter(next)
}

// keyword gives the id of the place that a name, in lower case, hints at.
func keyword(folded string) (id string, ok bool) {
	for _, k := range keywords {
		if strings.Contains(folded, k.word) {
			return k.id, true
		}
	}
	return "", false
}
