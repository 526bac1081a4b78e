package config

import (
	"cmp"
	"math"
	"slices"
)

// Price is what the tokens of a model cost, per million, in any currency that is the same for all models.
type Price struct {
	Input       float64
	Output      float64
	CachedInput float64 // of the part of the input that the provider had in its cache
}

// maxPrice is more than anybody asks for a million tokens.
const maxPrice = 1e6

// maxNanos bounds the cost of one call, so that sums stay far from the end of 64 bits.
const maxNanos = 1 << 42

// Nanos gives the cost of a call in billionths of the currency. cached tokens are part of the prompt. It is nil when it can't be known: without a
// price, or when a model that costs something has told no tokens.
func (p *Price) Nanos(prompt, cached, completion int64) *int64 {
	if p == nil || prompt == 0 && completion == 0 && *p != (Price{}) {
		return nil
	}
	const nanosPerUnit = 1000 // a unit of the currency for a million tokens is a thousand billionths for each
	cached = min(cached, prompt)
	units := float64(prompt-cached)*p.Input + float64(cached)*p.CachedInput + float64(completion)*p.Output
	return new(int64(min(math.Round(units*nanosPerUnit), maxNanos)))
}

// priceEntry is a price as the file has it.
type priceEntry struct {
	Price

	cached *float64
}

func (p *priceEntry) settings() []setting {
	return []setting{
		key("input", number(&p.Input, maxPrice), "", "of a million tokens of the prompt").must().not("prompt", "inputcost"),
		key("output", number(&p.Output, maxPrice), "0", "of a million tokens of the answer").not("completion", "outputcost"),
		key("cached_input", kind{name: number(nil, maxPrice).name, read: p.readCached}, "",
			"of a million tokens of the prompt that the provider had in its cache").inherits("that of `input`").not("cachedinputcost", "cacheread"),
	}
}

func (p *priceEntry) readCached(n node) {
	cached := -1.0
	if number(&cached, maxPrice).read(n); cached >= 0 {
		p.cached = &cached
	}
}

// read reads a price and gives it, nil for what is none.
func (p *priceEntry) read(n node) *Price {
	if !n.fields(p.settings()) {
		return nil
	}
	if p.CachedInput = p.Input; p.cached != nil {
		p.CachedInput = *p.cached
	}
	return &p.Price
}

// inputShare is how many tokens of prompts are taken to come with one of an answer where one figure has to stand for a price. It is the mixture in
// which prices are usually compared.
const inputShare = 3

// RelativeCost is the figure by which upstreams are ordered that no list orders: what the configuration says, else the price. It is infinite
// when neither is known, so that such an upstream comes last.
func (u Upstream) RelativeCost() float64 {
	switch {
	case u.Cost != nil:
		return *u.Cost
	case u.Price != nil:
		return (inputShare*u.Price.Input + u.Price.Output) / (inputShare + 1)
	}
	return math.Inf(1)
}

// cheapestFirst gives the ids of the upstreams of a model, by cost, those of the same cost in the order of the file.
func (doc *document) cheapestFirst(model string) []string {
	var found []Upstream
	for _, u := range doc.Upstreams {
		if u.Model == model {
			found = append(found, u)
		}
	}
	slices.SortStableFunc(found, func(a, b Upstream) int { return cmp.Compare(a.RelativeCost(), b.RelativeCost()) })
	ids := make([]string, len(found))
	for i, u := range found {
		ids[i] = u.ID
	}
	return ids
}
