package config_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/config"
)

// null inherits, 0 is unlimited, an explicit off wins.
func TestInheritance(t *testing.T) {
	t.Parallel()
	c := sound(t, `
resilience: {headers_timeout: 2s}
providers:
  - {id: p, url: "http://h/v1", max_concurrency: 2, think_tags: split, headers_timeout: 5s}
  - {id: plain, url: "http://h/v1"}
upstreams:
  - {id: inherits, provider: p, model: m}
  - {id: zero, provider: p, model: m, max_concurrency: 0, think_tags: off}
  - {id: own, provider: p, model: m, max_concurrency: 7, think_tags: true, cost: 0.5}
  - {id: "null", provider: p, model: m, max_concurrency: null, think_tags: null, cost: null}
  - {id: strip, provider: p, model: m, think_tags: STRIP, cost: 0}
  - {id: "false", provider: p, model: m, think_tags: False}
  - {id: empty, provider: p, model: m, think_tags: ""}
  - {id: plain, provider: plain, model: m}
`)
	half, zero := 0.5, 0.0
	for id, want := range map[string]struct {
		limit int
		think config.ThinkTags
		cost  *float64
	}{
		"inherits": {2, config.ThinkSplit, nil},
		"zero":     {0, config.ThinkOff, nil},
		"own":      {7, config.ThinkSplit, &half},
		"null":     {2, config.ThinkSplit, nil},
		"strip":    {2, config.ThinkStrip, &zero},
		"false":    {2, config.ThinkOff, nil},
		"empty":    {2, config.ThinkOff, nil},
		"plain":    {0, config.ThinkOff, nil},
	} {
		u, ok := c.Upstream(id)
		require.True(t, ok, id)
		require.Equal(t, want.limit, u.Limit, id)
		require.Equal(t, want.think, u.ThinkTags, id)
		require.Equal(t, want.cost, u.Cost, id)
	}
	p, _ := c.Provider("p")
	require.Equal(t, 5*time.Second, p.HeadersTimeout)
	require.Equal(t, 300*time.Second, p.RequestTimeout)
	p, _ = c.Provider("plain")
	require.Equal(t, 2*time.Second, p.HeadersTimeout)
}

// unknown references are dropped, a model without any stays known.
func TestLookups(t *testing.T) {
	t.Parallel()
	c := sound(t, `
providers: [{id: p, url: "http://h/v1"}]
upstreams: [{id: a, provider: p, model: x}, {id: b, provider: p, model: y}]
models:
  - {name: "prov/ns/name:tag", upstreams: [b, nowhere, a, b], pipeline: true}
  - {name: broken, upstreams: [nowhere]}
  - {name: none, upstreams: []}
`)
	m, ok := c.Model("prov/ns/name:tag")
	require.True(t, ok)
	require.True(t, m.Usable())
	require.True(t, m.Pipeline)
	require.Equal(t, []string{"b", "a"}, m.Upstreams, "the order of the file")
	for _, name := range []string{"broken", "none"} {
		m, ok = c.Model(name)
		require.True(t, ok)
		require.False(t, m.Usable())
	}
	_, ok = c.Model("Broken")
	require.False(t, ok, "names are exact")
	_, ok = c.Upstream("nowhere")
	require.False(t, ok)
	_, ok = c.Provider("")
	require.False(t, ok)
	require.False(t, c.Empty())
}

// URL-01: the base address holds the version path; that of a bare host is completed.
func TestProviderURL(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ dialect, url, want string }{
		"as it is":            {"openai", "https://routerai.ru/api/v1", "https://routerai.ru/api/v1"},
		"slash at the end":    {"openai", "http://h/v1/", "http://h/v1"},
		"slashes":             {"openai", "http://h/openai/v1//", "http://h/openai/v1"},
		"bare host":           {"openai", "http://h:1", "http://h:1/v1"},
		"bare host, slash":    {"openai", "http://h:1/", "http://h:1/v1"},
		"bare Ollama":         {"ollama", "http://h:1", "http://h:1/v1"},
		"bare OpenClaw":       {"openclaw", "http://h:1", "http://h:1/v1"},
		"no version there":    {"anthropic", "http://h:1/", "http://h:1"},
		"nor there":           {"opencode", "http://h:1", "http://h:1"},
		"a query":             {"openai", "https://h/openai/v1?api-version=2", "https://h/openai/v1?api-version=2"},
		"an escaped slash":    {"openai", "https://h/a%2Fb/v1/", "https://h/a%2Fb/v1"},
		"an IPv6 address":     {"openai", "http://[::1]:8080/v1", "http://[::1]:8080/v1"},
		"blanks are not part": {"openai", "  http://h/v1 ", "http://h/v1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := sound(t, `providers: [{id: p, dialect: `+tc.dialect+`, url: "`+tc.url+`"}]`)
			require.Equal(t, tc.want, c.Providers[0].URL)
		})
	}
	require.Equal(t, "http://h:8080/v1", sound(t, "providers: [{id: p, url: http://h:8080/v1}]").Providers[0].URL, "R-186: without quotes")
}

// the address of an operation, copied from a provider's documentation, is the provider's address with something too much.
func TestProviderURLThatIsAnEndpoint(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ dialect, url, want, cut string }{
		{"openai", "https://h/v1/chat/completions", "https://h/v1", "/chat/completions"},
		{"openai", "https://h/v1/chat/completions/", "https://h/v1", "/chat/completions"},
		{"openai", "http://h:1/chat/completions", "http://h:1/v1", "/chat/completions"},
		{"openai", "https://h/v1/completions", "https://h/v1", "/completions"},
		{"openai", "https://h/v1/embeddings", "https://h/v1", "/embeddings"},
		{"openai", "https://h/v1/responses", "https://h/v1", "/responses"},
		{"openai", "https://h/openai/deployments/d/chat/completions?api-version=2", "https://h/openai/deployments/d?api-version=2", "/chat/completions"},
		{"openai", "http://h:11434/api/chat", "http://h:11434/v1", "/api/chat"},
		{"ollama", "http://h:11434/api/generate", "http://h:11434/v1", "/api/generate"},
		{"ollama", "http://h:11434/api", "http://h:11434/v1", "/api"},
		{"anthropic", "https://h/v1/messages", "https://h", "/messages"},
		{"anthropic", "https://h/v1/messages/count_tokens", "https://h", "/messages/count_tokens"},
		{"gemini", "https://h/v1beta/models/gemini-2.5-flash:generateContent", "https://h/v1beta", "/models/gemini-2.5-flash:generateContent"},
		{"gemini", "https://h/v1beta/models/m:streamGenerateContent?alt=sse", "https://h/v1beta?alt=sse", "/models/m:streamGenerateContent"},
		{"openai", "https://h/inference/models", "https://h/inference/models", ""},
		{"openai", "https://h/api", "https://h/api", ""},
		{"openai", "https://h/completions/v1", "https://h/completions/v1", ""},
		{"openai", "https://h/models/m:free", "https://h/models/m:free", ""},
	} {
		c, warnings, err := parse(nil, `providers: [{id: p, key: k, dialect: `+tc.dialect+`, url: "`+tc.url+`"}]`+"\nrouting: {priority: [p]}")
		require.NoError(t, err)
		require.Equal(t, tc.want, c.Providers[0].URL, tc.url)
		if tc.cut == "" {
			require.Empty(t, warnings, tc.url)
			continue
		}
		require.Len(t, warnings, 1, tc.url)
		require.Equal(t, "providers[0].url", warnings[0].Path)
		require.Contains(t, warnings[0].Message, " "+tc.cut+" ")
	}
}

// The ids with a preset need neither address nor dialect, and take both.
func TestPresets(t *testing.T) {
	t.Parallel()
	type want struct{ dialect, url, key string }
	for text, want := range map[string]want{
		"{id: gemini, key: k}":                            {"openai", "https://generativelanguage.googleapis.com/v1beta/openai", "k"},
		"{id: gemini, dialect: gemini, key: k}":           {"gemini", "https://generativelanguage.googleapis.com/v1beta", "k"},
		"{id: groq, keys: [k]}":                           {"openai", "https://api.groq.com/openai/v1", "k"},
		"{id: cerebras, keys: [k]}":                       {"openai", "https://api.cerebras.ai/v1", "k"},
		"{id: ollama}":                                    {"ollama", "http://localhost:11434/v1", "ollama"},
		"{id: ollama, key: own}":                          {"ollama", "http://localhost:11434/v1", "own"},
		`{id: ollama, key: ""}`:                           {"ollama", "http://localhost:11434/v1", ""},
		"{id: opencode}":                                  {"opencode", "http://localhost:4096", ""},
		"{id: openclaw}":                                  {"openclaw", "http://localhost:18789/v1", ""},
		`{id: groq, dialect: openai, url: "http://h/v1"}`: {"openai", "http://h/v1", ""},
		`{id: other, url: "http://h/v1"}`:                 {"openai", "http://h/v1", ""},
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			p := sound(t, "providers: ["+text+"]").Providers[0]
			require.Equal(t, want.dialect, p.Dialect)
			require.Equal(t, want.url, p.URL)
			if want.key == "" {
				require.Empty(t, p.Keys)
				return
			}
			require.Equal(t, []config.Key{{Value: config.Secret(want.key), Tier: "unknown"}}, p.Keys)
		})
	}
	_, _, err := parse(nil, "providers: [{id: groq, dialect: anthropic}]")
	require.ErrorContains(t, err, "providers[0].url: is missing", "the preset has no address of that dialect")
}

// C-11, R-172, R-090, KEY-06: one key or a pool.
func TestKeys(t *testing.T) {
	t.Parallel()
	key := func(value, tier string) config.Key { return config.Key{Value: config.Secret(value), Tier: tier} }
	for name, tc := range map[string]struct {
		text   string
		keys   []config.Key
		pooled bool
	}{
		"one key":                  {"{id: p, url: http://h, key: a}", []config.Key{key("a", "unknown")}, false},
		"one key, an empty pool":   {"{id: p, url: http://h, key: a, keys: []}", []config.Key{key("a", "unknown")}, false},
		"an empty key":             {`{id: p, url: http://h, key: ""}`, nil, false},
		"an empty key and a pool":  {`{id: p, url: http://h, key: "", keys: [a]}`, []config.Key{key("a", "unknown")}, true},
		"none":                     {"{id: p, url: http://h}", nil, false},
		"a pool":                   {"{id: p, url: http://h, keys: [a, b], tier: free}", []config.Key{key("a", "free"), key("b", "free")}, true},
		"a pool of one":            {"{id: p, url: http://h, keys: [a]}", []config.Key{key("a", "unknown")}, true},
		"a pool that waits":        {"{id: p, url: http://h, keys: []}", nil, true},
		"the preset wants a pool":  {"{id: groq, url: http://h}", nil, true},
		"one key of a preset":      {"{id: groq, url: http://h, key: a}", []config.Key{key("a", "unknown")}, false},
		"tiers":                    {"{id: p, url: http://h, tier: free, keys: [a, {value: b, tier: Premium}, {value: c}]}", []config.Key{key("a", "free"), key("b", "premium"), key("c", "free")}, true},
		"blanks and duplicates":    {`{id: p, url: http://h, keys: ["w1\n", " w2", "", "w1", ~]}`, []config.Key{key("w1", "unknown"), key("w2", "unknown")}, true},
		"one variable with a list": {`{id: p, url: http://h, keys: "${LIST}"}`, []config.Key{key("a", "unknown"), key("b", "unknown")}, true},
		"a variable with JSON":     {`{id: p, url: http://h, keys: "${JSON}"}`, []config.Key{key("a,b", "unknown"), key("c", "unknown")}, true},
		"an empty variable":        {`{id: p, url: http://h, keys: "${EMPTY}"}`, nil, true},
		"digits are text":          {"{id: p, url: http://h, key: 0123}", []config.Key{key("0123", "unknown")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _, err := parse(map[string]string{"LIST": "a, b", "JSON": `["a,b", "c"]`, "EMPTY": ""}, "providers: ["+tc.text+"]")
			require.NoError(t, err)
			require.Equal(t, tc.keys, c.Providers[0].Keys)
			require.Equal(t, tc.pooled, c.Providers[0].Pooled)
		})
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	p := sound(t, `providers: [{id: p, url: http://h, headers: {x-title: my app, X-Empty: ""}, session_header: x-dialogue, default_models: {free: f, premium: p}}]`).Providers[0]
	require.Equal(t, map[string]config.Secret{"X-Title": "my app", "X-Empty": ""}, p.Headers)
	require.Equal(t, "X-Dialogue", p.SessionHeader)
	require.Equal(t, config.DefaultModels{Free: "f", Premium: "p"}, p.DefaultModels)
}

// Aliases and merge keys work, and what is written beats what is merged.
func TestAliases(t *testing.T) {
	t.Parallel()
	c := sound(t, `
providers:
  - &base {id: a, url: "http://h/v1", key: k, headers: &h {X-A: "1"}}
  - {<<: *base, id: b, key: own}
  - {id: c, <<: [{key: first}, *base], headers: {<<: *h, X-B: "2"}}
`)
	var keys []string
	for _, p := range c.Providers {
		keys = append(keys, p.ID+"="+p.Keys[0].Value.Reveal())
	}
	require.Equal(t, []string{"a=k", "b=own", "c=first"}, keys)
	require.Equal(t, map[string]config.Secret{"X-A": "1", "X-B": "2"}, c.Providers[2].Headers)
}

// without a list of priority all providers take part in automatic routing, in the order of the file.
func TestAutomatic(t *testing.T) {
	t.Parallel()
	const providers = `providers: [{id: b, url: "http://h"}, {id: gemini, key: k}, {id: a, url: "http://h"}, {id: ollama}]` + "\n"
	for text, want := range map[string][]string{
		"":                               {"b", "gemini", "a", "ollama"},
		"routing: {priority: []}":        {"b", "gemini", "a", "ollama"},
		"routing: {priority: [a, nope]}": {"a", "gemini", "ollama"}, // and who is large or last by default
		"routing: {priority: [a], large: '', final_fallback: ''}":    {"a"},
		"routing: {priority: [nope], large: '', final_fallback: ''}": nil,
	} {
		require.Equal(t, want, sound(t, providers+text).Automatic(), text)
	}
	require.Equal(t, []string{"b", "gemini", "a", "ollama"}, sound(t, providers).Routing.Priority)
	require.Empty(t, sound(t, "").Automatic())
}
