package routing

import (
	"hydrallm/shared/contract"
	"hydrallm/shared/modelindex"
)

// automatic applies the rules of section 4.2 to a request that leaves everything to the gateway.
func (c *choice) automatic() (contract.Decision, error) {
	if c.Needs.Any(contract.FeaturesMedia) {
		if p := c.byMedia(); p != nil {
			return at(p, c.model(p), contract.ReasonImagePresent), nil
		}
	}
	p, reason := c.bySize()
	if p == nil {
		return contract.Decision{}, nothingConfigured()
	}
	return at(p, c.model(p), reason), nil
}

// byMedia finds a place for a request with more than text: one that is known to take it, or else the provider of large requests unless it is
// known not to. That one comes first, then the other providers, then the agents. Otherwise the size decides, among those of which it is
// not known, and this gives nil.
func (c *choice) byMedia() *place {
	if p := c.large; p != nil && c.usable(p) && c.fit(p) == modelindex.Fits {
		return p
	}
	for _, agents := range []bool{false, true} {
		if p := first(c.priority, func(p *place) bool { return p.agent == agents && c.usable(p) && c.fit(p) == modelindex.Fits }); p != nil {
			return p
		}
	}
	if p := c.large; p != nil && c.serves(p) {
		return p
	}
	return nil
}

// bySize chooses by the estimated size (R-080..R-084). An agent is chosen only where the configuration names it, or nothing else is there
// . It is nil when nothing is configured.
func (c *choice) bySize() (p *place, reason string) {
	small := c.Tokens < c.threshold
	if !small && c.large != nil && c.fit(c.large) != modelindex.Unfit {
		return c.large, contract.ReasonTokenCount // even without a key: the dispatcher finds another
	}
	if small {
		if p := c.nextFast(); p != nil {
			return p, contract.ReasonTokenCount
		}
	}
	cloud := func(p *place) bool { return !p.agent }
	if p := first(c.priority, func(p *place) bool { return cloud(p) && c.serves(p) }); p != nil {
		return p, contract.ReasonKeyAvailability
	}
	if p := c.large; p != nil && c.serves(p) {
		return p, contract.ReasonKeyAvailability
	}
	// Nothing is usable: what the size asks for, since a key may be free again when the dispatcher looks.
	switch {
	case small && len(c.fast) > 0, c.large == nil && len(c.fast) > 0:
		return c.fast[0], contract.ReasonTokenCount
	case c.large != nil:
		return c.large, contract.ReasonTokenCount
	}
	if p := first(c.priority, cloud); p != nil {
		return p, contract.ReasonKeyAvailability
	}
	if c.fallback != nil {
		return c.fallback, contract.ReasonKeyAvailability
	}
	return first(c.priority, func(*place) bool { return true }), contract.ReasonKeyAvailability
}

// nextFast lets the usable fast providers take turns, or is nil.
func (c *choice) nextFast() *place {
	var usable uint64
	for _, p := range c.fast {
		if c.serves(p) {
			usable++
		}
	}
	if usable == 0 {
		return nil
	}
	skip := (c.turn.Add(1) - 1) % usable
	for _, p := range c.fast {
		if !c.serves(p) {
			continue
		}
		if skip == 0 {
			return p
		}
		skip--
	}
	return nil
}

func first(places []*place, accept func(*place) bool) *place {
	for _, p := range places {
		if accept(p) {
			return p
		}
	}
	return nil
}
