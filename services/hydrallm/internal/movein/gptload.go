package movein

import (
	"cmp"
	"slices"
	"strings"
)

// gptLoad takes over groups of gpt-load, as its API has them (GET /api/groups), with or without their keys.
type gptLoad struct {
	*builder

	made map[string][]*provider // by the name of the group
	ids  map[string]string      // names of groups, by their id
	wire map[string][][2]string // names for clients and for the provider of the models of a group that are known
}

func noVariables(string) (string, bool) { return "", false }

// groupsOf gives the list of groups of a source.
func groupsOf(root *value) *value {
	switch {
	case root.shape == list:
		return root
	case root.get("data").is() && root.get("data").shape == list:
		return root.get("data")
	case root.get("data", "items").is():
		return root.get("data", "items")
	case root.get("data", "groups").is():
		return root.get("data", "groups")
	}
	return root.get("groups")
}

func likeGPTLoad(root *value) bool {
	if root.any("channel_type") || root.get("group").any("channel_type") {
		return true
	}
	return slices.ContainsFunc(groupsOf(root).members(), func(g *value) bool { return g.any("channel_type", "group_type") })
}

func importGPTLoad(b *builder) error {
	g := &gptLoad{builder: b, made: map[string][]*provider{}, ids: map[string]string{}, wire: map[string][][2]string{}}
	b.root.explain(gptLoadRoot)
	var groups []*value
	switch {
	case b.root.any("channel_type"):
		groups = []*value{b.root}
	case b.root.get("group").is():
		groups = []*value{b.root.get("group")}
		if keys := b.root.get("keys"); keys.is() && groups[0].fields != nil && groups[0].get("api_keys") == nil {
			groups[0].put("api_keys", keys)
		}
	default:
		groups = groupsOf(b.root).each()
	}
	for _, v := range groups {
		g.ids[v.get("id").peek()] = v.get("name").peek()
		v.explain(gptLoadGroup)
		v.get("config").explain(gptLoadConfig)
	}
	for _, v := range groups {
		if v.get("group_type").peek() != "aggregate" {
			g.group(v)
		}
	}
	for _, v := range groups {
		if v.get("group_type").peek() == "aggregate" {
			g.aggregate(v)
		}
	}
	settings := b.root.get("settings")
	settings.explain(gptLoadConfig)
	g.clientKeys(settings.get("proxy_keys"))
	return nil
}

// channels are the kinds of groups, with what an address is completed with.
var channels = map[string]struct {
	preset string
	finish func(string) string
}{
	"openai": {"openai", versioned}, "openai-response": {"openai", versioned}, "anthropic": {"anthropic", unchanged}, "gemini": {"gemini", unchanged},
}

// group reads a group of its own: one provider for each of its addresses, all with its keys.
func (g *gptLoad) group(v *value) {
	name, kind := v.get("name").peek(), v.get("channel_type").peek()
	channel, known := channels[kind]
	switch {
	case badName(name) != "" || slug(name) != name:
		v.refuse("the gateway can have no provider of this name")
		return
	case !known:
		v.refuse("%s: there is no such kind of channel here", cmp.Or(kind, "none"))
		return
	}
	upstreams := slices.Clone(v.get("upstreams").each())
	slices.SortStableFunc(upstreams, func(a, b *value) int { return cmp.Compare(weightOf(b), weightOf(a)) })
	keys := g.keys(v, name)
	headers := g.headers(v.get("header_rules"), name)
	for _, u := range upstreams {
		a, ok := g.address(u.get("url"), name, channel.finish)
		if !ok {
			u.refuse("its address can't be used")
			continue
		}
		if w, ok := u.get("weight").num(); ok && w == 0 {
			u.refuse("has the weight 0, so that it is never used")
			continue
		}
		if len(upstreams) > 1 {
			u.get("weight").note("sets the order alone: addresses are asked one after the other, and don't share requests by weight")
		}
		p := &provider{ID: g.id("provider", name), URL: a.url, Headers: headers, Keys: keys}
		if a.authorization != "" {
			p.Headers["Authorization"] = a.authorization
		}
		p.speak(channel.preset)
		g.times(p, v.get("config"))
		for _, o := range v.get("param_overrides").pairs() {
			if o.key == "stream" || o.key == "model" || o.key == "messages" {
				o.value.refuse("the client decides about it")
				continue
			}
			member(&p.Patch, o.key, g.body(o.key, o.value))
		}
		g.made[name] = append(g.made[name], p)
		g.Providers = append(g.Providers, p)
	}
	if len(g.made[name]) == 0 {
		v.refuse("it has no address that can be used")
		return
	}
	v.get("name").take()
	v.get("channel_type").take()
	v.get("group_type").take()
	g.models(v, name)
	g.clientKeys(v.get("proxy_keys"))
	if n, ok := v.get("config", "max_retries").whole(); ok {
		g.attempts(n)
		v.get("config", "max_retries").note("is for all providers: the largest of them counts")
	}
}

func weightOf(v *value) float64 {
	number := &value{shape: number, scalar: v.get("weight").peek()}
	w, _ := number.num()
	return w
}

// keys reads the keys of a group. Without any, a variable holds the list.
func (g *gptLoad) keys(v *value, name string) any {
	var refs []string
	there := v.get("api_keys")
	for _, k := range there.each() {
		key := k
		if k.shape == mapping {
			k.explain(gptLoadKey)
			if status := k.get("status").str(); status != "" && status != "active" {
				k.refuse("the key is not active")
				continue
			}
			key = k.get("key_value")
		}
		if ref := g.secret(key, name+"_KEY"); ref != "" && !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	if len(refs) == 0 {
		return g.vars.named(g.free(name+"_KEYS"), "the keys of the group "+name+", with commas between them; gpt-load exports them as lines (Export keys)")
	}
	return refs
}

// headers reads the rules for headers.
func (g *gptLoad) headers(v *value, name string) map[string]string {
	headers := map[string]string{}
	for _, r := range v.each() {
		switch {
		case r.get("action").peek() != "set":
			r.refuse("headers of clients are not passed on, so that none has to be removed")
		case strings.Contains(r.get("value").peek(), "${"):
			r.refuse("its value is made for each request, which has no counterpart")
		default:
			g.header(headers, r.get("key").str(), r.get("value"), name)
			r.get("action").take()
		}
	}
	return headers
}

// times reads the times of a group.
func (g *gptLoad) times(p *provider, config *value) {
	total, _ := config.get("request_timeout").seconds()
	headers, _ := config.get("response_header_timeout").seconds()
	if total > 0 || headers > 0 {
		p.HeadersTimeout, p.RequestTimeout = timeouts(headers, total)
	}
}

// models reads the names that a group has others for, and the one that it is tested with.
func (g *gptLoad) models(v *value, name string) {
	for _, rule := range v.get("model_redirect_rules").pairs() {
		to := rule.value.name()
		if why := badName(rule.key); why != "" || to == "" {
			rule.value.refuse("%s", cmp.Or(why, "the name of a model is expected here"))
			continue
		}
		g.wire[name] = append(g.wire[name], [2]string{rule.key, to})
	}
	if test := v.get("test_model"); test.peek() != "" && len(g.made[name]) > 1 {
		if model := test.name(); model != "" {
			test.note("is a model with all addresses of the group; name the others in models, or they are asked at the first address alone")
			g.wire[name] = append(g.wire[name], [2]string{model, model})
		}
	}
	for _, m := range g.wire[name] {
		g.chain(name+"/"+m[0], m[1], g.made[name])
	}
}

// chain makes a model with an upstream at each of some providers.
func (g *gptLoad) chain(public, wire string, providers []*provider) {
	if len(public) > maxName || slices.ContainsFunc(g.Models, func(m *model) bool { return m.Name == public }) {
		return
	}
	var ids []string
	for _, p := range providers[:min(len(providers), longestChain)] {
		at := slices.IndexFunc(g.Upstreams, func(u *upstream) bool { return u.Provider == p.ID && u.Model == wire })
		if at < 0 {
			at = len(g.Upstreams)
			g.Upstreams = append(g.Upstreams, &upstream{ID: g.id("upstream", p.ID+"-"+wire), Provider: p.ID, Model: wire})
		}
		ids = append(ids, g.Upstreams[at].ID)
	}
	g.model(public, ids)
}

// aggregate reads a group of groups: its models are those of its groups that are known by name.
func (g *gptLoad) aggregate(v *value) {
	name := v.get("name").peek()
	subs := slices.Clone(v.get("sub_groups").each())
	slices.SortStableFunc(subs, func(a, b *value) int { return cmp.Compare(weightOf(b), weightOf(a)) })
	var providers []*provider
	var wires [][2]string
	for _, s := range subs {
		sub := cmp.Or(s.get("sub_group_name").peek(), s.get("group", "name").peek(), g.ids[s.get("sub_group_id").peek()])
		if len(g.made[sub]) == 0 {
			s.refuse("there is no such group")
			continue
		}
		for _, field := range []string{"sub_group_name", "sub_group_id", "group"} {
			s.get(field).take()
		}
		if w, ok := s.get("weight").num(); ok && w == 0 {
			s.refuse("has the weight 0, so that it is never used")
			continue
		}
		s.get("weight").note("sets the order alone: groups are asked one after the other, and don't share requests by weight")
		providers = append(providers, g.made[sub]...)
		wires = append(wires, g.wire[sub]...)
	}
	if test := v.get("test_model"); test.peek() != "" && test.peek() != "-" {
		if model := test.name(); model != "" {
			wires = append(wires, [2]string{model, model})
		}
	}
	switch {
	case badName(name) != "":
		v.refuse("%s", badName(name))
		return
	case len(providers) == 0 || len(wires) == 0:
		v.refuse("a group of groups becomes models with upstreams in each of them: the file names no model for it")
		return
	}
	v.get("name").take()
	v.get("group_type").take()
	v.get("sub_groups").note("becomes models %s/MODEL, of the models that the file names; write others into models and upstreams", name)
	for _, m := range wires {
		g.chain(name+"/"+m[0], m[1], providers)
	}
	g.clientKeys(v.get("proxy_keys"))
}

// clientKeys reads keys of clients, which have commas between them.
func (g *gptLoad) clientKeys(v *value) {
	if !v.is() || !v.plain() || v.peek() == "" {
		return
	}
	for _, key := range strings.FieldsFunc(v.str(), func(c rune) bool { return c == ',' || c == '\n' }) {
		one := &value{shape: text, scalar: key, path: v.path}
		if ref := g.secret(one, "CLIENT_KEY"); ref != "" && !slices.Contains(g.Server.ClientKeys, ref) {
			g.Server.ClientKeys = append(g.Server.ClientKeys, ref)
		} else if ref == "" {
			v.refuse("holds a key that no HTTP header can carry")
			return
		}
	}
	v.note("these keys open all of the gateway, and not one group; keys with limits are made at run time (POST /v1/admin/client-keys)")
}
