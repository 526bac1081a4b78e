package config_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"hydrallm/shared/config"
)

// Whatever the text, Parse returns, every error says where it is, and what is accepted keeps its promises.
func FuzzParse(f *testing.F) {
	for _, tc := range errorCases {
		f.Add([]byte(tc.text))
	}
	for _, tc := range warningCases {
		f.Add([]byte(tc.text))
	}
	f.Add([]byte(one))
	f.Add([]byte(secretive))
	f.Add([]byte("models: [{name: m, patch: {a: [1, {b: .nan}], <<: {c: 1}}}]"))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("\xff\xfes\x00:\x00 \x001\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, warnings, err := config.Environment{Lookup: lookup(map[string]string{"A": "value"})}.Parse("f", text)
		if err != nil {
			var invalid *config.InvalidError
			if !errors.As(err, &invalid) || len(invalid.Findings) == 0 {
				t.Fatalf("not a list of findings: %v", err)
			}
			for _, finding := range invalid.Findings {
				if finding.Line == 0 && finding.Path == "" || finding.Message == "" || !finding.Error {
					t.Fatalf("finding without a place: %+v", finding)
				}
			}
			return
		}
		for _, finding := range warnings {
			if finding.Path == "" && !strings.HasPrefix(finding.Message, "and ") || finding.Error {
				t.Fatalf("warning without a place: %+v", finding)
			}
		}
		check(t, c)
	})
}

// check looks for what the services rely on.
func check(t *testing.T, c *config.Config) {
	t.Helper()
	object := func(patch json.RawMessage) {
		if patch != nil && (!json.Valid(patch) || patch[0] != '{' || len(patch) == len("{}")) {
			t.Fatalf("patch is no JSON object: %s", patch)
		}
	}
	for _, p := range c.Providers {
		object(p.Patch)
		got, ok := c.Provider(p.ID)
		if !ok || got.ID != p.ID || p.URL == "" || p.Dialect == "" || p.Limit < 0 || p.ThinkTags == "" || strings.HasSuffix(p.URL, "/") {
			t.Fatalf("provider: %+v", p)
		}
		for _, k := range p.Keys {
			if k.Value == "" || k.Tier == "" {
				t.Fatalf("key of %+v", p)
			}
		}
	}
	for _, u := range c.Upstreams {
		object(u.Patch)
		if _, ok := c.Provider(u.Provider); !ok || u.ID == "" || u.Model == "" || u.Limit < 0 || u.ThinkTags == "" {
			t.Fatalf("upstream: %+v", u)
		}
	}
	for _, m := range c.Models {
		object(m.Patch)
		for _, id := range m.Upstreams {
			if _, ok := c.Upstream(id); !ok || m.Name == "" {
				t.Fatalf("model: %+v", m)
			}
		}
	}
	for _, b := range []config.Breaker{c.Resilience.ProviderBreaker, c.Resilience.ChannelBreaker} {
		if b.OpenFor <= 0 || (b.Consecutive > 0) == (b.Failures > 0 && b.Window > 0) {
			t.Fatalf("breaker: %+v", b)
		}
	}
	if c.Server.Port < 1 || c.Server.Port > 65535 || c.Server.Host == "" {
		t.Fatalf("server: %+v", c.Server)
	}
}
