package movein

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"golang.org/x/net/http/httpguts"

	"hydrallm/shared/config"
)

// builder makes a target out of a source.
type builder struct {
	target

	root  *value
	vars  *variables
	ref   func(text string) (name string, ok bool) // how the source names an environment variable
	steps []string                                 // what is left to do by hand
	ids   map[string]bool
	open  bool // variables in the source are written as ours are
	read  func(name string) ([]byte, error)
}

func newBuilder(root *value, ref func(string) (string, bool)) *builder {
	b := &builder{root: root, vars: newVariables(), ref: ref, ids: map[string]bool{}}
	b.Routing.Aliases = map[string]string{}
	b.reserve(root)
	return b
}

// reserve keeps names of variables that the source uses from being given to others.
func (b *builder) reserve(v *value) {
	if name, ok := b.variable(v.scalar); v.shape == text && ok {
		b.vars.source[name] = true
	}
	for _, k := range v.keys {
		b.reserve(v.fields[k])
	}
	for _, item := range v.items {
		b.reserve(item)
	}
}

// variable gives the name of the variable that a text of the source stands for.
func (b *builder) variable(s string) (string, bool) {
	name, ok := b.ref(strings.TrimSpace(s))
	return name, ok && variableName.MatchString(name) && !config.LikeCredential(name)
}

// id gives an id that no other provider or upstream has, out of words of the source.
func (b *builder) id(kind, wanted string) string {
	if config.LikeCredential(wanted) {
		wanted = kind
	}
	base := slug(wanted)
	id := base
	for i := 2; b.ids[kind+strings.ToLower(id)]; i++ {
		id = fmt.Sprintf("%s-%d", base, i)
	}
	b.ids[kind+strings.ToLower(id)] = true
	return id
}

// hostID makes an id of the host of an address, where a variable does not hide it.
func hostID(address, otherwise string) string {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || strings.Contains(address, "${") {
		return otherwise
	}
	return u.Hostname()
}

var notInID = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

func slug(s string) string {
	s = strings.Trim(notInID.ReplaceAllString(s, "-"), "-")
	if s == "" {
		return "provider"
	}
	return s[:min(len(s), 100)]
}

// secret gives a reference for a value that nobody must see. hint names the variable when the value is in plain. It is "" for nothing, and for what
// no header can carry.
func (b *builder) secret(v *value, hint string) string {
	s := v.str()
	if s == "" {
		return ""
	}
	if name, ok := b.variable(s); ok {
		return b.vars.named(name, v.path)
	}
	if !httpguts.ValidHeaderFieldValue(s) {
		v.refuse("holds a control character, so that no HTTP header can carry it")
		return ""
	}
	return b.vars.literal(hint, s, v.path)
}

// keyName names the variable of a key. That of a vendor is the usual one only for the vendor's own address: where it is set already, another one would get
// the vendor's key.
func keyName(vendor, address string) string {
	usual := vendors[vendor]
	if usual.preset != "" {
		vendor = usual.preset
	}
	if address == "" || address == usual.url || address == presetHosts[usual.preset] || vendor == "azure" {
		return vendor + "_API_KEY"
	}
	return hostID(address, vendor+"_OTHER") + "_API_KEY"
}

// address is where a provider is.
type address struct {
	url           string
	authorization string // that the URL had in it, as a reference; "" for none
}

// address reads a URL. finish completes the path of one that is known. It refuses what is none; then ok is false.
func (b *builder) address(v *value, hint string, finish func(path string) string) (a address, ok bool) {
	s := v.str()
	if name, is := b.variable(s); is {
		a.url = b.vars.named(name, v.path+", an address") + strings.TrimPrefix(finish(""), "/v1")
		b.vars.beginsAddresses(name)
		if a.url != "${"+name+"}" {
			v.note("the address in %s must not end with a slash, since a path is put behind it", name)
		}
		return a, true
	}
	if b.open && strings.Contains(s, "${") {
		return b.embedded(v, s, finish)
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || strings.Contains(s, "${"):
		v.refuse("is no address that begins with http:// or https://")
		return a, false
	case !validPort(u.Port()) || u.Fragment != "":
		v.refuse("is an address with a port or a fragment that makes no sense")
		return a, false
	}
	if u.User != nil {
		password, _ := u.User.Password()
		a.authorization = b.vars.literal(hint+"_AUTHORIZATION", basic(u.User.Username(), password), v.path)
		u.User = nil
		v.note("the user and the password in it become a header, %s", a.authorization)
	}
	u.Path, u.RawPath = finish(strings.TrimRight(u.Path, "/")), ""
	if a.url = u.String(); u.RawQuery != "" || u.ForceQuery || config.LikeCredential(u.Path) {
		a.url = b.vars.literal(hint+"_URL", a.url, v.path)
		b.vars.beginsAddresses(strings.Trim(a.url, "${}"))
	}
	return a, true
}

var reference = regexp.MustCompile(`\$\{([^}]*)\}`)

// embedded is an address that has variables in it which are written as ours are.
func (b *builder) embedded(v *value, s string, finish func(string) string) (a address, ok bool) {
	plain, good := s, true
	for _, m := range reference.FindAllStringSubmatch(s, -1) {
		name, otherwise, _ := strings.Cut(m[1], ":-")
		if !variableName.MatchString(name) || strings.Contains(otherwise, "$") {
			good = false
			break
		}
		b.vars.named(name, v.path+", a part of an address")
		if strings.HasPrefix(s, m[0]) {
			b.vars.beginsAddresses(name)
		} else {
			b.vars.byName[name].sham = "1" // a port, a host or a part of a path
		}
		plain = strings.ReplaceAll(plain, m[0], b.vars.byName[name].sham)
	}
	u, err := url.Parse(plain)
	if !good || err != nil || config.LikeCredential(s) || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		v.refuse("is no address that the gateway could use with the variables in it")
		return a, false
	}
	before := strings.TrimRight(u.Path, "/")
	after := finish(before)
	return address{url: strings.TrimRight(s, "/") + strings.TrimPrefix(after, before)}, true
}

func validPort(s string) bool {
	n, err := strconv.Atoi(s)
	return s == "" || err == nil && n > 0 && n < 1<<16
}

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// unchanged leaves a path as it is.
func unchanged(path string) string { return path }

var versionAtEnd = regexp.MustCompile(`/v[0-9]+[a-z0-9]*(/openai)?$`)

// versioned completes a path with /v1 where it has no version.
func versioned(path string) string {
	if versionAtEnd.MatchString(path) {
		return path
	}
	return path + "/v1"
}

// harmless are headers whose values are no secrets.
var harmless = map[string]bool{
	"http-referer": true, "referer": true, "x-title": true, "user-agent": true, "accept": true, "openai-organization": true, "openai-project": true, "openai-beta": true,
	"anthropic-version": true, "anthropic-beta": true,
}

// own are headers that the gateway sets itself.
var own = map[string]bool{
	"connection": true, "content-length": true, "content-type": true, "host": true, "keep-alive": true, "proxy-connection": true, "te": true, "trailer": true,
	"transfer-encoding": true, "upgrade": true,
}

// header adds a header. Its value becomes a variable, unless the header is known to be harmless.
func (b *builder) header(headers map[string]string, key string, v *value, hint string) {
	folded := strings.ToLower(key)
	switch {
	case !httpguts.ValidHeaderFieldName(key):
		v.refuse("is no name of an HTTP header")
		return
	case own[folded]:
		v.refuse("the gateway sets this header itself")
		return
	case config.LikeCredential(key):
		v.refuse("the name of the header looks like a secret")
		return
	}
	for have := range headers {
		if strings.EqualFold(have, key) {
			v.refuse("the header is given twice")
			return
		}
	}
	s := v.str()
	_, isVariable := b.variable(s)
	switch {
	case s == "":
	case harmless[folded] && !isVariable && !strings.Contains(s, "${") && httpguts.ValidHeaderFieldValue(s):
		headers[key] = s
	default:
		if ref := b.secret(v, hint+"_"+key); ref != "" {
			headers[key] = ref
		}
	}
}

// origins takes over which pages may call the gateway.
func (b *builder) origins(v *value) {
	for _, item := range v.each() {
		switch s := item.str(); {
		case s == "*" && len(b.Server.ClientKeys) == 0 && b.Server.ClientAccess != "keys":
			item.refuse("every web page could use the gateway: set server.client_keys, then server.cors_origins")
		case s != "*" && !plainOrigin.MatchString(s):
			item.refuse("is no origin that the gateway takes")
		default:
			b.Server.CORSOrigins = append(b.Server.CORSOrigins, s)
		}
	}
}

var plainOrigin = regexp.MustCompile(`^https?://[A-Za-z0-9.-]+(:([1-9][0-9]{0,3}|[1-5][0-9]{4}))?$`)

// timeouts sets the timeouts of everything.
func (b *builder) timeouts(headers, total time.Duration) {
	b.Resilience.HeadersTimeout, b.Resilience.RequestTimeout = timeouts(headers, total)
}

// attempts raises how many keys of a pool are tried, and how many upstreams.
func (b *builder) attempts(retries int) {
	b.Resilience.MaxRetries = max(b.Resilience.MaxRetries, min(retries, maxAttempts-1)+1)
}

// maxAttempts is the most attempts that are taken over.
const maxAttempts = 100

// confidential is what names of members say whose values must not be in the result.
var confidential = regexp.MustCompile(`(?i)(key|token|secret|passw|credential|authori[sz]ation|auth$|cookie|private)`)

// notConfidential are members of requests that only look so.
var notConfidential = regexp.MustCompile(`(?i)(^|_|-)(max_(completion_|output_|input_|new_|thinking_)?tokens|budget_tokens|min_tokens|stop_token_ids|logit_bias|prompt_cache_key|key_value|skip_special_tokens|ignore_eos_token|tokens)$`)

// longMix is a text that is too long and mixed for words.
var longMix = regexp.MustCompile(`^[A-Za-z0-9+/=_-]{32,}$`)

// body turns a member of request bodies into YAML. It refuses what holds a variable, which nothing would replace there, or may hold a secret.
func (b *builder) body(key string, v *value) *yaml.Node {
	if confidential.MatchString(key) && !notConfidential.MatchString(key) || config.LikeCredential(key) {
		v.refuse("may be a secret: a patch can hold none; if it must be sent, it belongs into providers[].headers")
		return nil
	}
	n := &yaml.Node{Line: 0}
	switch v.shape {
	case mapping:
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
		for _, p := range v.pairs() {
			if member := b.body(p.key, p.value); member != nil {
				n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: p.key}, member)
			}
		}
	case list:
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		for _, item := range v.each() {
			if member := b.body(key, item); member != nil {
				n.Content = append(n.Content, member)
			}
		}
	default:
		if v.shape == text {
			if _, is := b.variable(v.scalar); is || strings.Contains(v.scalar, "${") {
				v.refuse("variables are not replaced in bodies of requests")
				return nil
			}
			if longMix.MatchString(v.scalar) || config.LikeCredential(v.scalar) {
				v.refuse("looks like a secret: a patch can hold none")
				return nil
			}
		}
		if v.shape == number && !jsonNumber.MatchString(v.scalar) {
			v.refuse("is no number that JSON has")
			return nil
		}
		v.take()
		n.Kind, n.Value = yaml.ScalarNode, v.scalar
		if strings.ContainsAny(v.scalar, "\n\r\t") {
			n.Style = yaml.DoubleQuotedStyle
		}
		n.Tag = map[shape]string{text: "!!str", number: "!!int", boolean: "!!bool", nothing: "!!null"}[v.shape]
		if v.shape == number && strings.ContainsAny(v.scalar, ".eE") {
			n.Tag = "!!float"
		}
		if v.shape == nothing {
			n.Value = "null"
		}
	}
	return n
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?([eE][+-]?[0-9]{1,2})?$`)

// member adds a member to a mapping that may not be there yet.
func member(into **yaml.Node, key string, n *yaml.Node) {
	if n == nil {
		return
	}
	if *into == nil {
		*into = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	}
	(*into).Content = append((*into).Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, n)
}

// model adds a model with its upstreams.
func (b *builder) model(name string, upstreams []string) {
	b.Models = append(b.Models, &model{Name: name, Upstreams: upstreams})
	if n := len(upstreams); n > defaultHops {
		b.Resilience.MaxHops = max(b.Resilience.MaxHops, n)
	}
}

// defaultHops is the default of resilience.max_hops.
const defaultHops = 3

// alias adds another name for a model. It gives why that is not possible, or "".
func (b *builder) alias(name, to string, known bool) (why string) {
	named := func(m *model, wanted string) bool { return m.Name == wanted }
	switch {
	case badName(name) != "":
		return badName(name)
	case !known:
		return "no model of this name was taken"
	case name == to:
		return "leads to itself"
	case slices.ContainsFunc(b.Models, func(m *model) bool { return named(m, name) }):
		return "a model has this name, which comes first"
	}
	if !b.meant(name) {
		b.Routing.Aliases[name] = to
		return ""
	}
	at := slices.IndexFunc(b.Models, func(m *model) bool { return named(m, to) })
	if at < 0 {
		return "the name means a provider"
	}
	b.model(name, b.Models[at].Upstreams)
	return ""
}

// meant says whether a name means something else before aliases are looked at: a provider, or that the gateway chooses.
func (b *builder) meant(name string) bool {
	folded := strings.ToLower(name)
	if folded == "auto" || folded == "default" || folded == "mllm/auto" {
		return true
	}
	return slices.ContainsFunc(b.Providers, func(p *provider) bool {
		id := strings.ToLower(p.ID)
		return folded == id || strings.HasPrefix(folded, id+"/")
	})
}

// speak sets the dialect of a provider, where its id does not bring along that of its preset.
func (p *provider) speak(usual string) {
	switch {
	case p.Dialect != "":
	case usual == "gemini" && p.URL != "" && !strings.HasSuffix(p.URL, "/openai"):
		p.Dialect = "gemini"
	case p.ID != usual && (usual == "anthropic" || usual == "ollama"):
		p.Dialect = usual
	case p.ID != usual && config.Known(p.ID):
		p.Dialect = "openai"
	}
}
