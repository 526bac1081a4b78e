package ingress_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/ingress"
)

// the start names the description of the interface, which needs no key, holds none, and is found below a prefix as well.
func TestDescriptionOfTheInterface(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) { c.AdminKey, c.ClientKeys = adminKey, []string{clientKey} })
	banner := g.do(http.MethodGet, "/", nil)
	require.Equal(t, "online", gjson.Get(banner.body, "status").Str)
	for _, name := range []string{"ui", "docs", "openapi"} {
		path := gjson.Get(banner.body, name).Str
		require.Equal(t, http.StatusOK, g.do(http.MethodGet, path, nil).StatusCode, "%s: %q", name, path)
	}
	a := g.do(http.MethodGet, "/openapi.json", nil)
	require.Equal(t, http.StatusOK, a.StatusCode)
	require.Equal(t, "application/json", a.Header.Get("Content-Type"))
	require.True(t, json.Valid([]byte(a.body)))
	require.Equal(t, "3.1.0", gjson.Get(a.body, "openapi").Str)
	require.Equal(t, gjson.Get(banner.body, "version").Str, gjson.Get(a.body, "info.version").Str)
	require.NotContains(t, a.body, adminKey)
	require.NotContains(t, a.body, clientKey)
	require.NotContains(t, a.body, g.url)
	head := g.do(http.MethodHead, "/openapi.json", nil)
	require.Equal(t, http.StatusOK, head.StatusCode)
	require.Empty(t, head.body)
	requireError(t, g.do(http.MethodPost, "/openapi.json", nil), http.StatusMethodNotAllowed)

	to, err := url.Parse(g.url)
	require.NoError(t, err)
	proxy := httptest.NewServer(http.StripPrefix("/some/gateway", httputil.NewSingleHostReverseProxy(to)))
	defer proxy.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, proxy.URL+"/some/gateway/openapi.json", nil)
	require.NoError(t, err)
	resp, err := proxy.Client().Do(req)
	require.NoError(t, err)
	defer resp.Body.Close() //nolint:errcheck // it was read
	require.Equal(t, http.StatusOK, resp.StatusCode)
}
