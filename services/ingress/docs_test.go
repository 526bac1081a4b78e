package ingress_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/ingress"
)

// the documents need no key, come with the headers of the web interface, and are kept by browsers until they change.
func TestDocuments(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) { c.AdminKey, c.ClientKeys, c.Docs = adminKey, []string{clientKey}, true })
	require.Equal(t, "/docs/", gjson.Get(g.do(http.MethodGet, "/", nil).body, "docs").Str)
	for path, kind := range map[string]string{
		"": "text/html; charset=utf-8", "index.html": "text/html; charset=utf-8", "clients/": "text/html; charset=utf-8", "configuration.html": "text/html; charset=utf-8",
		"site.js": "text/javascript; charset=utf-8", "style.css": "text/css; charset=utf-8", "search.json": "application/json", "ui.png": "image/png", "icon.svg": "image/svg+xml",
	} {
		a := g.do(http.MethodGet, "/docs/"+path, nil)
		require.Equal(t, http.StatusOK, a.StatusCode, path)
		require.Equal(t, kind, a.Header.Get("Content-Type"), path)
		require.Contains(t, a.Header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'", path)
		require.NotContains(t, a.Header.Get("Content-Security-Policy"), "unsafe")
		require.Equal(t, "nosniff", a.Header.Get("X-Content-Type-Options"))
		require.Equal(t, "no-cache", a.Header.Get("Cache-Control"), "it is asked for again, with its tag")
		tag := a.Header.Get("Etag")
		require.NotEmpty(t, tag)
		again := g.do(http.MethodGet, "/docs/"+path, nil, "If-None-Match", tag)
		require.Equal(t, http.StatusNotModified, again.StatusCode)
		require.Empty(t, again.body)
		head := g.do(http.MethodHead, "/docs/"+path, nil)
		require.Equal(t, http.StatusOK, head.StatusCode)
		require.Equal(t, tag, head.Header.Get("Etag"))
		require.Empty(t, head.body)
		packed := g.do(http.MethodGet, "/docs/"+path, nil, "Accept-Encoding", "gzip")
		if packed.Header.Get("Content-Encoding") == "gzip" {
			r, err := gzip.NewReader(strings.NewReader(packed.body))
			require.NoError(t, err)
			body, err := io.ReadAll(r)
			require.NoError(t, err)
			require.Equal(t, a.body, string(body))
		}
	}
	for _, path := range []string{"/docs/none.html", "/docs/docs.go", "/docs/index.md", "/docs/site/site.go", "/docs/go.mod", "/docs/index.html/", "/docs/page.html", "/docsx"} {
		requireError(t, g.do(http.MethodGet, path, nil), http.StatusNotFound)
	}
	for _, path := range []string{"/docs/../v1/admin/status", "/docs/%2e%2e/README.md", "/docs//index.html", "/docs/..%2findex.html"} {
		requireError(t, g.do(http.MethodGet, path, nil), http.StatusBadRequest)
	}
	requireError(t, g.do(http.MethodPost, "/docs/", nil), http.StatusMethodNotAllowed)
}

// whoever does not want to show the documents does not.
func TestNoDocuments(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	for _, path := range []string{"/docs", "/docs/", "/docs/index.html"} {
		requireError(t, g.do(http.MethodGet, path, nil), http.StatusNotFound)
	}
	require.Equal(t, "/openapi.json", gjson.Get(g.do(http.MethodGet, "/", nil).body, "docs").Str)
}

// behind a proxy that puts something before all paths, and takes it away again, a page of a folder finds everything.
func TestDocumentsBelowAPrefix(t *testing.T) {
	t.Parallel()
	requireBelowPrefix(t, setup(t, func(c *ingress.Config) { c.Docs = true }), "/docs", "/docs/clients/index.html")
}
