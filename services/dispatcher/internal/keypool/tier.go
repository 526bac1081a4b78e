package keypool

import (
	"slices"
	"time"

	"hydrallm/shared/contract"
)

// Want says which keys a model may be called with.
type Want uint8

// Wants.
const (
	AnyKey Want = iota
	// PremiumKey is for premium models: a key that is known to be premium, or else one of which it is not known; a key that is
	// known to be free never. Standard and experimental keys count as not known, because neither word says what they may call.
	PremiumKey
)

// unfit is the rank of a key that may not be used.
const unfit = 2

// rank orders keys by how well they suit, best first.
func (w Want) rank(tier string) int {
	switch {
	case w == AnyKey, tier == contract.TierPremium:
		return 0
	case tier == contract.TierFree:
		return unfit
	}
	return 1
}

// Suits says whether there is a key of a tier that will do, whether it cools down or not.
func (p *Pool) Suits(want Want) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.state, func(k keyState) bool { return k.rank(want) != unfit })
}

// Count gives the number of keys that may be used for the model now, by tier. Without a model, keys that cool down for some model only count as
// usable. It changes nothing.
func (p *Pool) Count(model string) map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	count := map[string]int{}
	for i := range p.state {
		if k := &p.state[i]; k.usable(model, AnyKey, now) {
			count[k.Tier]++
		}
	}
	return count
}
