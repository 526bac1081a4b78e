package movein

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// bifrost takes over the config.json of Bifrost (https://www.getbifrost.ai/schema).
type bifrost struct {
	*builder

	allowAll bool                // an empty list of models allows all, as before version 2
	chains   map[string][]string // upstreams by the name of a model
	names    []string
}

// envDot is how Bifrost names a variable.
func envDot(s string) (string, bool) { return strings.CutPrefix(s, "env.") }

func likeBifrost(root *value) bool {
	if strings.Contains(root.get("$schema").peek(), "getbifrost") || root.any("governance", "config_store", "logs_store") {
		return true
	}
	providers := root.get("providers")
	return providers.is() && providers.shape == mapping && slices.ContainsFunc(providers.keys, func(k string) bool {
		return providers.fields[k].any("keys", "network_config", "concurrency_and_buffer_size", "custom_provider_config")
	})
}

func importBifrost(b *builder) error {
	f := &bifrost{builder: b, chains: map[string][]string{}}
	b.root.explain(bifrostRoot)
	b.root.get("client").explain(bifrostClient)
	b.root.get("governance").explain(bifrostGovernance)
	b.root.get("$schema").str()
	if n, ok := b.root.get("version").whole(); ok {
		f.allowAll = n == 1
	}
	for _, p := range b.root.get("providers").pairs() {
		f.provider(p.key, p.value)
	}
	for _, name := range f.names {
		b.model(name, f.chains[name])
	}
	f.governance(b.root.get("governance"))
	f.client(b.root.get("client"))
	return nil
}

// secretOf gives what holds a secret: text, or {value: ...}, or {env_var: ...}.
func secretOf(v *value) *value {
	if v == nil || v.shape != mapping {
		return v
	}
	for _, name := range []string{"env_var", "ref", "value"} {
		if member := v.get(name); member.is() && member.scalar != "" {
			if name == "env_var" && !strings.HasPrefix(member.scalar, "env.") {
				member.scalar = "env." + member.scalar
			}
			for _, other := range []string{"value", "env_var", "ref", "from_env", "type"} {
				if o := v.get(other); o != member && (o.peek() == "" || other == "from_env" || other == "type") {
					o.take()
				}
			}
			v.taken = true
			return member
		}
	}
	return nil
}

// group is the keys of a provider that go to one address and are for the same models.
type group struct {
	address
	keys  []string
	named map[string]string // what the provider calls a model, by the name of clients
	all   bool
	order []string
}

// provider reads an entry of providers.
func (f *bifrost) provider(name string, v *value) {
	v.explain(bifrostProvider)
	network, custom := v.get("network_config"), v.get("custom_provider_config")
	network.explain(bifrostNetwork)
	custom.explain(bifrostCustom)
	kind := name
	if base := custom.get("base_provider_type").str(); base != "" {
		kind = base
	}
	azure := kind == "azure"
	known, is := vendors[kind]
	switch {
	case v.shape != mapping:
		v.refuse("a mapping is expected here")
		return
	case !is && !azure || noCounterpart[kind] != "":
		v.refuse("%s: %s", name, refusal(kind))
		return
	case badName(name) != "" || slug(name) != name:
		v.refuse("the gateway can have no provider of this name")
		return
	}
	base, ok := f.base(kind, name, known, network.get("base_url"))
	if !ok {
		v.refuse("its address can't be used")
		return
	}
	groups := f.groups(v, kind, base)
	if len(groups) == 0 {
		keyless, _ := custom.get("is_key_less").flag()
		if !keyless && (!known.local || base.url == "" && known.preset == "") {
			v.refuse("it has no key that can be used: keys that are disabled, of weight 0, for no model or without an address can't be")
			return
		}
		groups = []*group{{address: base, all: true}}
	}
	f.place(name, kind, v, groups)
}

// base gives the address of a provider as Bifrost has it, which is without the version of OpenAI's path.
func (f *bifrost) base(kind, name string, known vendor, v *value) (a address, ok bool) {
	if !v.is() {
		if known.preset != "" && name != known.preset {
			return address{url: presetHosts[known.preset]}, true
		}
		return address{url: known.url}, true
	}
	finish := versioned
	if kind == "anthropic" || kind == "gemini" {
		finish = unchanged
	}
	if a, ok = f.address(v, name, finish); a.url == presetHosts[name] {
		a.url = ""
	}
	return a, ok
}

// groups reads the keys of a provider.
func (f *bifrost) groups(v *value, kind string, base address) (all []*group) {
	for _, k := range v.get("keys").each() {
		k.explain(bifrostKey)
		for _, config := range []string{"azure_key_config", "ollama_key_config", "vllm_key_config", "sgl_key_config"} {
			k.get(config).explain(bifrostKey)
		}
		if on, ok := k.get("enabled").flag(); ok && !on {
			k.refuse("the key is disabled")
			continue
		}
		if w, ok := k.get("weight").num(); ok && w == 0 {
			k.refuse("the key has the weight 0, so that it is never used")
			continue
		}
		g := &group{address: base, named: map[string]string{}}
		if why := f.keyAddress(k, kind, g); why != "" {
			k.refuse("%s", why)
			continue
		}
		f.keyModels(k, g)
		if !g.all && len(g.order) == 0 {
			k.refuse("the key is for no model")
			continue
		}
		if value := secretOf(k.get("value")); value.peek() != "" {
			if strings.HasPrefix(value.scalar, "vault.") {
				k.refuse("its value is in a vault: put it into an environment variable")
				continue
			}
			if key := f.secret(value, keyName(kind, g.url)); key != "" {
				g.keys = []string{key}
			}
		} else {
			k.get("value").take()
		}
		if k.get("weight").is() && len(v.get("keys").items) > 1 {
			k.get("weight").note("the keys of a pool are used alike, and a key that fails rests")
		}
		k.get("name").take()
		k.get("id").take()
		if same := slices.IndexFunc(all, g.alike); same >= 0 && len(g.keys) > 0 {
			all[same].keys = append(all[same].keys, g.keys...)
			continue
		}
		all = append(all, g)
	}
	return all
}

func (g *group) alike(o *group) bool {
	if g.address != o.address || g.all != o.all || !slices.Equal(g.order, o.order) || len(o.keys) == 0 {
		return false
	}
	return !slices.ContainsFunc(g.order, func(n string) bool { return g.named[n] != o.named[n] })
}

// keyAddress finds the address that a key has of its own.
func (f *bifrost) keyAddress(k *value, kind string, g *group) (why string) {
	switch kind {
	case "azure":
		config := k.get("azure_key_config")
		endpoint := secretOf(config.get("endpoint"))
		if !endpoint.is() {
			return "azure: the key has no endpoint"
		}
		for _, entra := range []string{"client_id", "client_secret", "tenant_id"} {
			if config.get(entra).is() && config.get(entra).peek() != "" {
				return "azure: signing in with Microsoft Entra has no counterpart; a key of the resource has"
			}
		}
		var ok bool
		if g.address, ok = f.address(endpoint, "AZURE", func(string) string { return "/openai/v1" }); !ok {
			return "its address can't be used: " + endpoint.why
		}
		endpoint.note("becomes the address of Azure's v1 route, which takes names of deployments as models")
		if version := config.get("api_version"); version.is() {
			secretOf(version).take()
			version.note("is left out: the v1 route of Azure OpenAI needs none")
		}
	case "ollama", "vllm", "sgl":
		own := secretOf(k.get(kind+"_key_config", "url"))
		if !own.is() {
			if g.url == "" && vendors[kind].preset == "" {
				return "the key has no address"
			}
			break
		}
		var ok bool
		if g.address, ok = f.address(own, kind, versioned); !ok {
			return "its address can't be used: " + own.why
		}
		if strings.TrimSuffix(g.url, "/v1") == strings.TrimSuffix(presetHosts[kind], "/v1") {
			g.url = ""
		}
	}
	return ""
}

// keyModels reads which models a key is for, and what the provider calls them.
func (f *bifrost) keyModels(k *value, g *group) {
	models := k.get("models")
	g.all = !models.is() || models.shape == list && len(models.items) == 0 && f.allowAll
	add := func(name, model string) {
		if g.named[name] == "" {
			g.order = append(g.order, name)
		}
		g.named[name] = model
	}
	for _, m := range models.each() {
		switch name := m.name(); name {
		case "":
		case "*":
			g.all = true
		default:
			add(name, name)
		}
	}
	for _, from := range []*value{k.get("azure_key_config", "deployments"), k.get("aliases")} {
		for _, p := range from.pairs() {
			to := p.value
			if to.is() && to.shape == mapping {
				to = to.get("model_id")
			}
			if badName(p.key) != "" {
				p.value.refuse("%s", badName(p.key))
			} else if model := to.name(); model != "" {
				add(p.key, model)
			}
		}
	}
	if one := k.get("vllm_key_config", "model_name").name(); one != "" && !g.all {
		add(one, one)
	}
	if g.all {
		return
	}
	models.note("other models of the provider can be asked for as well, by their names behind that of the provider")
}

// place makes the providers of the groups of keys, and the models that they name.
func (f *bifrost) place(name, kind string, v *value, groups []*group) {
	network := v.get("network_config")
	headers := map[string]string{}
	for _, p := range network.get("extra_headers").pairs() {
		f.header(headers, p.key, secretOf(p.value), name)
	}
	timeout, _ := network.get("default_request_timeout_in_seconds").seconds()
	if timeout > 0 {
		network.get("default_request_timeout_in_seconds").note("is the time until the headers here; the call as a whole may take longer")
	}
	if idle, ok := network.get("stream_idle_timeout_in_seconds").seconds(); ok {
		f.Resilience.IdleTimeout = max(f.Resilience.IdleTimeout, span(idle))
		network.get("stream_idle_timeout_in_seconds").note("is for all providers: the longest of them counts")
	}
	if n, ok := network.get("max_retries").whole(); ok {
		f.attempts(n)
		network.get("max_retries").note("is for all providers, and for the keys of one pool: the largest of them counts")
	}
	limit, ok := v.get("concurrency_and_buffer_size", "concurrency").whole()
	if ok {
		v.get("concurrency_and_buffer_size", "concurrency").note("holds for each model of the provider")
	}
	slices.SortStableFunc(groups, func(a, b *group) int { // names of clients lead to the first, which should have all models
		switch {
		case a.all == b.all:
			return 0
		case a.all:
			return -1
		}
		return 1
	})
	for i, g := range groups {
		p := &provider{ID: f.id("provider", name), URL: g.url, Headers: maps.Clone(headers), MaxConcurrency: limit}
		if g.authorization != "" {
			p.Headers["Authorization"] = g.authorization
		}
		if usual := vendors[kind].preset; p.URL == "" && p.ID != usual {
			p.URL = presetHosts[usual]
		}
		p.speak(vendors[kind].preset)
		p.HeadersTimeout, p.RequestTimeout = timeouts(timeout, 0)
		for _, key := range g.keys {
			p.add(key)
		}
		f.Providers = append(f.Providers, p)
		if i > 0 && g.all {
			f.steps = append(f.steps, fmt.Sprintf("%s has several addresses: %s/MODEL asks the first; name models that the others have too, with upstreams of %s", name, name, p.ID))
		}
		for _, public := range g.order {
			u := &upstream{ID: f.id("upstream", p.ID+"-"+public), Provider: p.ID, Model: g.named[public]}
			f.Upstreams = append(f.Upstreams, u)
			full := name + "/" + public
			if len(full) > maxName || len(f.chains[full]) == longestChain {
				continue
			}
			if f.chains[full] == nil {
				f.names = append(f.names, full)
			}
			f.chains[full] = append(f.chains[full], u.ID)
		}
	}
}

// governance reads virtual keys. Those without limits are keys of clients; others are made at run time, by a command that is among the steps.
func (f *bifrost) governance(v *value) {
	auth := v.get("auth_config")
	if auth.is() {
		auth.hint = "the admin routes open with server.admin_key"
	}
	rates := byID(v.get("rate_limits"))
	for _, k := range v.get("virtual_keys").each() {
		k.explain(bifrostVirtual)
		if on, ok := k.get("is_active").flag(); ok && !on {
			k.refuse("the key is not active")
			continue
		}
		order := f.order(k, v.get("budgets").members(), rates)
		if order == nil {
			if key := f.secret(secretOf(k.get("value")), "CLIENT_KEY_"+k.get("name").peek()); key != "" {
				f.Server.ClientKeys = append(f.Server.ClientKeys, key)
			}
			k.get("name").take()
			continue
		}
		k.refuse("has limits, and keys with limits are made while the gateway runs, with a new secret: the command is under what to do by hand. Budgets are for a day or a month, " +
			"rates for a minute: others are not in it")
		if len(f.steps) == 0 || !strings.HasPrefix(f.steps[0], adminStep) {
			f.steps = append([]string{adminStep}, f.steps...)
		}
		f.steps = append(f.steps, fmt.Sprintf("for the virtual key %s: curl http://127.0.0.1:8100/v1/admin/client-keys -H \"X-Admin-Key: $ADMIN_API_KEY\" -H 'Content-Type: application/json' -d '%s'",
			shell(k.get("name").peek()), shell(string(order))))
		if f.Server.ClientAccess == "" {
			f.Server.ClientAccess = "keys"
		}
	}
}

const adminStep = "set ADMIN_API_KEY, without which the routes of the admin are closed (openssl rand -hex 32 makes one)"

// same says whether two values are the same text, and not none.
func (v *value) same(o *value) bool { return v.peek() != "" && v.peek() == o.peek() }

// byID gives the members of a list by their ids.
func byID(v *value) map[string]*value {
	all := map[string]*value{}
	if v.is() && v.shape == list {
		for _, item := range v.items {
			all[item.get("id").peek()] = item
		}
	}
	return all
}

// shell takes the quotes out of what goes between single quotes.
func shell(s string) string { return strings.ReplaceAll(s, "'", "") }

// clientKey is what POST /v1/admin/client-keys takes.
type clientKey struct {
	Name    string           `json:"name"`
	Models  []string         `json:"allowed_models,omitempty"`
	Limits  map[string]int64 `json:"limits,omitempty"`
	Budget  map[string]any   `json:"budget,omitempty"`
	Expires string           `json:"expires_at,omitempty"`
}

// order gives the request that makes a virtual key, or nil for one without any limit.
func (f *bifrost) order(k *value, budgets []*value, rates map[string]*value) []byte {
	c := clientKey{Name: k.get("name").peek(), Expires: k.get("expires_at").peek()}
	limited := c.Expires != ""
	for _, p := range k.get("provider_configs").members() {
		provider := p.get("provider").peek()
		models := p.get("allowed_models")
		limited = limited || p.get("budget_id").is() || p.get("rate_limit_id").is() || p.get("budgets").is()
		switch {
		case provider == "":
		case models == nil || len(models.items) == 1 && models.items[0].peek() == "*" || len(models.items) == 0 && f.allowAll:
			c.Models = append(c.Models, provider+"/*")
		default:
			for _, m := range models.members() {
				c.Models = append(c.Models, provider+"/"+m.peek())
			}
		}
	}
	limited = limited || !f.everyProvider(c.Models)
	if r := rates[k.get("rate_limit_id").peek()]; k.get("rate_limit_id").is() {
		limited = true
		c.Limits = map[string]int64{}
		for ours, theirs := range map[string]string{"rpm": "request", "tpm": "token"} {
			if r.get(theirs+"_reset_duration").peek() == "1m" {
				if n, err := json.Number(r.get(theirs + "_max_limit").peek()).Int64(); err == nil && n > 0 {
					c.Limits[ours] = n
				}
			}
		}
	}
	for _, b := range budgets {
		if !b.get("id").same(k.get("budget_id")) && !b.get("virtual_key_id").same(k.get("id")) {
			continue
		}
		limited = true
		period := map[string]string{"1d": "day", "24h": "day", "1M": "month", "30d": "month"}[b.get("reset_duration").peek()]
		if amount := json.Number(b.get("max_limit").peek()); period != "" && amount != "" && c.Budget == nil {
			c.Budget = map[string]any{"amount": amount, "unit": "money", "period": period}
		}
	}
	if !limited {
		return nil
	}
	text, err := json.Marshal(c)
	if err != nil {
		return []byte("{}")
	}
	return text
}

// everyProvider says whether a list of models allows all that are configured.
func (f *bifrost) everyProvider(models []string) bool {
	if len(models) == 0 {
		return f.allowAll
	}
	return !slices.ContainsFunc(f.Providers, func(p *provider) bool {
		return !slices.ContainsFunc(models, func(m string) bool { return m == p.ID+"/*" || strings.HasPrefix(p.ID, strings.TrimSuffix(m, "/*")+"-") })
	})
}

// client reads the settings of the side of the clients.
func (f *bifrost) client(v *value) {
	for _, name := range []string{"enforce_auth_on_inference", "enforce_governance_header"} {
		if on, ok := v.get(name).flag(); ok && on {
			f.Server.ClientAccess = "keys"
		} else if ok && f.Server.ClientAccess == "" && len(f.Server.ClientKeys) > 0 {
			v.get(name).note("clients need a key here as soon as there is one; server.client_access: open lets everybody in")
		}
	}
	if mb, ok := v.get("max_request_body_size_mb").whole(); ok && mb > 0 && mb < 2000 {
		f.Server.MaxBodyBytes = mb << 20
	}
	f.origins(v.get("allowed_origins"))
}
