package movein

import (
	"math"
	"slices"
	"strings"
)

// requestMembers are parameters of LiteLLM that are members of requests, which clients may set themselves.
var requestMembers = map[string]bool{
	"temperature": true, "top_p": true, "top_k": true, "min_p": true, "n": true, "max_tokens": true, "max_completion_tokens": true, "stop": true, "seed": true,
	"presence_penalty": true, "frequency_penalty": true, "repetition_penalty": true, "logit_bias": true, "logprobs": true, "top_logprobs": true, "user": true,
	"response_format": true, "tools": true, "tool_choice": true, "parallel_tool_calls": true, "reasoning_effort": true, "thinking": true, "reasoning": true,
	"service_tier": true, "modalities": true, "audio": true, "prediction": true, "verbosity": true, "store": true, "metadata": true, "encoding_format": true,
	"dimensions": true, "voice": true, "web_search_options": true, "prompt_cache_key": true, "safety_identifier": true, "chat_template_kwargs": true, "provider": true,
	"transforms": true, "route": true, "options": true, "keep_alive": true, "num_ctx": true,
}

// body reads the members of requests.
func (l *liteLLM) body(d *deployment, params *value) {
	for _, p := range params.pairs() {
		if requestMembers[p.key] && !d.wildcard && p.value.is() {
			member(&d.defaults, p.key, l.builder.body(p.key, p.value))
		}
	}
	for _, p := range params.get("extra_body").pairs() {
		switch {
		case d.wildcard:
		case p.key == "stream" || p.key == "model" || p.key == "messages":
			p.value.refuse("the client decides about it")
		default:
			member(&d.patch, p.key, l.builder.body(p.key, p.value))
		}
	}
}

// million is how many tokens our prices are for; LiteLLM's are for one.
const million = 1e6

// information reads prices, which may be in either place.
func (l *liteLLM) information(d *deployment, params *value) {
	cost := func(name string) (*value, float64, bool) {
		for _, from := range []*value{params, d.v.get("model_info")} {
			if v := from.get(name); v.is() {
				f, ok := v.num()
				if ok && f*million > 1e6 {
					v.refuse("is more than anybody asks for a token")
					ok = false
				}
				if !ok {
					f = 0
				}
				return v, math.Round(f*million*1e6) / 1e6, ok
			}
		}
		return nil, 0, false
	}
	input, in, hasInput := cost("input_cost_per_token")
	output, out, hasOutput := cost("output_cost_per_token")
	cache, cached, hasCached := cost("cache_read_input_token_cost")
	switch {
	case hasInput && !d.wildcard:
		d.price = &price{Input: in, Output: out}
		if hasCached {
			d.price.CachedInput = &cached
		}
	case hasInput || hasOutput || hasCached:
		for _, v := range []*value{input, output, cache} {
			v.refuse("a price needs that of the input, and a model")
		}
	}
}

// wild reads a wildcard. The gateway needs none: models of a provider have the name provider/model. It says why a wildcard means something else.
func (d *deployment) wild() (why string) {
	clients, star := strings.CutSuffix(d.name, "/*")
	name, model := d.v.get("model_name"), d.v.get("litellm_params", "model")
	switch {
	case d.name == "*" && d.model == "*":
		clients = preset(d.vendor)
		name.note("models are there as %s/model, and by their own names where only one provider lists them", clients)
	case !star && strings.HasSuffix(d.name, "*") && strings.HasSuffix(d.model, "*"):
		clients = preset(d.vendor)
		name.note("all models of the provider are there, as %s/model and by their own names, not only those that begin so", clients)
	case !star || strings.Contains(clients, "*") || !strings.HasSuffix(d.model, "*"):
		return "a wildcard in the middle of a name has no counterpart: name the models, or the provider as provider/*"
	case d.model != "*":
		model.note("every model of the provider can be named, not only those that begin so")
	}
	if d.name = clients; slug(clients) != clients {
		return "a provider of the gateway can't have this name"
	}
	return ""
}

// provider gives the provider of a deployment, new if there is none yet.
func (l *liteLLM) provider(d *deployment) *provider {
	if l.made == nil {
		l.made = map[string]*provider{}
		// Clients name the providers of wildcards, so that these have the first choice of an id.
		for _, w := range l.deployments {
			if w.wildcard {
				l.newProvider(w, w.name)
			}
		}
	}
	if p := l.made[d.pool]; p != nil {
		p.add(d.key)
		return p
	}
	return l.newProvider(d, "")
}

func (l *liteLLM) newProvider(d *deployment, id string) *provider {
	if p := l.made[d.pool]; p != nil {
		p.add(d.key)
		return p
	}
	if id == "" {
		id = preset(d.vendor)
	}
	if p := vendors[d.vendor]; d.url != "" && !d.wildcard && (p.preset == "openai" || p.preset == "" && p.url == "" && d.vendor != "azure") {
		id = hostID(d.url, id) // not the vendor, but somebody who speaks its protocol
	}
	p := &provider{ID: l.id("provider", id), URL: d.url, Headers: d.headers, MaxConcurrency: l.concurrency}
	if d.wildcard && p.ID != id {
		d.v.get("model_name").note("the name is that of another wildcard: models of this one are there as %s/model", p.ID)
	}
	p.add(d.key)
	p.HeadersTimeout, p.RequestTimeout = timeouts(d.timeout, 0)
	usual := vendors[d.vendor].preset
	if p.URL == "" && p.ID != usual { // what the preset would bring along
		p.URL = presetHosts[usual]
	}
	p.speak(usual)
	l.made[d.pool] = p
	l.Providers = append(l.Providers, p)
	return p
}

// add adds a key to a provider: the first is its key, several are a pool.
func (p *provider) add(key string) {
	pool, _ := p.Keys.([]string)
	switch {
	case key == "" || key == p.Key:
	case p.Key == "" && pool == nil:
		p.Key = key
	default:
		if pool == nil {
			pool, p.Key = []string{p.Key}, ""
		}
		if !slices.Contains(pool, key) {
			p.Keys = append(pool, key)
		}
	}
}

// upstream gives the id of the upstream of a deployment, new if there is none yet that is the same.
func (l *liteLLM) upstream(d *deployment, p *provider) string {
	u := d.upstream()
	alike := p.ID + "\x00" + d.request()
	if id := l.same[alike]; id != "" {
		return id
	}
	u.Provider = p.ID
	u.ID = l.id("upstream", p.ID+"-"+d.model)
	if l.same == nil {
		l.same = map[string]string{}
	}
	l.same[alike] = u.ID
	l.Upstreams = append(l.Upstreams, u)
	return u.ID
}
