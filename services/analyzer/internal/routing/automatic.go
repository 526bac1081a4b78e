package routing

import "hydrallm/shared/contract"

// automatic applies the rules of section 4.2 to a request that leaves everything to the gateway.
func (c *choice) automatic() (contract.Decision, error) {
	if c.Images {
		if d, ok := c.vision(); ok {
			return d, nil
		}
	}
	p, reason := c.bySize()
	if p == nil {
		return contract.Decision{}, nothingConfigured()
	}
	return at(p, c.model(p), reason), nil
}

// vision finds a model that takes images: the provider of large requests, else a provider or at last an agent that is known to have such a
// model (C-25).
func (c *choice) vision() (d contract.Decision, ok bool) {
	if p := c.large; p != nil && c.usable(p) {
		return at(p, c.model(p), contract.ReasonImagePresent), true
	}
	for _, agents := range []bool{false, true} {
		for _, p := range c.priority {
			if p.agent != agents || !c.usable(p) {
				continue
			}
			if m, ok := c.imageModel(p); ok {
				return at(p, m.ID, contract.ReasonImagePresent), true
			}
		}
	}
	return d, false
}

// bySize chooses by the estimated size (R-080..R-084). An agent is chosen only where the configuration names it, or nothing else is there
// . It is nil when nothing is configured.
func (c *choice) bySize() (p *place, reason string) {
	small := c.Tokens < c.threshold
	if !small && c.large != nil {
		return c.large, contract.ReasonTokenCount // even without a key: the dispatcher finds another
	}
	if small {
		if p := c.nextFast(); p != nil {
			return p, contract.ReasonTokenCount
		}
		if p := c.large; p != nil && c.usable(p) {
			return p, contract.ReasonKeyAvailability
		}
	}
	cloud := func(p *place) bool { return !p.agent }
	if p := first(c.priority, func(p *place) bool { return cloud(p) && c.usable(p) }); p != nil {
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
		if c.usable(p) {
			usable++
		}
	}
	if usable == 0 {
		return nil
	}
	skip := (c.turn.Add(1) - 1) % usable
	for _, p := range c.fast {
		if !c.usable(p) {
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
