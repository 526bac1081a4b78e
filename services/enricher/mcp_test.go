package enricher

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/enricher/internal/guard"
	"hydrallm/services/enricher/internal/mcpclient"
	"hydrallm/services/enricher/internal/mcpserver"
	"hydrallm/shared/config"
	"hydrallm/shared/config/configtest"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/freeport"
)

// the command searches and reads with what the configuration says, and needs nothing else.
func TestRunMCP(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<html><head><title>Lamps</title></head><body><article><h1>Lamps</h1><p>The green lamp costs 42 euros in the shop at the harbour.</p></article></body></html>")
	}))
	defer site.Close()
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"results":[{"url":%q}]}`, site.URL+"/found")
	}))
	defer engine.Close()
	addr := freeport.Addr(t)
	env := configtest.Environment(t, map[string]string{"MCP": "a-long-token"}, map[string]string{"config.yaml": fmt.Sprintf(
		"web: {search: [searxng], searxng_url: %q, browser: never, allow_hosts: [127.0.0.1], mcp_server: {listen: %q, token: '${MCP}'}}\n", engine.URL, addr)})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- RunMCP(ctx, env, io.Discard) }()

	c := mcpclient.New(config.MCP{URL: "http://" + addr + mcpserver.Path, Token: "a-long-token", Timeout: await.Limit}, guard.New(guard.Config{AllowHosts: []string{"127.0.0.1"}}), "1.0")
	defer c.Close()
	await.True(t, func() bool {
		text, err := c.SearchAndFetch(t.Context(), "green lamp")
		if err != nil {
			return false // it does not listen yet
		}
		require.Contains(t, text, "# Lamps\nURL: "+site.URL+"/found\n\n")
		require.Contains(t, text, "42 euros")
		return true
	})
	text, err := c.Fetch(t.Context(), site.URL)
	require.NoError(t, err)
	require.Contains(t, text, "42 euros")
	cancel()
	require.NoError(t, await.Value(t, ended))
}

// it refuses to be there for everybody.
func TestRunMCPRefuses(t *testing.T) {
	t.Parallel()
	for yaml, words := range map[string]string{
		"web: {mcp_server: {listen: '0.0.0.0:8765'}}\n": "web.mcp_server.token is missing",
		"web: {mcp_server: {listen: nowhere}}\n":        "must be host:port",
	} {
		err := RunMCP(t.Context(), configtest.Environment(t, nil, map[string]string{"config.yaml": yaml}), io.Discard)
		require.ErrorContains(t, err, words)
	}
}
