package config_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/config"
)

func environment(vars map[string]string) config.Environment {
	return config.Environment{Lookup: func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}}
}

func parse(t *testing.T, vars map[string]string, text string) (*config.Config, []config.Finding, error) {
	t.Helper()
	return environment(vars).Parse("config.yaml", []byte(text))
}

func lines(list []config.Finding) string {
	var b strings.Builder
	for _, f := range list {
		b.WriteString(f.String() + "\n")
	}
	return b.String()
}

const sound = `
providers: [{id: pa, url: "http://h/v1", key: "key-for-a-5d41402abc4b2a76"}]
upstreams: [{id: a1, provider: pa, model: real-a}]
models: [{name: m, upstreams: [a1]}]
`

// errors keep the gateway from starting; they name file, line and key.
func TestErrors(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text string
		want []string // all of them at once
	}{
		"unknown provider":        {"upstreams:\n- {id: a, provider: nowhere, model: m}", []string{`config.yaml:2: upstreams[0]: provider "nowhere"`}},
		"duplicate provider":      {"providers:\n- {id: twin, url: http://h}\n- {id: twin, url: http://h}", []string{`config.yaml:3: providers[1]: id "twin" is given twice`}},
		"duplicate upstream":      {sound + "", nil},
		"negative limit":          {"upstreams:\n- {id: a, provider: p, model: m, max_concurrency: -1}", []string{"config.yaml:2: upstreams[0].max_concurrency: must not be negative, is -1"}},
		"port out of range":       {"server: {port: 70000}", []string{"config.yaml:1: server.port: must be from 1 to 65535, is 70000"}},
		"port is a word":          {"server:\n  port: eighty", []string{`config.yaml:2: server.port: must be a whole number, is "eighty"`}},
		"patch is a list":         {"models:\n- {name: m, patch: [1]}", []string{"models[0].patch: a patch must be a mapping, is a list"}},
		"missing fields":          {"providers: [{id: pa}]\nupstreams: [{id: a}]\nmodels: [{upstreams: []}]", []string{"providers[0]: url is missing", "upstreams[0]: model is missing", "upstreams[0]: provider is missing", "models[0]: name is missing"}},
		"wrong type":              {"models: [{name: m, upstreams: {a: 1}}]", []string{"models[0].upstreams: must be a list, is a mapping"}},
		"bad duration":            {"resilience: {headers_timeout: soon}", []string{`resilience.headers_timeout: must be a duration such as 30s or 5m, is "soon"`}},
		"broken YAML":             {"server: {port: 1\nmodels: x: y", []string{"config.yaml: line "}},
		"unset variable":          {`providers: [{id: p, url: http://h, key: "${NOT_THERE}"}]`, []string{"providers[0].key: the environment variable NOT_THERE is not set"}},
		"unset variable in a URL": {`providers: [{id: p, url: "http://${NOT_THERE}/v1"}]`, []string{"providers[0].url: the environment variable NOT_THERE is not set"}},
		"the same key twice":      {"models: []\nserver: {}\nmodels: []", []string{"config.yaml:3: models: is given twice"}},
		"twice inside a patch":    {"models: [{name: m, patch: {a: {b: 1, b: 2}}}]", []string{"models[0].patch.a.b: is given twice"}},
		"not a number for JSON":   {"models: [{name: m, patch: {a: .inf}}]", []string{"models[0].patch.a: JSON has no number .inf"}},
		"two documents":           {"server: {}\n---\nserver: {}", []string{"more than one document"}},
		"credentials in a URL":    {"providers: [{id: p, url: \"http://u:secret-word@h\"}]", []string{"must not hold a user name"}},
		"unknown dialect":         {"providers: [{id: p, url: http://h, dialect: klingon}]", []string{"must be one of openai, gemini"}},
		"bad origin":              {"server: {cors_origins: [example]}", []string{`"example" is not an origin`}},
		"breaker without rule":    {"resilience: {breaker: {channel: {failures: 0}}}", []string{"breaker.channel: needs consecutive or failures"}},
		"not a mapping at all":    {"- 1", []string{"must be a mapping, is a list"}},
		"everything at once": {
			"server: {port: 0}\nupstreams: [{id: a, provider: nowhere, model: m, max_concurrency: -3}]\nmodels: [{name: twin}, {name: twin}]",
			[]string{"server.port", "nowhere", "max_concurrency", "twin"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := parse(t, nil, tc.text)
			if tc.want == nil {
				require.NoError(t, err)
				return
			}
			invalid := &config.InvalidError{}
			require.ErrorAs(t, err, &invalid)
			for _, want := range tc.want {
				require.ErrorContains(t, err, want)
			}
			require.NotContains(t, err.Error(), "secret-word")
		})
	}
}

// what is odd but workable is a warning.
func TestWarnings(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, want string }{
		"unknown upstream":     {sound + "\n" + "routing: {}", ""},
		"model without any":    {"models: [{name: m, upstreams: [nowhere]}]", `upstream "nowhere" is not defined`},
		"and is not usable":    {"models: [{name: m, upstreams: [nowhere]}]", `model "m" has no usable upstream`},
		"unknown field":        {"server: {colour: blue}", "server.colour: unknown field"},
		"unknown think mode":   {"providers: [{id: p, url: http://h, think_tags: sometimes}]", `unknown mode "sometimes"`},
		"stream in a patch":    {"models: [{name: m, patch: {stream: true}}]", "models[0].patch.stream: stream inside a patch is ignored"},
		"model in a patch":     {"models: [{name: m, patch: {model: x}}]", "replaces the request's model"},
		"unused upstream":      {"providers: [{id: p, url: http://h}]\nupstreams: [{id: spare, provider: p, model: m}]", `upstream "spare" is in no model`},
		"unused provider":      {"providers: [{id: idle, url: http://h}]", `provider "idle" has no upstream`},
		"https without key":    {"providers: [{id: p, url: https://h}]", "has no key although its url is https"},
		"empty key in a pool":  {`providers: [{id: p, url: http://h, keys: ["", a]}]`, "providers[0].keys[0]: empty key, ignored"},
		"same key in a pool":   {`providers: [{id: p, url: http://h, keys: [a, " a\n"]}]`, "providers[0].keys[1]: the same key again, ignored"},
		"time-outs do not fit": {"resilience: {headers_timeout: 20s, stream_gate_timeout: 20s, request_timeout: 30s}", "resilience.request_timeout"},
		"shared limit": {
			"providers: [{id: p, url: http://h, max_concurrency: 1}]\nupstreams: [{id: a, provider: p, model: m}, {id: b, provider: p, model: m}]",
			"max_concurrency 1 applies to each of 2 upstreams",
		},
		"long chain": {
			"providers: [{id: p, url: http://h}]\nupstreams: [{id: a, provider: p, model: m}, {id: b, provider: p, model: m}]\n" +
				"models: [{name: m, upstreams: [a, b]}]\nresilience: {max_hops: 1}", "resilience.max_hops allows 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, warnings, err := parse(t, nil, tc.text)
			require.NoError(t, err)
			if tc.want == "" {
				require.Empty(t, warnings)
				return
			}
			require.Contains(t, lines(warnings), tc.want)
		})
	}
}

// limits and think modes are resolved: null inherits, 0 is unlimited, an explicit off wins.
func TestInheritance(t *testing.T) {
	t.Parallel()
	c, _, err := parse(t, nil, `
providers:
  - {id: p, url: "http://h/", max_concurrency: 2, think_tags: split, headers_timeout: 5s}
upstreams:
  - {id: inherits, provider: p, model: m}
  - {id: zero, provider: p, model: m, max_concurrency: 0, think_tags: off}
  - {id: own, provider: p, model: m, max_concurrency: 7, think_tags: true}
  - {id: "null", provider: p, model: m, max_concurrency: null, think_tags: STRIP}
`)
	require.NoError(t, err)
	for id, want := range map[string]struct {
		limit int
		think config.ThinkTags
	}{"inherits": {2, config.ThinkSplit}, "zero": {0, config.ThinkOff}, "own": {7, config.ThinkSplit}, "null": {2, config.ThinkStrip}} {
		u, ok := c.Upstream(id)
		require.True(t, ok, id)
		require.Equal(t, want.limit, u.Limit, id)
		require.Equal(t, want.think, u.ThinkTags, id)
	}
	p, _ := c.Provider("p")
	require.Equal(t, "http://h/v1", p.URL)
	require.Equal(t, 5*time.Second, p.HeadersTimeout)
	require.Equal(t, 300*time.Second, p.RequestTimeout)
}

// R-182, REQ-02: a patch keeps order, digits and null.
func TestPatchText(t *testing.T) {
	t.Parallel()
	c, _, err := parse(t, nil, `
models:
  - name: m
    patch: {z: 9223372036854775807, a: 1.0, m: null, e: 1e2, t: "${NOT_SUBSTITUTED}", l: [1, {x: off, y: true}], h: 0x1f, u: 1_000, stream: true, s: '<b>&'}
`)
	require.NoError(t, err)
	m, _ := c.Model("m")
	require.Equal(t, `{"z":9223372036854775807,"a":1.0,"m":null,"e":1e2,"t":"${NOT_SUBSTITUTED}","l":[1,{"x":"off","y":true}],"h":31,"u":1000,"s":"<b>&"}`,
		string(m.Patch))
}

// variables are replaced whole or embedded.
func TestSubstitution(t *testing.T) {
	t.Parallel()
	c, _, err := parse(t, map[string]string{"K": "secret-part", "H": "127.0.0.1"}, `
server: {admin_key: "${K}", client_keys: ["a-${K}"]}
providers: [{id: p, url: "http://${H}:1/v1", key: "pre-${K}-post", headers: {X-Key: "${K}"}}]
`)
	require.NoError(t, err)
	require.Equal(t, "pre-secret-part-post", c.Providers[0].Keys[0].Value.Reveal())
	require.Equal(t, "http://127.0.0.1:1/v1", c.Providers[0].URL)
	require.Equal(t, "secret-part", c.Server.AdminKey.Reveal())
	require.ElementsMatch(t, []string{"secret-part", "a-secret-part", "pre-secret-part-post", "secret-part"}, c.Secrets())
}

// R-013, AUTH-04: no way to print a configuration shows a secret.
func TestSecretsDoNotShow(t *testing.T) {
	t.Parallel()
	c, _, err := parse(t, nil, `
server: {admin_key: hidden-admin-key}
providers: [{id: p, url: http://h, key: hidden-provider-key, headers: {X-Api-Key: hidden-header}}]
sessions: {database: "postgres://u:hidden-password@h/db"}
`)
	require.NoError(t, err)
	encoded, err := json.Marshal(c)
	require.NoError(t, err)
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("config", slog.Any("config", c), slog.Any("key", c.Server.AdminKey))
	for _, text := range []string{fmt.Sprintf("%v %+v %#v %s %q %x", *c, *c, *c, c.Server.AdminKey, c.Server.AdminKey, c.Server.AdminKey), string(encoded), log.String()} {
		require.NotContains(t, text, "hidden")
	}
}

//
func TestMask(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{"": "...", "short12": "...", "eight-ch": "eigh...", "fifteen-letters": "fift...", "sixteen-letters-x": "sixteen-..."} {
		require.Equal(t, want, config.Mask(key), key)
	}
}

// Every default of the documented schema.
func TestDefaults(t *testing.T) {
	t.Parallel()
	c, warnings, err := parse(t, nil, "")
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Equal(t, "0.0.0.0:8100", c.Server.Bind())
	require.Equal(t, 33554432, c.Server.MaxBodyBytes)
	require.Equal(t, 30*time.Second, c.Server.QueueTimeout)
	require.Equal(t, time.Minute, c.Server.DrainTimeout)
	require.Equal(t, "en", c.Server.Locale)
	require.Equal(t, []string{"gemini", "groq", "cerebras", "ollama", "opencode", "openclaw"}, c.Routing.Priority)
	require.Equal(t, 8192, c.Routing.MaxTokensFast)
	require.Equal(t, "ollama", c.Routing.FinalFallback)
	require.Equal(t, "gemini-2.5-pro", c.Routing.Aliases["gpt-4o"])
	require.Equal(t, 3, c.Resilience.MaxHops)
	require.Equal(t, 30*time.Second, c.Resilience.GateTimeout)
	require.Equal(t, 240*time.Second, c.Resilience.HeadersTimeout)
	require.Equal(t, 300*time.Second, c.Resilience.RequestTimeout)
	require.Equal(t, config.Breaker{Consecutive: 5, OpenFor: time.Minute, HalfOpen: true}, c.Resilience.ProviderBreaker)
	require.Equal(t, config.Breaker{Failures: 3, Window: 5 * time.Minute, OpenFor: time.Minute}, c.Resilience.ChannelBreaker)
	require.Equal(t, config.Cooldowns{Forbidden: 24 * time.Hour, Quota: time.Hour, Other: 5 * time.Minute, Max: 24 * time.Hour}, c.Resilience.Cooldowns)
	require.Equal(t, 6000, c.Web.MaxChars)
	require.InDelta(t, 0.58, c.Web.Intent.Threshold, 1e-9)
	require.Equal(t, "sqlite:data/hydrallm.db", c.Sessions.Database.Reveal())
	require.Equal(t, "data/nats", c.NATS.StoreDir)
	require.False(t, c.NATS.WorkOnDisk)
	require.True(t, c.Empty())
}

// C-01: where the configuration comes from.
func TestLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := environment(map[string]string{"CONFIG_PATH": "gone.yaml"})
	env.Dir = dir
	_, _, err := config.Load(env)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, filepath.Join(dir, "gone.yaml"))

	env = environment(map[string]string{
		"GEMINI_KEYS": "g1, g2,,g1", "GROQ_KEYS": `["q1"]`, "OLLAMA_BASE_URL": "http://box:11434/v1", "PORT": "9000", "DEBUG": "1",
		"ADMIN_API_KEY": " adm ", "PROVIDER_PRIORITY": "groq,gemini",
	})
	env.Dir = dir
	c, _, err := config.Load(env)
	require.NoError(t, err)
	require.Equal(t, "environment", c.Source)
	require.Equal(t, 9000, c.Server.Port)
	require.True(t, c.Server.Debug)
	require.Equal(t, "adm", c.Server.AdminKey.Reveal())
	require.Equal(t, []string{"groq", "gemini"}, c.Routing.Priority)
	g, ok := c.Provider("gemini")
	require.True(t, ok)
	require.Len(t, g.Keys, 2)
	require.True(t, g.Pooled)
	o, ok := c.Provider("ollama")
	require.True(t, ok)
	require.Equal(t, "http://box:11434/v1", o.URL)
	require.Equal(t, "ollama", o.Keys[0].Value.Reveal())
	_, ok = c.Provider("cerebras")
	require.False(t, ok)

	env = environment(nil)
	env.Dir = dir
	c, _, err = config.Load(env)
	require.NoError(t, err)
	require.Equal(t, 8000, c.Server.Port)
	require.True(t, c.Empty())

	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.yaml"), []byte("server: {port: 7000}"), 0o600))
	c, _, err = config.Load(env)
	require.NoError(t, err)
	require.Equal(t, 7000, c.Server.Port)

	env = environment(map[string]string{"PORT": "no"})
	env.Dir = t.TempDir()
	_, _, err = config.Load(env)
	require.ErrorContains(t, err, `PORT: must be a whole number from 1 to 65535, is "no"`)
}

// Aliases and merge keys work; a file made of nested aliases does not blow up.
func TestAliases(t *testing.T) {
	t.Parallel()
	c, _, err := parse(t, nil, `
x: &base {url: "http://h/v1", key: k}
providers:
  - {<<: *base, id: a}
  - {<<: *base, id: b, key: own}
`)
	require.NoError(t, err)
	require.Equal(t, "k", c.Providers[0].Keys[0].Value.Reveal())
	require.Equal(t, "own", c.Providers[1].Keys[0].Value.Reveal())

	bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 9; i++ {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	_, _, err = parse(t, nil, bomb+"models: [{name: m, patch: {p: *a8}}]\n")
	require.ErrorContains(t, err, "a patch may not hold more than")
}

// Whatever the text, Parse returns, and each error says where.
func FuzzParse(f *testing.F) {
	f.Add([]byte(sound))
	f.Add([]byte("server: {port: 1"))
	f.Add([]byte("models: [{name: m, patch: {a: [1, {b: .nan}], <<: {c: 1}}}]"))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("? [1]\n: 2\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, _, err := environment(nil).Parse("f", text)
		if err == nil && c == nil {
			t.Fatal("neither a configuration nor an error")
		}
		if c == nil {
			return
		}
		for _, m := range c.Models {
			if m.Patch != nil && !json.Valid(m.Patch) {
				t.Fatalf("patch of %q is not JSON: %s", m.Name, m.Patch)
			}
		}
	})
}
