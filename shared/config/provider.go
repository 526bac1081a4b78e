package config

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"golang.org/x/net/http/httpguts"
)

// Provider is a place to call, with the credentials for it.
type Provider struct {
	ID             string
	Dialect        string // one of Dialects
	URL            string // with the version path, without a slash at the end; may have a query
	Keys           []Key  // distinct. None: no credentials are sent, or, when Pooled, no key is there yet
	Tier           string // of a key that states none
	Pooled         bool   // its keys have cooldowns. Not so with a single key, which only has the breaker (C-11)
	Limit          int    // default limit of each of its models; 0 = unlimited
	SessionHeader  string // canonical name, "" = none
	ThinkTags      ThinkTags
	Patch          json.RawMessage   // JSON object as in the file, or nil
	Defaults       json.RawMessage   // the same, of members that the client may set itself
	Headers        map[string]Secret // by canonical name
	DefaultModels  DefaultModels
	HeadersTimeout time.Duration // that of Resilience unless the provider has its own
	RequestTimeout time.Duration
}

// Key is one credential of a provider.
type Key struct {
	Value Secret
	Tier  string // free | standard | premium | experimental | unknown
}

// DefaultModels are the models for automatic routing until discovery knows better.
type DefaultModels struct{ Free, Premium string }

// providerEntry is a provider as the file has it.
type providerEntry struct {
	Provider
	path  string
	key   Secret
	limit *int
	seen  map[Secret]bool
}

func newProviderEntry(path string) *providerEntry {
	return &providerEntry{path: path, seen: map[Secret]bool{}}
}

func (p *providerEntry) settings() []setting {
	var k Key
	return []setting{
		key("id", name(&p.ID), "", "unique name. The ids below bring a preset along").must().not("name"),
		key("dialect", oneOf(&p.Dialect, sortedKeys(Dialects)...), "",
			"the protocol it speaks. Requests and answers are translated where it is not OpenAI's, see [dialects](#dialects)").
			inherits("`openai`, unless the preset has another").steering().not("type", "protocol", "api", "format"),
		key("url", web(&p.URL), "", "base address with the version path, such as `https://routerai.ru/api/v1`. Slashes at the end don't matter. A bare "+
			"host is completed with `/v1`, one of the dialect `gemini` with `/v1beta`; `anthropic` and `opencode` take the address of the server itself. "+
			"No user, password or fragment").inherits("required, unless the preset has one").steering().
			not("baseurl", "apibase", "apiurl", "endpoint", "address", "host", "server"),
		key("key", credential(&p.key), "", "the one key, sent as `Authorization: Bearer`. Empty: no credentials are sent").
			steering().not("apikey", "token", "apitoken", "secret", "auth"),
		key("keys", kind{name: "list", list: true, expands: true, fields: k.settings(), read: func(n node) { n.words(p.addKey) }}, "",
			"a pool of keys instead: each call takes one at random, and a key that fails rests (`resilience.cooldowns`). An entry is a key, or "+
				"`{value: ..., tier: ...}`. Blanks and repetitions are ignored. Not together with `key`").inherits("none").
			steering().not("apikeys", "tokens"),
		key("tier", tier(&p.Tier), "unknown", "what its keys are worth; a key of the pool may have its own"),
		key("max_concurrency", limit(&p.limit), "null", "calls at the same time to **each** of its models, unless the upstream has its own limit. "+
			"null and `0`: unlimited").not("concurrency", "maxparallel", "parallel"),
		key("session_header", kind{name: "text or null", read: p.readSessionHeader}, "null", "name of a header that tells the provider which "+
			"conversation a request belongs to. The gateway computes its value"),
		key("think_tags", thinkTags(&p.ThinkTags), "off", "what happens to `<think>` blocks in answers: nothing, moved to `reasoning_content`, or "+
			"removed. `true` is `split`, `false` is `off`"),
		key("patch", patch(&p.Patch), "{}", "merged into the body of every request to it, see [patches](#patches)"),
		key("defaults", defaults(&p.Defaults), "{}", "members of requests to it that the client may set itself, see [defaults](#defaults)"),
		key("headers", kind{name: "mapping of text", expands: true, read: p.readHeaders}, "{}", "headers that every request to it carries").not("extraheaders"),
		key("default_models", mapping(
			key("free", text(&p.DefaultModels.Free), "", "with keys that are not premium"),
			key("premium", text(&p.DefaultModels.Premium), "", "with a premium key"),
		), "", "models that automatic routing takes until the provider's own list is known"),
		key("headers_timeout", positive(&p.HeadersTimeout), "", "own limit").inherits("that of `resilience`"),
		key("request_timeout", positive(&p.RequestTimeout), "", "own limit").inherits("that of `resilience`").not("timeout"),
	}
}

func (k *Key) settings() []setting {
	return []setting{
		key("value", kind{name: "text", expands: true, read: k.readValue}, "", "the key").must(),
		key("tier", tier(&k.Tier), "", "what it is worth").inherits("that of the provider"),
	}
}

func tier(p *string) kind { return oneOf(p, "free", "standard", "premium", "experimental", "unknown") }

// addKey reads one key of a pool: text, or {value, tier}. Blanks and repetitions are ignored.
func (p *providerEntry) addKey(n node) {
	var k Key
	if n.Kind == yaml.MappingNode {
		n.fields(k.settings())
	} else {
		k.readValue(n)
	}
	switch {
	case k.Value == "":
	case p.seen[k.Value]:
		n.warn("the same again, ignored")
	default:
		p.seen[k.Value] = true
		p.Keys = append(p.Keys, k)
	}
}

func (k *Key) readValue(n node) {
	v, ok := n.credential()
	if ok && v == "" {
		n.warn("empty, ignored")
	}
	k.Value = v
}

// own are the headers that the gateway sets itself.
var own = map[string]bool{
	"Connection": true, "Content-Length": true, "Content-Type": true, "Host": true, "Keep-Alive": true, "Proxy-Connection": true,
	"Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

// headerName gives the canonical form of a name that the configuration may use.
func (n node) headerName(name string) (string, bool) {
	canonical := http.CanonicalHeaderKey(name)
	switch {
	case !httpguts.ValidHeaderFieldName(name):
		n.fail("%q is not the name of an HTTP header", short(name))
	case own[canonical]:
		n.fail("the gateway sets the header %s itself", canonical)
	default:
		return canonical, true
	}
	return "", false
}

func (p *providerEntry) readHeaders(n node) {
	p.Headers = map[string]Secret{}
	n.pairs(func(key, value node) {
		name, ok := value.headerName(key.Value)
		if !ok {
			return
		}
		if _, twice := p.Headers[name]; twice {
			value.fail("the header %s is given twice", name)
			return
		}
		if v, ok := value.secret(); ok {
			p.Headers[name] = v
		}
	})
}

func (p *providerEntry) readSessionHeader(n node) {
	name, ok := n.text()
	if !ok || name == "" {
		return
	}
	if name, ok = n.headerName(name); !ok {
		return
	}
	if name == "Authorization" || name == "Cookie" {
		n.fail("a session id must not take the place of the header %s", name)
		return
	}
	p.SessionHeader = name
}

// addProvider completes a provider, checks it and adds it to the configuration.
func (doc *document) addProvider(p *providerEntry) {
	pre, known := presets[p.ID]
	if p.Dialect == "" {
		p.Dialect = "openai"
		if known {
			p.Dialect = pre.dialect
		}
	}
	if p.URL == "" {
		p.URL = pre.urls[p.Dialect]
		if p.URL == "" && !doc.given(p.path+".url") {
			if meant := nearest(p.ID, sortedKeys(presets)); meant != "" && p.ID != "" {
				doc.fail(p.path+".id", "%q is no well-known id and has no url: did you mean %s?", short(p.ID), meant)
			} else {
				doc.fail(p.path+".url", "is missing")
			}
		}
	}
	base, cut := Dialects[p.Dialect].withoutEndpoint(p.URL)
	if cut != "" {
		doc.warn(p.path+".url", "is the address of an endpoint: %s at its end is left out", short(cut))
	}
	p.URL = Dialects[p.Dialect].complete(base)
	if p.DefaultModels == (DefaultModels{}) {
		p.DefaultModels = pre.models
	}
	doc.addKeys(p, pre)
	if p.limit != nil {
		p.Limit = *p.limit
	}
	p.HeadersTimeout = cmp.Or(p.HeadersTimeout, doc.Resilience.HeadersTimeout)
	p.RequestTimeout = cmp.Or(p.RequestTimeout, doc.Resilience.RequestTimeout)
	if doc.given(p.path+".headers_timeout") || doc.given(p.path+".request_timeout") {
		doc.checkTimeouts(p.path+".request_timeout", p.HeadersTimeout, p.RequestTimeout)
	}
	if doc.unique(p.ID, p.path, "id", doc.providerAt, "providers") {
		doc.providerAt[p.ID] = len(doc.Providers)
		if folded := strings.ToLower(p.ID); doc.folded[folded] == "" {
			doc.folded[folded] = p.ID
		}
		doc.Providers = append(doc.Providers, p.Provider)
	}
}

// checkProviders warns of what two parts of a provider, or two providers, say differently.
func (doc *document) checkProviders() {
	for _, p := range doc.providers {
		if _, twice := p.Headers[p.SessionHeader]; twice {
			doc.warn(p.path+".session_header", "headers has %s too: the session id takes its place", p.SessionHeader)
		}
		if doc.isSelf(p.URL) {
			doc.warn(p.path+".url", "leads to this gateway itself, if both are on one machine")
		}
		if first := doc.folded[strings.ToLower(p.ID)]; first != p.ID {
			doc.warn(p.path+".id", "differs from %q only in case, which does not count in the names that clients send", short(first))
		}
	}
}

// addKeys decides between a single key, a pool and none.
func (doc *document) addKeys(p *providerEntry, pre preset) {
	single, pool := doc.given(p.path+".key"), doc.given(p.path+".keys")
	switch {
	case p.key != "" && len(p.Keys) > 0:
		doc.fail(p.path+".keys", "has keys beside key: give one of them")
	case p.key != "":
		p.Keys = []Key{{Value: p.key}}
	case len(p.Keys) > 0:
		p.Pooled = true
	case single:
	case pool || pre.pooled:
		p.Pooled = true
	case pre.key != "":
		p.Keys = []Key{{Value: Secret(pre.key)}}
	}
	for i := range p.Keys {
		if p.Keys[i].Tier == "" {
			p.Keys[i].Tier = p.Tier
		}
	}
	if len(p.Keys) == 0 && strings.HasPrefix(p.URL, "https://") && !p.authorized() {
		doc.warn(p.path, "provider %q has no key, although its url is https", short(p.ID))
	}
}

// authorized says whether its static headers hold credentials.
func (p *providerEntry) authorized() bool {
	for name := range p.Headers {
		if name == "Authorization" || strings.HasSuffix(name, "Api-Key") {
			return true
		}
	}
	return false
}
