package ingress_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/ingress"
)

// switches is a demo with one upstream.
type switches struct{ state string }

func (s *switches) Upstreams() []ingress.DemoUpstream {
	return []ingress.DemoUpstream{{ID: "alpha", State: s.state, Requests: 3}}
}

func (s *switches) Put(upstream, state string) bool {
	if upstream != "alpha" || state != "broken" {
		return false
	}
	s.state = state
	return true
}

// the routes of a demo are behind the admin key, and no other gateway has them, nor the page.
func TestDemoRoutes(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) { c.AdminKey, c.Demo = adminKey, &switches{state: "healthy"} })
	post := func(body string, header ...string) answer {
		return g.do(http.MethodPost, "/v1/admin/demo", strings.NewReader(body), header...)
	}
	key := []string{"X-Admin-Key", adminKey}
	requireError(t, post(`{"upstream":"alpha","state":"broken"}`), http.StatusUnauthorized)
	require.JSONEq(t, `{"upstreams":[{"id":"alpha","state":"healthy","requests":3}]}`, g.do(http.MethodGet, "/v1/admin/demo", nil, key...).body)
	require.JSONEq(t, `{"upstreams":[{"id":"alpha","state":"broken","requests":3}]}`, post(`{"upstream":"alpha","state":"broken"}`, key...).body)
	for _, wrong := range []string{`{"upstream":"gamma","state":"broken"}`, `{"upstream":"alpha","state":"odd"}`, `{"upstream":"alpha"}`, `{}`, `[`} {
		requireError(t, post(wrong, key...), http.StatusBadRequest)
	}
	require.Contains(t, g.do(http.MethodGet, "/ui/", nil).body, " data-demo")

	other := setup(t, func(c *ingress.Config) { c.AdminKey = adminKey })
	requireError(t, other.do(http.MethodGet, "/v1/admin/demo", nil, key...), http.StatusNotFound)
	requireError(t, other.do(http.MethodPost, "/v1/admin/demo", strings.NewReader(`{"upstream":"alpha","state":"broken"}`), key...), http.StatusNotFound)
	for _, method := range []string{http.MethodHead, http.MethodPut, http.MethodDelete} {
		require.Equal(t, http.StatusNotFound, other.do(method, "/v1/admin/demo", nil, key...).StatusCode, method)
	}
	require.NotContains(t, other.do(http.MethodGet, "/ui/", nil).body, "data-demo")
}
