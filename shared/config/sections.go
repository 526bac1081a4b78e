package config

import (
	"math"
	"net"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"golang.org/x/net/http/httpguts"
)

// defaults are the values in force when a key is absent.
func defaults() *Config {
	return &Config{
		Server: Server{
			Host: "0.0.0.0", Port: 8100, MaxBodyBytes: 32 << 20, QueueTimeout: 30 * time.Second, DrainTimeout: time.Minute, Locale: "en",
		},
		Routing: Routing{
			Priority:      []string{"gemini", "groq", "cerebras", "ollama", "opencode", "openclaw"},
			MaxTokensFast: 8192, Fast: []string{"groq", "cerebras"}, Large: "gemini", FinalFallback: "ollama", Aliases: defaultAliases(),
		},
		Resilience: Resilience{
			MaxHops: 3, MaxRetries: 3, GateTimeout: 30 * time.Second, HeadersTimeout: 240 * time.Second, RequestTimeout: 300 * time.Second,
			ProviderBreaker: Breaker{Consecutive: 5, OpenFor: time.Minute, HalfOpen: true},
			ChannelBreaker:  Breaker{Failures: 3, Window: 5 * time.Minute, OpenFor: time.Minute},
			Cooldowns:       Cooldowns{Forbidden: 24 * time.Hour, Quota: time.Hour, Other: 5 * time.Minute, Max: 24 * time.Hour},
			ProbeInterval:   time.Minute,
		},
		Web: Web{
			Enabled: true, Backend: "inprocess", MCP: MCP{Fallback: true, Timeout: 30 * time.Second}, Search: []string{"duckduckgo", "bing"},
			OpenSERP: OpenSERP{Engine: "google"}, MaxChars: 6000, CacheTTL: 24 * time.Hour, Deadline: 45 * time.Second, Browser: "auto",
			Intent: Intent{EmbeddingModel: "bge-m3:latest", EmbeddingURL: "http://localhost:11434", Threshold: 0.58},
		},
		Sessions:  Sessions{Database: "sqlite:data/hydrallm.db", CompactThreshold: 6000, RecentWindow: 4, RetentionDays: 30},
		NATS:      NATS{StoreDir: "data/nats", Replicas: 1},
		Log:       Log{Level: "info", Format: "text"},
		Telemetry: Telemetry{ServiceName: "hydrallm"},
	}
}

// defaultAliases maps names of other vendors.
func defaultAliases() map[string]string {
	return map[string]string{
		"gpt-3.5-turbo": "gemini-2.5-flash", "gpt-4o-mini": "gemini-2.5-flash", "claude-3-haiku": "gemini-2.5-flash",
		"gpt-4": "gemini-2.5-pro", "gpt-4o": "gemini-2.5-pro", "claude-3-opus": "gemini-2.5-pro", "claude-3-sonnet": "gemini-2.5-pro",
	}
}

// document is a file as it was read, before anything is inherited.
type document struct {
	Config
	rawProviders []rawProvider
	rawUpstreams []rawUpstream
	rawModels    []rawModel
}

type rawProvider struct {
	Provider
	node      node
	key       Secret
	keyGiven  bool
	keysGiven bool
	tier      string
	limit     *int
}

type rawUpstream struct {
	Upstream
	node  node
	limit *int
}

type rawModel struct {
	Model
	node node
	refs []node
}

func (doc *document) read(root node) {
	root.fields(map[string]func(node){
		"server": doc.server, "routing": doc.routing, "resilience": doc.resilience, "web": doc.web,
		"sessions": doc.sessions, "nats": doc.nats, "log": doc.log, "telemetry": doc.telemetry,
		"providers": func(n node) { n.items(doc.provider) },
		"upstreams": func(n node) { n.items(doc.upstream) },
		"models":    func(n node) { n.items(doc.model) },
	})
}

func (doc *document) server(n node) {
	s := &doc.Server
	n.fields(map[string]func(node){
		"host": env(&s.Host), "port": integer(&s.Port, 1, 65535), "max_body_bytes": integer(&s.MaxBodyBytes, 1, 1<<30),
		"client_keys": func(n node) {
			n.items(func(_ int, item node) {
				var key Secret
				secret(&key)(item)
				if key != "" {
					s.ClientKeys = append(s.ClientKeys, key)
				} else {
					item.warn("empty client key, ignored")
				}
			})
		},
		"admin_key": secret(&s.AdminKey), "debug": boolean(&s.Debug), "cors_origins": stringsOf(&s.CORSOrigins),
		"queue_timeout": duration(&s.QueueTimeout), "drain_timeout": duration(&s.DrainTimeout),
		"tool_install": boolean(&s.ToolInstall), "locale": oneOf(&s.Locale, "en", "ko"),
	})
}

func (doc *document) provider(_ int, n node) {
	p := rawProvider{node: n, tier: "unknown"}
	n.fields(map[string]func(node){
		"id": str(&p.ID), "dialect": oneOf(&p.Dialect, dialects()...), "url": env(&p.URL),
		"key":  func(n node) { p.keyGiven = true; secret(&p.key)(n) },
		"keys": func(n node) { p.keysGiven = true; n.items(p.addKey) },
		"tier": oneOf(&p.tier, tiers()...), "max_concurrency": optional(&p.limit), "session_header": str(&p.SessionHeader),
		"think_tags": thinkTags(&p.ThinkTags), "patch": patch(&p.Patch), "headers": p.readHeaders,
		"default_models": func(n node) {
			n.fields(map[string]func(node){"free": str(&p.DefaultModels.Free), "premium": str(&p.DefaultModels.Premium)})
		},
		"headers_timeout": duration(&p.HeadersTimeout), "request_timeout": duration(&p.RequestTimeout),
	})
	if p.key != "" {
		p.Keys = append(p.Keys, Key{Value: p.key})
	}
	for i := range p.Keys {
		if p.Keys[i].Tier == "" {
			p.Keys[i].Tier = p.tier
		}
	}
	doc.rawProviders = append(doc.rawProviders, p)
}

// addKey reads one key of a pool: text, or {value, tier}. Blanks and duplicates are ignored (R-172, KEY-06).
func (p *rawProvider) addKey(_ int, n node) {
	var k Key
	if n.Kind == yaml.MappingNode {
		n.fields(map[string]func(node){"value": secret(&k.Value), "tier": oneOf(&k.Tier, tiers()...)})
	} else {
		secret(&k.Value)(n)
	}
	switch {
	case k.Value == "":
		n.warn("empty key, ignored")
	case slices.ContainsFunc(p.Keys, func(o Key) bool { return o.Value == k.Value }):
		n.warn("the same key again, ignored")
	default:
		p.Keys = append(p.Keys, k)
	}
}

func (p *rawProvider) readHeaders(n node) {
	p.Headers = map[string]Secret{}
	n.members(func(name string, value node) {
		var v Secret
		secret(&v)(value)
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(v.Reveal()) {
			value.fail("is not a valid HTTP header")
			return
		}
		p.Headers[name] = v
	})
}

// thinkTags reads a mode. Words of YAML and JSON are both fine; what is unknown is off.
func thinkTags(p *ThinkTags) func(node) {
	return func(n node) {
		if n.null() {
			return
		}
		switch mode := ThinkTags(strings.ToLower(n.Value)); mode {
		case ThinkOff, ThinkSplit, ThinkStrip:
			*p = mode
			return
		}
		truth, ok := n.truth()
		switch {
		case truth:
			*p = ThinkSplit
		case ok, n.Value == "":
			*p = ThinkOff
		default:
			n.warn("unknown mode %s: must be off, split or strip; off is used", n.shown())
			*p = ThinkOff
		}
	}
}

func (doc *document) upstream(_ int, n node) {
	u := rawUpstream{node: n}
	cost := math.NaN()
	n.fields(map[string]func(node){
		"id": str(&u.ID), "provider": str(&u.Provider), "model": str(&u.Model), "max_concurrency": optional(&u.limit),
		"think_tags": thinkTags(&u.ThinkTags), "patch": patch(&u.Patch), "cost": fraction(&cost, 0, math.MaxFloat64),
	})
	if !math.IsNaN(cost) {
		u.Cost = &cost
	}
	doc.rawUpstreams = append(doc.rawUpstreams, u)
}

func (doc *document) model(_ int, n node) {
	m := rawModel{node: n}
	n.fields(map[string]func(node){
		"name": str(&m.Name), "upstreams": func(n node) { n.items(func(_ int, item node) { m.refs = append(m.refs, item) }) },
		"patch": patch(&m.Patch), "pipeline": boolean(&m.Pipeline),
	})
	doc.rawModels = append(doc.rawModels, m)
}

func (doc *document) routing(n node) {
	r := &doc.Routing
	n.fields(map[string]func(node){
		"priority": stringsOf(&r.Priority), "max_tokens_fast_model": integer(&r.MaxTokensFast, 1, math.MaxInt32), "fast": stringsOf(&r.Fast),
		"large": str(&r.Large), "final_fallback": str(&r.FinalFallback), "aliases": stringMap(&r.Aliases),
		"free_models": stringsOf(&r.FreeModels), "premium_models": stringsOf(&r.PremiumModels),
	})
}

func (doc *document) resilience(n node) {
	r := &doc.Resilience
	n.fields(map[string]func(node){
		"max_hops": integer(&r.MaxHops, 1, 100), "max_retries": integer(&r.MaxRetries, 1, 100),
		"stream_gate_timeout": duration(&r.GateTimeout), "headers_timeout": positive(&r.HeadersTimeout),
		"request_timeout": positive(&r.RequestTimeout), "idle_timeout": duration(&r.IdleTimeout), "request_deadline": duration(&r.RequestDeadline),
		"breaker": func(n node) {
			n.fields(map[string]func(node){"provider": breaker(&r.ProviderBreaker), "channel": breaker(&r.ChannelBreaker)})
		},
		"cooldowns": func(n node) {
			c := &r.Cooldowns
			n.fields(map[string]func(node){
				"forbidden": duration(&c.Forbidden), "quota": duration(&c.Quota), "other": duration(&c.Other), "max": duration(&c.Max),
			})
		},
		"probe_interval": positive(&r.ProbeInterval),
	})
}

func breaker(b *Breaker) func(node) {
	return func(n node) {
		n.fields(map[string]func(node){
			"consecutive": integer(&b.Consecutive, 0, math.MaxInt32), "failures": integer(&b.Failures, 0, math.MaxInt32),
			"window": duration(&b.Window), "open_for": positive(&b.OpenFor), "half_open": boolean(&b.HalfOpen),
		})
		switch {
		case b.Consecutive == 0 && b.Failures == 0:
			n.fail("needs consecutive or failures")
		case b.Consecutive == 0 && b.Window == 0:
			n.fail("needs a window for its failures")
		}
	}
}

func (doc *document) web(n node) {
	w := &doc.Web
	n.fields(map[string]func(node){
		"enabled": boolean(&w.Enabled), "backend": oneOf(&w.Backend, "inprocess", "mcp"), "search": stringsOf(&w.Search),
		"searxng_url": env(&w.SearxNGURL), "engines": stringMap(&w.Engines), "max_chars": integer(&w.MaxChars, 1, math.MaxInt32),
		"cache_ttl": duration(&w.CacheTTL), "deadline": positive(&w.Deadline), "browser": oneOf(&w.Browser, "auto", "never", "always"),
		"allow_hosts": stringsOf(&w.AllowHosts),
		"mcp": func(n node) {
			n.fields(map[string]func(node){
				"url": env(&w.MCP.URL), "token": secret(&w.MCP.Token), "fallback": boolean(&w.MCP.Fallback), "timeout": positive(&w.MCP.Timeout),
			})
		},
		"openserp": func(n node) {
			n.fields(map[string]func(node){"url": env(&w.OpenSERP.URL), "engine": str(&w.OpenSERP.Engine)})
		},
		"intent": func(n node) {
			i := &w.Intent
			n.fields(map[string]func(node){
				"embedding_model": str(&i.EmbeddingModel), "embedding_url": env(&i.EmbeddingURL), "threshold": fraction(&i.Threshold, 0, 1),
				"patterns_dir": str(&i.PatternsDir), "keywords_dir": str(&i.KeywordsDir),
			})
		},
	})
}

func (doc *document) sessions(n node) {
	s := &doc.Sessions
	n.fields(map[string]func(node){
		"database": func(n node) {
			secret(&s.Database)(n)
			if db := s.Database.Reveal(); !strings.HasPrefix(db, "sqlite:") && !strings.HasPrefix(db, "postgres://") && !strings.HasPrefix(db, "postgresql://") {
				n.fail("must begin with sqlite: or postgres://")
			}
		},
		"compact_threshold": integer(&s.CompactThreshold, 1, math.MaxInt32), "recent_window": integer(&s.RecentWindow, 1, math.MaxInt32),
		"retention_days": integer(&s.RetentionDays, 1, 365), "max_sessions": integer(&s.MaxSessions, 0, math.MaxInt32),
	})
}

func (doc *document) nats(n node) {
	storage := "memory"
	c := &doc.NATS
	n.fields(map[string]func(node){
		"url": env(&c.URL), "listen": env(&c.Listen), "credentials": env(&c.Credentials), "store_dir": env(&c.StoreDir),
		"replicas": integer(&c.Replicas, 1, 5), "work_storage": oneOf(&storage, "memory", "file"),
	})
	c.WorkOnDisk = storage == "file"
	if _, _, err := net.SplitHostPort(c.Listen); c.Listen != "" && err != nil {
		n.fail("listen must be host:port")
	}
}

func (doc *document) log(n node) {
	l := &doc.Log
	n.fields(map[string]func(node){
		"level": oneOf(&l.Level, "debug", "info", "warn", "error"), "format": oneOf(&l.Format, "text", "json"), "file": env(&l.File),
	})
}

func (doc *document) telemetry(n node) {
	t := &doc.Telemetry
	n.fields(map[string]func(node){"otlp_endpoint": env(&t.OTLPEndpoint), "service_name": str(&t.ServiceName)})
}
