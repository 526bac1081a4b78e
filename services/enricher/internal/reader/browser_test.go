package reader_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/enricher/internal/browser"
	"hydrallm/services/enricher/internal/extract"
	"hydrallm/services/enricher/internal/fetch"
	"hydrallm/services/enricher/internal/guard"
	"hydrallm/services/enricher/internal/guard/guardtest"
	"hydrallm/services/enricher/internal/guard/proxy"
	"hydrallm/services/enricher/internal/page"
	"hydrallm/services/enricher/internal/reader"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/machine"
)

// enricher is a reader with all that it reads with, as one enricher has it.
type enricher struct {
	*reader.Reader

	pool *browser.Pool
}

// startEnricher ends with the test. check is an address that may be shown to find out whether there is a browser.
func startEnricher(tb testing.TB, g *guard.Guard, use reader.Use, check string) *enricher {
	tb.Helper()
	log := slog.New(slog.DiscardHandler)
	way, err := proxy.Start(tb.Context(), g, log)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, way.Stop(context.Background())) })
	name, password := way.Credentials()
	pool := browser.New(browser.Config{
		Proxy: browser.Proxy{Addr: way.Addr(), User: name, Password: password}, Check: g.Check, Log: log, Timeout: await.Limit, Load: await.Limit, Settle: await.Limit,
	})
	tb.Cleanup(func() { require.NoError(tb, pool.Stop(context.Background())) })
	_, err = pool.Render(tb.Context(), check)
	if errors.Is(err, browser.ErrNone) {
		machine.Missing(tb, "Chromium", err)
	}
	require.NoError(tb, err)
	return &enricher{reader.New(fetch.New(g, fetch.Config{}), pool, extract.Extract, use, log), pool}
}

const (
	sentence = "The harbour of the town was rebuilt after the storm, and its lighthouse has been open to visitors since then. "
	words    = "항구는 폭풍이 지나간 뒤에 다시 지어졌고, 등대는 그때부터 방문객에게 열려 있습니다. "
)

// serveSite serves one article: as HTML, made by scripts, and as PDF-like things that a browser can't show.
func serveSite(tb testing.TB) (site string) {
	tb.Helper()
	article := "<article><h1>The harbour</h1><p>" + strings.Repeat(sentence, 6) + "</p><p>" + strings.Repeat(words, 6) + "</p></article>"
	mux := http.NewServeMux()
	serve := func(path, kind, body string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			fmt.Fprint(w, body)
		})
	}
	const html = "text/html; charset=utf-8"
	serve("/plain", html, "<!doctype html><html><head><title>The harbour</title></head><body>"+article+"</body></html>")
	serve("/scripts", html, `<!doctype html><html><head><title>A town</title></head><body><div id="root"></div><script src="/app.js"></script></body></html>`)
	serve("/app.js", "text/javascript; charset=utf-8", `
		fetch('/article').then(r => r.text()).then(html => { document.title = 'The harbour'; document.getElementById('root').innerHTML = html })`)
	serve("/article", html, article)
	serve("/text", "text/plain; charset=utf-8", words)
	mux.HandleFunc("/cookies", func(w http.ResponseWriter, r *http.Request) { // a wall for who keeps none
		if _, err := r.Cookie("seen"); err != nil {
			http.SetCookie(w, &http.Cookie{Name: "seen", Value: "1"}) //nolint:gosec // G124: the site has no TLS
			http.Redirect(w, r, "/cookies", http.StatusFound)
			return
		}
		http.Redirect(w, r, "/plain", http.StatusFound)
	})
	server := httptest.NewServer(mux)
	tb.Cleanup(server.Close)
	return server.URL
}

// the whole way, with the real parts.
func TestPagesOfScriptsAreRead(t *testing.T) {
	t.Parallel()
	site := serveSite(t)
	e := startEnricher(t, guard.New(guard.Config{AllowHosts: []string{"127.0.0.1"}}), reader.Auto, site+"/plain")
	for path, want := range map[string]page.Document{
		"/plain":   {URL: site + "/plain", Title: "The harbour", Text: strings.TrimSpace(words)},
		"/scripts": {URL: site + "/scripts", Title: "The harbour", Text: strings.TrimSpace(words)},
		"/cookies": {URL: site + "/plain", Title: "The harbour", Text: strings.TrimSpace(sentence)},
		"/text":    {URL: site + "/text", Title: "text", Text: strings.TrimSpace(words)},
	} {
		doc, err := e.Read(t.Context(), site+path)
		require.NoError(t, err, path)
		require.Contains(t, doc.Text, want.Text, path)
		require.Equal(t, want.URL, doc.URL, path)
		require.Equal(t, want.Title, doc.Title, path)
	}
	// Without the browser nothing is lost but what needs it.
	require.NoError(t, e.pool.Stop(t.Context()))
	doc, err := e.Read(t.Context(), site+"/plain")
	require.NoError(t, err)
	require.Contains(t, doc.Text, strings.TrimSpace(words))
	_, err = e.Read(t.Context(), site+"/scripts")
	require.Error(t, err)
}

// both ways of reading a page lead nowhere inside.
func TestHostileSetupsAreNotRead(t *testing.T) {
	t.Parallel()
	w := guardtest.New(t)
	e := startEnricher(t, w.Guard(), reader.Auto, "http://"+guardtest.Host+"/")
	for _, s := range guardtest.Setups() {
		if s.Readable {
			continue // plain HTTP gives the text of these; browser's own tests show them
		}
		doc, err := e.Read(t.Context(), s.Start(w))
		require.NotContains(t, doc.Text, guardtest.TrapText, s.Name)
		require.True(t, err != nil || strings.Contains(doc.Text, "text-of-the-public-page"), s.Name)
	}
	require.Empty(t, w.Reached())
}
