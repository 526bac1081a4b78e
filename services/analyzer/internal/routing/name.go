package routing

import (
	"strings"

	"hydrallm/shared/config"
	"hydrallm/shared/contract"
)

// localAgent begins names that ask for a local agent.
const localAgent = "local-agent"

// automatic says whether a name, in lower case, leaves everything to the gateway.
func automatic(folded string) bool {
	switch folded {
	case "", "auto", "default", "mllm/auto":
		return true
	}
	return false
}

// scoped says whether the model behind a provider's name leaves the choice to the gateway.
func scoped(model string) bool {
	return model == "" || strings.EqualFold(model, "auto") || strings.EqualFold(model, "default")
}

// resolve finds out what a name without space around it means, in the order of section 4.1.
func (c *choice) resolve(name string, aliases bool) (contract.Decision, error) {
	folded := strings.ToLower(name)
	if automatic(folded) {
		return c.automatic()
	}
	if p := c.lookup(name); p != nil {
		return at(p, c.model(p), contract.ReasonModelHint), nil
	}
	if d, ok, err := c.addressed(name); ok || err != nil {
		return d, err
	}
	if target, ok := c.alias(name, folded); ok && aliases {
		if d, ok := c.discovered(name); ok && c.defaultAliases { // who really offers the model comes before what nobody asked to be in force
			return d, nil
		}
		return c.aliased(name, folded, target)
	}
	return c.inferred(name, folded)
}

// addressed reads provider/model, agent/model and LOCAL-AGENT/agent/model. What is behind the provider stays as the client wrote it. ok is
// false for a name whose beginning is none of them.
func (c *choice) addressed(name string) (d contract.Decision, ok bool, err error) {
	first, rest, slash := strings.Cut(name, "/")
	if strings.EqualFold(first, localAgent) {
		p, model := c.split(rest + "/")
		if p == nil || !p.agent {
			agent, _, _ := strings.Cut(rest, "/")
			return d, false, noAgent(name, agent)
		}
		return c.strict(p, strings.TrimSuffix(model, "/")), true, nil
	}
	if !slash {
		return d, false, nil
	}
	if p, model := c.split(name); p != nil {
		return c.strict(p, model), true, nil
	}
	if preset := strings.ToLower(first); config.Known(preset) {
		// A provider of providers may offer a model with just this name.
		if d, ok := c.discovered(name); ok {
			return d, true, nil
		}
		return d, false, notConfigured(name, preset)
	}
	return d, false, nil
}

// split cuts a name after the longest id of a place that begins it and is followed by a slash.
func (c *choice) split(name string) (p *place, model string) {
	end := 0
	for range c.idSlashes + 1 {
		n := strings.IndexByte(name[end:], '/')
		if n < 0 {
			break
		}
		end += n
		if found := c.lookup(name[:end]); found != nil {
			p, model = found, name[end+1:]
		}
		end++
	}
	return p, strings.TrimSpace(model)
}

// strict is the decision about a name that begins with its place.
func (c *choice) strict(p *place, model string) contract.Decision {
	d := at(p, model, contract.ReasonModelHint)
	d.PinProvider, d.PinModel = true, true
	if scoped(model) {
		d.Model, d.PinModel = c.model(p), false
	}
	return d
}

// alias gives what a name stands for: an exact entry before one in another case.
func (c *choice) alias(name, folded string) (target string, ok bool) {
	if target, ok = c.aliases[name]; !ok {
		target, ok = c.foldedAliases[folded]
	}
	return target, ok
}

// aliased decides as if the client had sent the target, which may be anything but another alias. An alias is a policy of the operator and
// no wish of the client for this model: it is neither strict nor named, and it does not fail as long as automatic routing works.
func (c *choice) aliased(name, folded, target string) (contract.Decision, error) {
	if d, ok := c.configuredModel(target); ok {
		return d, nil
	}
	if d, err := c.resolve(strings.TrimSpace(target), false); err == nil {
		d.PinProvider, d.PinModel = false, false
		return d, nil
	}
	// The target leads nowhere. The name itself may lead somewhere; if not, it is for automatic routing.
	d, err := c.inferred(name, folded)
	if err == nil {
		return d, nil
	}
	if d, autoErr := c.automatic(); autoErr == nil {
		return d, nil
	}
	return d, err
}
