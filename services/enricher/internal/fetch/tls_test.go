package fetch_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/enricher/internal/fetch"
	"hydrallm/services/enricher/internal/guard"
	"hydrallm/services/enricher/internal/guard/guardtest"
)

// limits and checks hold over TLS and HTTP/2 as well.
func TestTLS(t *testing.T) {
	t.Parallel()
	plain := serve(t, guardtest.Page(""))
	gone := make(chan struct{})
	pages := http.NewServeMux()
	pages.HandleFunc("/page", func(rw http.ResponseWriter, r *http.Request) {
		guardtest.Page(r.Proto)(rw, r)
	})
	pages.HandleFunc("/to-page", guardtest.Redirect(http.StatusFound, "/page"))
	pages.HandleFunc("/to-plain", guardtest.Redirect(http.StatusFound, plain+"/"))
	pages.HandleFunc("/to-inside", guardtest.Redirect(http.StatusFound, "https://127.0.0.2/"))
	pages.HandleFunc("/packed", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		rw.Header().Set("Content-Encoding", "gzip")
		_, _ = rw.Write(gzipped(guardtest.PageText))
	})
	pages.HandleFunc("/header", func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("X-Long", strings.Repeat("a", 100_000))
		guardtest.Page("")(rw, r)
	})
	pages.HandleFunc("/endless", func(rw http.ResponseWriter, _ *http.Request) {
		defer close(gone)
		rw.Header().Set("Content-Type", "text/html")
		line := []byte(strings.Repeat("endless words ", 1000))
		for {
			if _, err := rw.Write(line); err != nil {
				return
			}
		}
	})
	server := httptest.NewUnstartedServer(pages)
	server.Config.ErrorLog = silent()
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	f := fetch.NewPatient(guard.New(guard.Config{AllowHosts: []string{"127.0.0.1", "localhost"}}), fetch.Config{})
	f.Trust(server.Certificate())

	for path, want := range map[string]string{"/page": "HTTP/2.0", "/to-page": "HTTP/2.0", "/to-plain": guardtest.PageText, "/packed": guardtest.PageText} {
		page, err := f.Fetch(t.Context(), server.URL+path)
		require.NoError(t, err, path)
		require.Contains(t, string(page.Body), want)
	}
	for path, want := range map[string]fetch.Kind{"/to-inside": fetch.Blocked, "/header": fetch.Network, "/endless": fetch.TooLarge} {
		_, err := f.Fetch(t.Context(), server.URL+path)
		fault(t, err, want)
	}
	<-gone
	_, err := f.Fetch(t.Context(), strings.Replace(server.URL, "127.0.0.1", "localhost", 1)+"/page")
	fault(t, err, fetch.Network) // the certificate has another name
}
