package ingress_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/ingress"
	"hydrallm/services/ingress/internal/ui"
)

// the files of the web interface come with headers that forbid all that they do not need, and need no key.
func TestFilesOfTheInterface(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) { c.AdminKey, c.ClientKeys = adminKey, []string{clientKey} })
	files := maps.Clone(ui.Files())
	files[""] = ui.Page("")
	for name, f := range files {
		a := g.do(http.MethodGet, "/ui/"+name, nil)
		require.Equal(t, http.StatusOK, a.StatusCode, name)
		require.Equal(t, string(f.Body), a.body, name)
		require.Equal(t, f.Type, a.Header.Get("Content-Type"), name)
		policy := a.Header.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
			require.Contains(t, policy, part)
		}
		require.NotContains(t, policy, "unsafe")
		require.Equal(t, "nosniff", a.Header.Get("X-Content-Type-Options"))
		require.Equal(t, "no-referrer", a.Header.Get("Referrer-Policy"))
		require.Equal(t, "DENY", a.Header.Get("X-Frame-Options"))
		require.Equal(t, f.Immutable, strings.Contains(a.Header.Get("Cache-Control"), "immutable"), name)

		tag := a.Header.Get("Etag")
		require.NotEmpty(t, tag)
		for _, list := range []string{tag, `"other", W/` + tag, "*"} {
			a = g.do(http.MethodGet, "/ui/"+name, nil, "If-None-Match", list)
			require.Equal(t, http.StatusNotModified, a.StatusCode)
			require.Empty(t, a.body)
			require.Equal(t, tag, a.Header.Get("Etag"))
		}
		require.Equal(t, http.StatusOK, g.do(http.MethodGet, "/ui/"+name, nil, "If-None-Match", `"other"`).StatusCode)
		a = g.do(http.MethodHead, "/ui/"+name, nil)
		require.Equal(t, http.StatusOK, a.StatusCode)
		require.Empty(t, a.body)
	}
	a := g.do(http.MethodGet, "/ui/", nil, "Accept-Encoding", "gzip")
	require.Equal(t, "gzip", a.Header.Get("Content-Encoding"))
	r, err := gzip.NewReader(strings.NewReader(a.body))
	require.NoError(t, err)
	body, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, ui.Page("").Body, body)
	for _, path := range []string{"/ui/none.js", "/ui/static/app.js", "/ui/index.html", "/ui/app.js", "/uix"} {
		requireError(t, g.do(http.MethodGet, path, nil), http.StatusNotFound)
	}
	requireError(t, g.do(http.MethodPost, "/ui/", nil), http.StatusMethodNotAllowed)
	requireError(t, g.do(http.MethodGet, "/ui/../v1/admin/status", nil), http.StatusBadRequest)
	require.Equal(t, "/ui/", gjson.Get(g.do(http.MethodGet, "/", nil).body, "ui").Str)
}

// behind a proxy that puts something before all paths, and takes it away again, every file is found from the page.
func TestInterfaceBelowAPrefix(t *testing.T) {
	t.Parallel()
	requireBelowPrefix(t, setup(t, nil), "/ui", "/ui/")
}

// requireBelowPrefix asks through a proxy that puts something before all paths, and takes it away again: for a folder by its name without a slash, and for a page
// and all that it links to.
func requireBelowPrefix(t *testing.T, g *gateway, folder, page string) {
	t.Helper()
	const prefix = "/some/gateway"
	to, err := url.Parse(g.url)
	require.NoError(t, err)
	proxy := httptest.NewServer(http.StripPrefix(prefix, httputil.NewSingleHostReverseProxy(to)))
	defer proxy.Close()
	get := func(at string) (final *url.URL, text string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
		require.NoError(t, err)
		resp, err := proxy.Client().Do(req)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusOK, resp.StatusCode, at)
		require.NotEmpty(t, body, at)
		return resp.Request.URL, string(body)
	}
	final, _ := get(proxy.URL + prefix + folder)
	require.Equal(t, prefix+folder+"/", final.Path, "where the redirect leads")
	final, text := get(proxy.URL + prefix + page)
	links := regexp.MustCompile(`(?:src|href)="([^"#]+)"`).FindAllStringSubmatch(text, -1)
	require.NotEmpty(t, links)
	for _, l := range links {
		at, err := final.Parse(l[1])
		require.NoError(t, err)
		if at.Host == final.Host {
			get(at.String())
		}
	}
}

// Markdown comes back as HTML without anything that runs, within bounds, for operators only.
func TestMarkdown(t *testing.T) {
	t.Parallel()
	g := setup(t, withAdmin)
	render := func(body string) answer {
		return g.do(http.MethodPost, "/v1/admin/markdown", strings.NewReader(body), "X-Admin-Key", adminKey)
	}
	a := render(`{"text":"**hi** <script>alert(1)</script> [x](javascript:y) \ud55c"}`)
	require.Equal(t, http.StatusOK, a.StatusCode, a.body)
	require.Equal(t, "<p><strong>hi</strong> alert(1) x 한</p>\n", gjson.Get(a.body, "html").Str)
	for _, bad := range []string{"", "{", `[]`, `{}`, `{"text":5}`, `{"text":null}`} {
		requireError(t, render(bad), http.StatusBadRequest)
	}
	requireError(t, render(`{"text":"`+string(bytes.Repeat([]byte("a"), 300<<10))+`"}`), http.StatusRequestEntityTooLarge)
	requireError(t, render(`{"text":"`+string(bytes.Repeat([]byte("a"), 2<<20))+`"}`), http.StatusRequestEntityTooLarge)
	requireError(t, g.do(http.MethodPost, "/v1/admin/markdown", strings.NewReader(`{"text":"x"}`)), http.StatusUnauthorized)
	require.NotContains(t, g.log.String(), "POST /v1/admin/markdown", "nothing was changed")
}

// a gateway that was told its language begins with it; else the browser's counts.
func TestLanguageOfTheInterface(t *testing.T) {
	t.Parallel()
	require.Contains(t, settled(t, "server: {locale: ko}").do(http.MethodGet, "/ui/", nil).body, `data-locale="ko"`)
	require.NotContains(t, settled(t, "providers: []").do(http.MethodGet, "/ui/", nil).body, "data-locale")
}
