package config

import (
	"net"
	"net/url"
	"slices"
	"strings"
)

// resolve checks what was read, fills in what is inherited, and builds the indexes.
func (doc *document) resolve(f *findings) *Config {
	c := &doc.Config
	c.providers, c.upstreams, c.models = map[string]int{}, map[string]int{}, map[string]int{}
	doc.checkServer(f)
	for i := range doc.rawProviders {
		doc.addProvider(&doc.rawProviders[i])
	}
	for i := range doc.rawUpstreams {
		doc.addUpstream(&doc.rawUpstreams[i])
	}
	for i := range doc.rawModels {
		doc.addModel(&doc.rawModels[i])
	}
	doc.checkUse()
	r := c.Resilience
	if r.RequestTimeout <= r.HeadersTimeout+r.GateTimeout {
		f.add(false, 0, "resilience.request_timeout", "%s is not more than headers_timeout + stream_gate_timeout (%s), so that those may never fire",
			r.RequestTimeout, r.HeadersTimeout+r.GateTimeout)
	}
	return c
}

func (doc *document) checkServer(f *findings) {
	for _, origin := range doc.Server.CORSOrigins {
		u, err := url.Parse(origin)
		if origin != "*" && (err != nil || u.Scheme == "" || u.Host == "" || u.Path != "" || u.RawQuery != "") {
			f.add(true, 0, "server.cors_origins", "%q is not an origin such as https://app.example", short(origin))
		}
	}
}

func (n node) require(name, value string) {
	if value == "" {
		n.fail("%s is missing", name)
	}
}

func (doc *document) addProvider(p *rawProvider) {
	n := p.node
	n.require("id", p.ID)
	pre, known := presets[p.ID]
	p.inherit(pre)
	if !known {
		n.require("url", p.URL)
	}
	if p.URL != "" {
		p.URL = n.cleanURL(p.URL, p.Dialect)
	}
	if p.keyGiven && p.keysGiven && p.key != "" && len(p.Keys) > 1 {
		n.fail("has both key and keys: give one of them")
	}
	p.Pooled = p.keysGiven
	if len(p.Keys) == 0 && !p.Pooled && strings.HasPrefix(p.URL, "https://") {
		n.warn("has no key although its url is https")
	}
	if p.limit != nil {
		p.Limit = *p.limit
	}
	if p.ThinkTags == "" {
		p.ThinkTags = ThinkOff
	}
	if p.HeadersTimeout == 0 {
		p.HeadersTimeout = doc.Resilience.HeadersTimeout
	}
	if p.RequestTimeout == 0 {
		p.RequestTimeout = doc.Resilience.RequestTimeout
	}
	if _, twice := doc.Config.providers[p.ID]; twice && p.ID != "" {
		n.fail("id %q is given twice", short(p.ID))
		return
	}
	doc.Config.providers[p.ID] = len(doc.Providers)
	doc.Providers = append(doc.Providers, p.Provider)
}

// inherit takes from a preset what the file leaves open.
func (p *rawProvider) inherit(pre preset) {
	if p.Dialect == "" {
		p.Dialect = pre.dialect
	}
	if p.Dialect == "" {
		p.Dialect = "openai"
	}
	if p.URL == "" {
		p.URL = pre.url
	}
	if pre.key != "" && !p.keyGiven && !p.keysGiven {
		p.Keys = []Key{{Value: Secret(pre.key), Tier: p.tier}}
	}
}

// cleanURL checks a base URL and gives it without a slash at the end. A bare host of the OpenAI dialect is completed with /v1 (URL-01).
func (n node) cleanURL(raw, dialect string) string {
	u, err := url.Parse(strings.TrimSpace(raw))
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		n.fail("url must be an http or https address with a host")
		return ""
	case u.User != nil:
		n.fail("url must not hold a user name or password: use key or headers")
		return ""
	case u.Fragment != "":
		n.fail("url must not hold a fragment")
		return ""
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
	if u.Path == "" && (dialect == "openai" || dialect == "ollama") {
		u.Path = "/v1"
	}
	return u.String()
}

func (doc *document) addUpstream(u *rawUpstream) {
	n := u.node
	n.require("id", u.ID)
	n.require("model", u.Model)
	n.require("provider", u.Provider)
	p, known := doc.Provider(u.Provider)
	if !known && u.Provider != "" {
		n.fail("provider %q is not defined under providers", short(u.Provider))
	}
	u.Limit = p.Limit
	if u.limit != nil {
		u.Limit = *u.limit
	}
	if u.ThinkTags == "" {
		u.ThinkTags = p.ThinkTags
	}
	if _, twice := doc.Config.upstreams[u.ID]; twice && u.ID != "" {
		n.fail("id %q is given twice", short(u.ID))
		return
	}
	doc.Config.upstreams[u.ID] = len(doc.Upstreams)
	doc.Upstreams = append(doc.Upstreams, u.Upstream)
}

func (doc *document) addModel(m *rawModel) {
	n := m.node
	n.require("name", m.Name)
	for _, ref := range m.refs {
		id, ok := ref.text()
		if !ok {
			continue
		}
		switch {
		case slices.Contains(m.Upstreams, id):
			ref.warn("upstream %q is listed twice, ignored", short(id))
		case !doc.hasUpstream(id):
			ref.warn("upstream %q is not defined under upstreams, ignored", short(id))
		default:
			m.Upstreams = append(m.Upstreams, id)
		}
	}
	if !m.Usable() {
		n.warn("model %q has no usable upstream: it is not listed, and requests for it get 404", short(m.Name))
	}
	if hops := doc.Resilience.MaxHops; len(m.Upstreams) > hops {
		n.warn("model %q lists %d upstreams, but resilience.max_hops allows %d calls per request", short(m.Name), len(m.Upstreams), hops)
	}
	if _, twice := doc.Config.models[m.Name]; twice && m.Name != "" {
		n.fail("name %q is given twice", short(m.Name))
		return
	}
	doc.Config.models[m.Name] = len(doc.Models)
	doc.Models = append(doc.Models, m.Model)
}

func (doc *document) hasUpstream(id string) bool {
	_, ok := doc.Config.upstreams[id]
	return ok
}

// checkUse warns of what nothing refers to, and of limits that look shared but are not (C-13).
func (doc *document) checkUse() {
	used := map[string]bool{}
	for _, m := range doc.Models {
		for _, id := range m.Upstreams {
			used[id] = true
		}
	}
	inheriting := map[string]int{}
	called := map[string]bool{}
	for _, u := range doc.rawUpstreams {
		called[u.Provider] = true
		if u.limit == nil {
			inheriting[u.Provider]++
		}
		if !used[u.ID] {
			u.node.warn("upstream %q is in no model", short(u.ID))
		}
	}
	for _, p := range doc.rawProviders {
		if _, preset := presets[p.ID]; !preset && !called[p.ID] {
			p.node.warn("provider %q has no upstream", short(p.ID))
		}
		if p.Limit > 0 && inheriting[p.ID] > 1 {
			p.node.warn("max_concurrency %d applies to each of %d upstreams, not to all of them together", p.Limit, inheriting[p.ID])
		}
	}
}

// Loopback says whether only this machine can reach the listener.
func (s Server) Loopback() bool {
	if s.Host == "localhost" {
		return true
	}
	ip := net.ParseIP(s.Host)
	return ip != nil && ip.IsLoopback()
}
