package config_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/config"
	"hydrallm/shared/config/configtest"
)

// environment gives variables and a new working directory with files.
func environment(t *testing.T, vars, files map[string]string) config.Environment {
	t.Helper()
	return configtest.Environment(t, vars, files)
}

func lookup(vars map[string]string) func(string) (string, bool) { return configtest.Variables(vars) }

// parse reads text as config.yaml. It leaves out the warning of an open gateway, which most configurations of tests earn.
func parse(vars map[string]string, text string) (*config.Config, []config.Finding, error) {
	c, warnings, err := config.Environment{Lookup: lookup(vars)}.Parse("config.yaml", []byte(text))
	return c, slices.DeleteFunc(warnings, func(f config.Finding) bool { return f.Path == "server.client_keys" && f.Line <= 1 }), err
}

// sound parses text that is expected to be without errors.
func sound(t *testing.T, text string) *config.Config {
	t.Helper()
	c, _, err := parse(nil, text)
	require.NoError(t, err)
	return c
}

// lines are findings as text.
func lines(list []config.Finding) []string {
	out := []string{}
	for _, f := range list {
		out = append(out, f.String())
	}
	return out
}

// The values of the configuration schema.
func TestDefaults(t *testing.T) {
	t.Parallel()
	c, warnings, err := parse(nil, "")
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Equal(t, config.Server{
		Host: "0.0.0.0", Port: 8100, MaxBodyBytes: 33554432, ClientKeys: []config.Secret{}, CORSOrigins: []string{}, Enabled: []string{},
		ClientAccess: "auto", Proxies: []string{},
		QueueTimeout: 30 * time.Second, Lifetime: time.Hour, PingAfter: 30 * time.Second, DrainTimeout: 60 * time.Second, MaxConns: 10000, Docs: true, Locale: "en", TLS: config.TLS{MinVersion: "1.2"},
	}, c.Server)
	require.Equal(t, config.Routing{
		Priority:      []string{},
		MaxTokensFast: 8192, Fast: []string{"groq", "cerebras"}, Large: "gemini", FinalFallback: "ollama",
		Aliases: map[string]string{
			"gpt-3.5-turbo": "gemini-2.5-flash", "gpt-4o-mini": "gemini-2.5-flash", "claude-3-haiku": "gemini-2.5-flash",
			"gpt-4": "gemini-2.5-pro", "gpt-4o": "gemini-2.5-pro", "claude-3-opus": "gemini-2.5-pro", "claude-3-sonnet": "gemini-2.5-pro",
		},
		FreeModels: []string{}, PremiumModels: []string{}, PriceEstimates: true,
	}, c.Routing)
	require.Equal(t, config.Resilience{
		MaxHops: 3, MaxRetries: 3, GateTimeout: 30 * time.Second, HeadersTimeout: 240 * time.Second, RoutedTimeout: time.Minute, RequestTimeout: 300 * time.Second,
		ProviderBreaker: config.Breaker{Consecutive: 5, OpenFor: 60 * time.Second, HalfOpen: true},
		ChannelBreaker:  config.Breaker{Failures: 3, Window: 5 * time.Minute, OpenFor: 60 * time.Second},
		Cooldowns:       config.Cooldowns{Forbidden: 24 * time.Hour, Quota: time.Hour, Other: 5 * time.Minute, Max: 24 * time.Hour},
		ProbeInterval:   60 * time.Second,
	}, c.Resilience)
	require.Equal(t, config.Web{
		Enabled: true, Backend: "inprocess", MCP: config.MCP{Fallback: true, Timeout: 30 * time.Second},
		MCPServer: config.MCPServer{Listen: "127.0.0.1:8765"}, Search: []string{"duckduckgo", "bing"},
		OpenSERP: config.OpenSERP{Engine: "google"}, Engines: map[string]string{}, MaxChars: 6000, CacheTTL: 24 * time.Hour,
		Deadline: 45 * time.Second, Browser: "auto", AllowHosts: []string{},
		Intent: config.Intent{EmbeddingModel: "bge-m3:latest", EmbeddingURL: "http://localhost:11434", Threshold: 0.58},
	}, c.Web)
	require.Equal(t, "sqlite:data/hydrallm.db", c.Sessions.Database.Reveal())
	require.Equal(t, config.Sessions{Database: c.Sessions.Database, CompactThreshold: 6000, RecentWindow: 4, Compressor: "extractive", CompressorModel: "auto", RetentionDays: 30, StoreResponses: true, SystemContext: true}, c.Sessions)
	require.Equal(t, config.NATS{StoreDir: "data/nats", Replicas: 1}, c.NATS)
	require.Equal(t, config.Log{Level: "info", Format: "text"}, c.Log)
	require.Equal(t, config.Telemetry{ServiceName: "hydrallm"}, c.Telemetry)
	require.Equal(t, "config.yaml", c.Source)
	require.Equal(t, "0.0.0.0:8100", c.Server.Bind())
}

// null and empty are as if the key were absent.
func TestNullIsAbsent(t *testing.T) {
	t.Parallel()
	want := sound(t, "")
	for _, text := range []string{
		"\n# nothing\n", "~", "{}", "providers: []\nupstreams: []\nmodels: []\n", "server:\nproviders:\nupstreams:\nmodels:\nweb: ~\n",
		"server: {host: null, port: ~, locale: , client_keys: , cors_origins: null}\nrouting: {aliases: null, fast: ~, large: null}\n" +
			"resilience: {breaker: {provider: , channel: {window: null}}, cooldowns: ~, headers_timeout: }\nsessions: {database: null}\nlog: {level: }\n",
	} {
		require.Equal(t, want, sound(t, text), text)
	}
	require.True(t, want.Empty())
	c := sound(t, `routing: {aliases: {}, fast: [], final_fallback: ""}`) // "" and {} are values
	require.Empty(t, c.Routing.Aliases)
	require.Empty(t, c.Routing.Fast)
	require.Empty(t, c.Routing.FinalFallback)
}

// Every key has its effect.
func TestValues(t *testing.T) {
	t.Parallel()
	c, warnings, err := parse(nil, `
server:
  {host: "::1", port: 1, tls: {cert_file: c, key_file: d, min_version: 1.3}, max_body_bytes: 2, client_keys: [k1, k2], admin_key: adm, debug: true, cors_origins: ["HTTPS://App.example:8443"],
  client_access: keys, trusted_proxies: [10.1.2.3/8, 192.0.2.1],
  queue_timeout: 3s, background_lifetime: 2h, ping_after: 7s, stop_pause: 2s, drain_timeout: 4s, max_connections: 5, tool_install: yes, docs: no, locale: ko}
routing:
  {priority: [groq], max_tokens_fast_model: 4, fast: [cerebras], large: groq, final_fallback: cerebras, aliases: {a: b}, free_models: [x], premium_models: [y], price_estimates: false}
resilience:
  max_hops: 5
  max_retries: 6
  stream_gate_timeout: 7ms
  headers_timeout: 8ms
  request_timeout: 9m
  idle_timeout: 10s
  request_deadline: 11m
  breaker: {provider: {failures: 1, window: 1s}, channel: {consecutive: 2, open_for: 3s, half_open: true}}
  cooldowns: {forbidden: 12s, quota: 13s, other: 0s, max: 14s}
  probe_interval: 15s
web:
  enabled: false
  backend: mcp
  mcp: {url: "http://mcp:1/x/", token: tok, fallback: false, timeout: 16s}
  mcp_server: {listen: ":9", token: tak}
  search: [bing, openserp, searxng]
  searxng_url: http://s
  openserp: {url: http://o, engine: bing}
  engines: {bing: "http://b/"}
  max_chars: 17
  cache_ttl: 0s
  deadline: 18s
  browser: never
  allow_hosts: [LocalHost, 10.0.0.1, "::1"]
  intent: {embedding_model: e, embedding_url: "http://e", threshold: 1, patterns_dir: p, keywords_dir: k, keyword_model: q}
sessions: {database: "postgres://u:p@h/d", compact_threshold: 19, recent_window: 20, compressor: HTTP, compressor_url: "http://z/", retention_days: 21, max_sessions: 22}
nats: {url: "nats://a:1,nats://b:2", listen: "127.0.0.1:4222", nkey_seed_file: c, ca: ca, cert: ce, key: ke, store_dir: d, replicas: 3, work_storage: FILE}
log: {level: WARNING, format: json, file: f}
telemetry: {otlp_endpoint: "http://t:4318", service_name: s}
`)
	require.NoError(t, err)
	require.Equal(t, []string{"config.yaml:35: nats.listen: has no effect beside nats.url", "config.yaml:35: nats.store_dir: has no effect beside nats.url"},
		lines(warnings))
	require.Equal(t, config.Server{
		Host: "::1", Port: 1, MaxBodyBytes: 2, ClientKeys: []config.Secret{"k1", "k2"}, AdminKey: "adm", Debug: true,
		ClientAccess: "keys", Proxies: []string{"10.0.0.0/8", "192.0.2.1/32"},
		CORSOrigins: []string{"https://app.example:8443"}, QueueTimeout: 3 * time.Second, Lifetime: 2 * time.Hour, PingAfter: 7 * time.Second,
		TLS: config.TLS{Cert: "c", Key: "d", MinVersion: "1.3"}, StopPause: 2 * time.Second, DrainTimeout: 4 * time.Second, MaxConns: 5, ToolInstall: true, Locale: "ko", Enabled: []string{},
	}, c.Server)
	require.Equal(t, "[::1]:1", c.Server.Bind())
	require.Equal(t, 6*time.Second, c.Server.StopLimit())
	require.Equal(t, config.Routing{
		Priority: []string{"groq"}, MaxTokensFast: 4, Fast: []string{"cerebras"}, Large: "groq", FinalFallback: "cerebras",
		Aliases: map[string]string{"a": "b"}, FreeModels: []string{"x"}, PremiumModels: []string{"y"},
	}, c.Routing)
	require.Equal(t, config.Resilience{
		MaxHops: 5, MaxRetries: 6, GateTimeout: 7 * time.Millisecond, HeadersTimeout: 8 * time.Millisecond, RoutedTimeout: time.Minute, RequestTimeout: 9 * time.Minute,
		IdleTimeout: 10 * time.Second, RequestDeadline: 11 * time.Minute,
		ProviderBreaker: config.Breaker{Failures: 1, Window: time.Second, OpenFor: time.Minute, HalfOpen: true},
		ChannelBreaker:  config.Breaker{Consecutive: 2, OpenFor: 3 * time.Second, HalfOpen: true},
		Cooldowns:       config.Cooldowns{Forbidden: 12 * time.Second, Quota: 13 * time.Second, Max: 14 * time.Second},
		ProbeInterval:   15 * time.Second,
	}, c.Resilience)
	require.Equal(t, config.Web{
		Backend: "mcp", MCP: config.MCP{URL: "http://mcp:1/x", Token: "tok", Timeout: 16 * time.Second},
		MCPServer: config.MCPServer{Listen: ":9", Token: "tak"}, Search: []string{"bing", "openserp", "searxng"},
		SearxNGURL: "http://s", OpenSERP: config.OpenSERP{URL: "http://o", Engine: "bing"}, Engines: map[string]string{"bing": "http://b"},
		MaxChars: 17, Deadline: 18 * time.Second, Browser: "never", AllowHosts: []string{"localhost", "10.0.0.1", "::1"},
		Intent: config.Intent{EmbeddingModel: "e", EmbeddingURL: "http://e", Threshold: 1, PatternsDir: "p", KeywordsDir: "k", KeywordModel: "q"},
	}, c.Web)
	require.Equal(t, config.Sessions{
		Database: "postgres://u:p@h/d", CompactThreshold: 19, RecentWindow: 20, Compressor: "http", CompressorURL: "http://z", CompressorModel: "auto", RetentionDays: 21, MaxSessions: 22, StoreResponses: true, SystemContext: true,
	}, c.Sessions)
	require.Equal(t, config.NATS{
		URL: "nats://a:1,nats://b:2", Listen: "127.0.0.1:4222", NkeySeed: "c", CA: "ca", Cert: "ce", Key: "ke", StoreDir: "d", Replicas: 3, WorkOnDisk: true,
	}, c.NATS)
	require.Equal(t, config.Log{Level: "warn", Format: "json", File: "f"}, c.Log)
	require.Equal(t, config.Telemetry{OTLPEndpoint: "http://t:4318", ServiceName: "s"}, c.Telemetry)
}

func TestLoopback(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{"127.0.0.1": true, "127.9.9.9": true, "::1": true, "localhost": true, "0.0.0.0": false, "::": false, "gateway": false} {
		require.Equal(t, want, config.Server{Host: host}.Loopback(), host)
	}
}
