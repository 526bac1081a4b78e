package keypool

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Sample is a key for something that is no call of a model.
type Sample struct {
	Index int
	Key   string
}

// Samples gives the keys that do not cool down, in random order, for something that is no call of a model, such as listing models. It counts for
// nothing.
func (p *Pool) Samples() []Sample {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	var all []Sample
	for i := range p.state {
		if k := &p.state[i]; k.usable("", AnyKey, now) {
			all = append(all, Sample{i, k.Value})
		}
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] }) //nolint:gosec // spreading load needs no secrecy
	return all
}

// Has says whether the pool holds a key.
func (p *Pool) Has(value string) bool { return p.Index(value) >= 0 }

// Index gives the index of a key, -1 when the pool does not hold it.
func (p *Pool) Index(value string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.IndexFunc(p.state, func(k keyState) bool { return !k.removed && k.Value == value })
}
