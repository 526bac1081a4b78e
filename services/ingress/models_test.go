package ingress_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/ingress"
	"hydrallm/shared/config/configtest"
	"hydrallm/shared/modelindex"
	"hydrallm/shared/testkit/await"
)

func (g *gateway) modelIDs() []string {
	g.t.Helper()
	a := g.do(http.MethodGet, "/v1/models", nil)
	require.Equal(g.t, http.StatusOK, a.StatusCode)
	require.Equal(g.t, "application/json", a.Header.Get("Content-Type"))
	var list struct{ Data []struct{ ID string } }
	require.NoError(g.t, json.Unmarshal([]byte(a.body), &list))
	ids := []string{}
	for _, m := range list.Data {
		ids = append(ids, m.ID)
	}
	return ids
}

// the list follows discovery and asks nobody.
func TestModelsFollowDiscovery(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) {
		c.Models = []ingress.Model{{ID: "m", OwnedBy: "hydrallm"}, {ID: "groq/shadowed", OwnedBy: "hydrallm"}}
		c.Providers = []ingress.Provider{{ID: "groq"}, {ID: "ollama", Agent: true}}
		c.Automatic = []string{"groq", "ollama"}
	})
	fixed := []string{"m", "groq/shadowed", "auto", "groq/auto", "LOCAL-AGENT/OLLAMA/auto"}
	require.Equal(t, fixed, g.modelIDs())

	put := func(provider string, ids ...string) {
		l := modelindex.Listing{Provider: provider, At: time.Now()}
		for _, id := range ids {
			l.Models = append(l.Models, modelindex.Model{ID: id, Tier: "free", Window: 1000})
		}
		require.NoError(t, modelindex.Put(t.Context(), g.worker, l))
	}
	listed := func(want ...string) {
		t.Helper()
		want = append(append([]string{}, fixed...), want...)
		await.True(t, func() bool { return slices.Equal(want, g.modelIDs()) }, want)
	}
	put("stranger", "x")
	put("groq", "ns/a:b", "shadowed")
	listed("groq/ns/a:b")
	put("ollama", "Qwen3:8b")
	listed("groq/ns/a:b", "LOCAL-AGENT/OLLAMA/Qwen3:8b")
	for _, id := range []string{"groq/ns/a:b", "LOCAL-AGENT/OLLAMA/Qwen3:8b", "auto", "groq/auto"} { // URL-03
		for _, path := range []string{id, url.PathEscape(id)} {
			a := g.do(http.MethodGet, "/v1/models/"+path, nil)
			require.Equal(t, http.StatusOK, a.StatusCode, path)
			require.Contains(t, a.body, `"id":"`+id+`"`)
		}
	}
	put("groq", "c")
	listed("groq/c", "LOCAL-AGENT/OLLAMA/Qwen3:8b")
	_, code := requireError(t, g.do(http.MethodGet, "/v1/models/groq/ns/a:b", nil), http.StatusNotFound)
	require.Equal(t, "model_not_found", code)

	g.stop()
	put("groq", "d")
	require.NoError(t, g.ingress.Start(t.Context()))
	g.url = "http://" + g.ingress.Addr().String()
	require.Equal(t, append(append([]string{}, fixed...), "groq/d", "LOCAL-AGENT/OLLAMA/Qwen3:8b"), g.modelIDs(), "known from the start")
}

// URL-04: a list of thousands is one answer.
func TestThousandsOfModels(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) { c.Providers, c.Automatic = []ingress.Provider{{ID: "p"}}, []string{"p"} })
	l := modelindex.Listing{Provider: "p"}
	for i := range 5000 {
		l.Models = append(l.Models, modelindex.Model{ID: fmt.Sprintf("namespace/model-%d:free", i), Tier: "free"})
	}
	require.NoError(t, modelindex.Put(t.Context(), g.worker, l))
	await.True(t, func() bool { return len(g.modelIDs()) == 5002 })
	a := g.do(http.MethodHead, "/v1/models", nil)
	require.Equal(t, http.StatusOK, a.StatusCode)
	require.Empty(t, a.body)
	require.Greater(t, a.ContentLength, int64(1<<20))
}

// An agent is known by its id or by its dialect.
func TestProvidersOfTheList(t *testing.T) {
	t.Parallel()
	gateway := configtest.Parse(t, `
providers:
  - {id: gemini}
  - {id: vendor, url: "http://127.0.0.1:1/v1", default_models: {free: small, premium: large}}
  - {id: ollama, dialect: openai}
  - {id: box, dialect: ollama, url: "http://127.0.0.1:2"}
  - {id: coder, dialect: opencode, url: "http://127.0.0.1:3"}
  - {id: openclaw}
`)
	agents := map[string]bool{}
	for _, p := range ingress.FromGateway(gateway).Providers {
		agents[p.ID] = p.Agent
		if p.ID == "vendor" {
			require.Equal(t, modelindex.Defaults{Free: "small", Premium: "large"}, p.Defaults)
		}
	}
	require.Equal(t, map[string]bool{"gemini": false, "vendor": false, "ollama": true, "box": true, "coder": true, "openclaw": true}, agents)
}
