package movein

import (
	"cmp"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// olla takes over the configuration of Olla (https://thushan.github.io/olla/configuration/reference/).
type olla struct{ *builder }

// dollar is how Olla names a variable: as we do.
func dollar(s string) (string, bool) {
	name, ok := strings.CutPrefix(s, "${")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(name, "}")
}

func likeOlla(root *value) bool {
	return root.get("discovery", "static").is() || root.any("model_registry", "model_aliases", "translators", "discovery") ||
		root.get("proxy").any("engine", "load_balancer")
}

// ollaTypes are the types of endpoints that speak OpenAI's protocol, with the path of its version.
var ollaTypes = map[string]string{
	"": "/v1", "auto": "/v1", "openai": "/v1", "openai-compatible": "/v1", "ollama": "/v1", "lm-studio": "/v1", "lmstudio": "/v1", "vllm": "/v1", "vllm-mlx": "/v1", "sglang": "/v1",
	"lmdeploy": "/v1", "llamacpp": "/v1", "llama-cpp": "/v1", "llama.cpp": "/v1", "litellm": "/v1", "omlx": "/v1", "lemonade": "/api/v1", "docker-model-runner": "/engines/v1",
	"dmr": "/engines/v1",
}

func importOlla(b *builder) error {
	o := &olla{builder: b}
	b.open = true
	b.root.explain(ollaRoot)
	for name, hints := range map[string]map[string]string{"server": ollaServer, "proxy": ollaProxy, "discovery": ollaDiscovery, "logging": ollaLogging} {
		b.root.get(name).explain(hints)
	}
	o.endpoints(b.root.get("discovery", "static", "endpoints"))
	b.root.get("discovery", "type").str()
	o.server(b.root.get("server"))
	o.proxy(b.root.get("proxy"))
	switch level := b.root.get("logging", "level").str(); level {
	case "debug", "info", "warn", "error":
		b.Log.Level = level
	case "":
	default:
		b.root.get("logging", "level").refuse("is no level of the log here")
	}
	switch format := b.root.get("logging", "format").str(); format {
	case "json", "text":
		b.Log.Format = format
	case "":
	default:
		b.root.get("logging", "format").refuse("is no format of the log here")
	}
	o.aliases(b.root.get("model_aliases"))
	return nil
}

// usualPriority is what Olla takes for an endpoint that has none.
const usualPriority = 100

// endpoints reads the list of endpoints. They are asked by their priority, as providers in routing.priority are.
func (o *olla) endpoints(v *value) {
	priority := map[string]float64{}
	all := v.each()
	for _, e := range all {
		e.explain(ollaEndpoint)
		kind := strings.ToLower(e.get("type").peek())
		path, known := ollaTypes[kind]
		name := e.get("name").peek()
		switch {
		case !e.any("url"):
			e.refuse("is no endpoint: it needs an url")
			continue
		case !known:
			e.refuse("%s: there is no such type of endpoint here", kind)
			continue
		}
		if name == "" {
			name = cmp.Or(kind, "endpoint")
		}
		if why := o.fileSecret(e.get("auth")); why != "" {
			e.refuse("%s", why)
			continue
		}
		finish := func(p string) string {
			if versionAtEnd.MatchString(p) {
				return p
			}
			return p + strings.TrimPrefix(path, p[max(0, strings.LastIndexByte(p, '/')):]) // /api may be there already
		}
		a, ok := o.address(e.get("url"), name, finish)
		if !ok {
			e.refuse("its address can't be used: %s", e.get("url").why)
			continue
		}
		p := &provider{URL: a.url, Headers: map[string]string{}}
		id := name
		if kind == "ollama" {
			if len(all) == 1 {
				p.Dialect = "ollama"
			} else if slug(strings.ToLower(id)) == "ollama" {
				id = "ollama-server" // the id alone would make it a local agent, which is not asked in the turn of its priority
			}
			e.get("type").note("is asked by OpenAI's protocol, which takes part in the order of priorities")
			if p.Dialect != "" {
				e.get("type").notes = nil
			}
		}
		p.ID = o.id("provider", id)
		e.get("type").str()
		e.get("name").str()
		if a.authorization != "" {
			p.Headers["Authorization"] = a.authorization
		}
		o.auth(p, e.get("auth"), name)
		for _, h := range e.get("headers").pairs() {
			o.header(p.Headers, h.key, h.value, name)
		}
		n, ok := e.get("priority").num()
		if !ok {
			n = usualPriority
		}
		priority[p.ID] = n
		p.speak("openai")
		o.Providers = append(o.Providers, p)
	}
	order := slices.Clone(o.Providers)
	slices.SortStableFunc(order, func(a, b *provider) int { return cmp.Compare(priority[b.ID], priority[a.ID]) })
	for _, p := range order {
		o.Routing.Priority = append(o.Routing.Priority, p.ID)
	}
}

// fileSecret refuses credentials that can't be read from where they are.
func (o *olla) fileSecret(auth *value) string {
	switch kind := strings.ToLower(auth.get("type").peek()); {
	case !auth.is():
		return ""
	case kind != "bearer" && kind != "api_key" && kind != "basic":
		return "its kind of authentication has no counterpart"
	case kind == "basic" && (auth.get("username_file").is() || auth.get("password_file").is()):
		return "user and password are in files: put the header Authorization into a variable, and the endpoint into the configuration by hand"
	}
	return ""
}

// auth reads the credentials of an endpoint.
func (o *olla) auth(p *provider, v *value, name string) {
	from := func(field string) string {
		if file := v.get(field + "_file"); file.is() {
			where := file.str()
			return o.vars.named(o.free(name+"_"+field), "what is in the file "+where+", which the gateway does not read")
		}
		return o.secret(v.get(field), name+"_"+field)
	}
	switch strings.ToLower(v.get("type").str()) {
	case "bearer":
		p.add(from("token"))
	case "api_key":
		header := v.get("header").str()
		if header == "" {
			header = "X-Api-Key"
		}
		if key := from("key"); key != "" && strings.EqualFold(header, "Authorization") {
			p.Headers["Authorization"] = key
		} else if key != "" && plainHeader.MatchString(header) && !own[strings.ToLower(header)] {
			p.Headers[header] = key
		} else if key != "" {
			v.get("header").refuse("is no header that can be set")
		}
	case "basic":
		user, password := v.get("username"), v.get("password")
		_, isUser := o.variable(user.peek())
		_, isPassword := o.variable(password.peek())
		if isUser || isPassword {
			p.Headers["Authorization"] = o.vars.named(o.free(name+"_authorization"), "Basic and, in base64, user:password")
			v.take()
			v.note("user and password become one header; set %s to \"Basic \" and user:password in base64", p.Headers["Authorization"])
			return
		}
		p.Headers["Authorization"] = o.vars.literal(name+"_authorization", basic(user.str(), password.str()), v.path)
	}
}

var plainHeader = regexp.MustCompile(`^[A-Za-z0-9-]+$`)

// free gives a name for a variable that is not in use.
func (b *builder) free(wanted string) string {
	name := shout(wanted)
	for b.vars.byName[name] != nil || b.vars.source[name] {
		name += "_2"
	}
	return name
}

func (o *olla) server(v *value) {
	if host := v.get("host").str(); host != "" {
		if _, err := netip.ParseAddr(host); err != nil && !plainHost.MatchString(host) {
			v.get("host").refuse("is no address to listen on")
		} else {
			o.Server.Host = host
		}
	}
	if port, ok := v.get("port").whole(); ok && port > 0 && port < 1<<16 {
		o.Server.Port = port
	} else if ok {
		v.get("port").refuse("is no port")
	}
	limits := v.get("request_limits")
	limits.explain(map[string]string{"max_header_size": "is fixed"})
	if n, ok := bytesOf(limits.get("max_body_size")); ok {
		o.Server.MaxBodyBytes = n
	}
	if d, ok := v.get("shutdown_timeout").duration(); ok {
		o.Server.DrainTimeout = span(d)
	}
	if on, ok := v.get("cors", "enabled").flag(); ok {
		v.get("cors").explain(map[string]string{"allowed_methods": "is fixed", "allowed_headers": "is fixed", "exposed_headers": "is fixed", "max_age": "is fixed", "allow_credentials": "keys are in headers, and not in cookies"})
		if on {
			o.origins(v.get("cors", "allowed_origins"))
		} else {
			v.get("cors").hint = "is off"
		}
	}
	rates := v.get("rate_limits")
	if on, ok := rates.get("trust_proxy_headers").flag(); ok && on {
		for _, network := range rates.get("trusted_proxy_cidrs").each() {
			s := network.str()
			if _, _, err := net.ParseCIDR(s); err != nil {
				network.refuse("is no network")
				continue
			}
			o.Server.TrustedProxies = append(o.Server.TrustedProxies, s)
		}
	} else if rates.get("trusted_proxy_cidrs").is() {
		rates.get("trusted_proxy_cidrs").hint = "counts only with trust_proxy_headers"
	}
}

var plainHost = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,250}[A-Za-z0-9])?$`)

var sized = regexp.MustCompile(`^([0-9]{1,9})\s*([KMG]i?B)$`)

// bytesOf gives a size in bytes: a number, or a text such as 50MB.
func bytesOf(v *value) (int, bool) {
	m := sized.FindStringSubmatch(strings.ToUpper(v.peek()))
	if v == nil || v.shape == number || m == nil {
		n, ok := v.whole()
		return n, ok && n > 0
	}
	number := &value{shape: number, scalar: m[1]}
	n, ok := number.whole()
	unit := map[byte]int{'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30}[m[2][0]]
	if !ok || n == 0 || n > (1<<31-1)/unit {
		v.refuse("is no size that is taken here")
		return 0, false
	}
	v.take()
	return n * unit, true
}

// proxy reads times and the order of endpoints.
func (o *olla) proxy(v *value) {
	headers, _ := v.get("response_header_timeout").duration()
	total, _ := v.get("response_timeout").duration()
	if headers > 0 || total > 0 {
		o.timeouts(headers, total)
	}
	if idle, ok := v.get("read_timeout").duration(); ok {
		o.Resilience.IdleTimeout = span(idle)
	}
	if balancer := v.get("load_balancer"); balancer.is() && balancer.str() != "priority" {
		balancer.note("endpoints of one model are asked by their priority here, the next one when one fails")
	}
	if n, ok := v.get("retry", "max_attempts").whole(); ok && n > 0 {
		o.Resilience.MaxHops = min(n, maxAttempts)
	} else if ok {
		o.Resilience.MaxHops = min(max(len(o.Providers), defaultHops), maxAttempts)
	}
}

// aliases reads model_aliases: a name, and what backends call it.
func (o *olla) aliases(v *value) {
	for _, p := range v.pairs() {
		for i, m := range p.value.each() {
			to := m.name()
			if i > 0 {
				m.refuse("an alias leads to one name here: give the endpoints models of their own (upstreams, models) for names that differ")
				continue
			}
			if why := o.alias(p.key, to, to != ""); why != "" {
				m.refuse("%s", why)
			}
		}
	}
}
