package movein

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// general reads general_settings.
func (l *liteLLM) general(v *value) {
	if key := l.secret(v.get("master_key"), "LITELLM_MASTER_KEY"); key != "" {
		l.Server.AdminKey, l.Server.ClientAccess = key, "keys"
		v.get("master_key").note("opens the admin routes, and /v1 as well; clients need keys, which are made at run time (POST /v1/admin/client-keys)")
	}
	if mb, ok := v.get("max_request_size_mb").num(); ok && mb >= 1 && mb < 2000 {
		l.Server.MaxBodyBytes = int(mb * (1 << 20))
	}
	if l.concurrency > 0 {
		v.get("max_parallel_requests").note("holds for each model of each provider")
	}
}

// settings reads litellm_settings and router_settings, in which the second wins.
func (l *liteLLM) settings() {
	module, router := l.root.get("litellm_settings"), l.root.get("router_settings")
	both := func(name string) *value { // what counts of the two
		own, other := router.get(name), module.get(name)
		if own.is() {
			other.refuse("router_settings has it too")
			return own
		}
		return other
	}
	if n, ok := both("num_retries").whole(); ok {
		l.attempts(n)
		both("num_retries").note("is for keys of one pool; a provider with one key is asked once, then the next upstream of the model")
	}
	timeout := router.get("timeout")
	if !timeout.is() {
		timeout = module.get("request_timeout")
	} else if other := module.get("request_timeout"); other.is() {
		other.refuse("router_settings.timeout is in force")
	}
	if t, ok := timeout.seconds(); ok {
		l.timeouts(t, 0)
		timeout.note("is the time until the headers here; the call as a whole may take longer")
	}
	l.cooldown(both)
	if strategy := router.get("routing_strategy"); strategy.is() {
		if strategy.str() != "cost-based-routing" {
			strategy.note("upstreams of a model are asked in their order here, the next one when one fails or is full")
		} else {
			strategy.note("sets the order of the upstreams, once, by the prices in the file")
		}
	}
	if verbose, _ := module.get("set_verbose").flag(); verbose {
		l.Log.Level = "debug"
	}
	if lines, _ := module.get("json_logs").flag(); lines {
		l.Log.Format = "json"
	}
	l.fallbacks(both)
	l.models()
	l.aliases(router.get("model_group_alias"))
}

// cooldown reads when a deployment rests: after more than so many failures in a minute.
func (l *liteLLM) cooldown(both func(string) *value) {
	fails, okFails := both("allowed_fails").whole()
	rest, okRest := both("cooldown_time").seconds()
	if !okFails && !okRest {
		return
	}
	c := &l.Resilience.Breaker.Channel
	c.Failures, c.Window, c.OpenFor = 4, span(time.Minute), span(5*time.Second) // LiteLLM's defaults: 3 are allowed, and it rests for 5 seconds
	if okFails {
		c.Failures = min(fails, 1<<20) + 1
	}
	if okRest {
		c.OpenFor = span(rest)
	}
}

// longestChain is how many upstreams a model may have.
const longestChain = 50

// fallbacks adds the upstreams of other models behind those of a model.
func (l *liteLLM) fallbacks(both func(string) *value) {
	own := maps.Clone(l.chains) // fallbacks of fallbacks are not asked
	for name := range own {
		own[name] = slices.Clone(own[name])
	}
	follow := func(name string, targets *value) {
		for _, target := range targets.each() {
			to := target.str()
			switch {
			case to == "":
				target.refuse("a model by its name is expected here")
			case len(own[to]) == 0:
				target.refuse("no model of this name was taken")
			case len(l.chains[name])+len(own[to]) > longestChain:
				target.refuse("a model may have %d upstreams", longestChain)
			default:
				for _, id := range own[to] {
					if !slices.Contains(l.chains[name], id) {
						l.chains[name] = append(l.chains[name], id)
					}
				}
			}
		}
	}
	var everybody []*value
	for _, entry := range both("fallbacks").each() {
		for _, p := range entry.pairs() {
			switch {
			case p.key == "*":
				everybody = append(everybody, p.value)
			case len(own[p.key]) == 0:
				p.value.refuse("no model of this name was taken")
			default:
				follow(p.key, p.value)
			}
		}
	}
	everybody = append(everybody, both("default_fallbacks"))
	for _, targets := range everybody {
		for _, name := range l.names {
			follow(name, targets)
		}
	}
}

// models writes the models down.
func (l *liteLLM) models() {
	for _, name := range l.names {
		if chain := l.chains[name]; len(chain) > 0 {
			l.model(name, chain)
		}
	}
}

// aliases reads model_group_alias: {alias: model} or {alias: {model: ..., hidden: ...}}.
func (l *liteLLM) aliases(v *value) {
	for _, p := range v.pairs() {
		target := p.value
		if target.is() && target.shape == mapping {
			target = p.value.get("model")
			if hidden := p.value.get("hidden"); hidden.is() {
				if on, ok := hidden.flag(); ok && !on {
					hidden.note("aliases are not listed by /v1/models")
				}
			}
		}
		to := target.name()
		if why := l.alias(p.key, to, len(l.chains[to]) > 0); why != "" {
			p.value.refuse("%s", why)
		}
	}
}

// variablesBlock reads environment_variables: LiteLLM sets them for itself.
func (l *liteLLM) variablesBlock() {
	for _, p := range l.root.get("environment_variables").pairs() {
		switch name, is := l.variable(p.value.scalar); {
		case l.vars.byName[p.key] == nil || !p.value.plain():
			p.value.hint = "nothing that is taken over names this variable"
		case is && name == p.key:
			p.value.take()
		case is:
			p.value.refuse("set %s to the value of another variable yourself", p.key)
		case strings.TrimSpace(p.value.scalar) == "":
			p.value.take()
		default:
			l.vars.given(p.key, p.value.str())
		}
	}
}
