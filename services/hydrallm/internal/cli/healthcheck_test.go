package cli_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// an image that knows no port asks the server that its configuration describes.
func TestHealthcheckOfTheConfiguration(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	port := server.URL[strings.LastIndexByte(server.URL, ':')+1:]
	x := newTerminal(t, "server: {port: "+port+"}")
	require.Zero(t, x.run(t.Context(), "healthcheck"), x.errOut.String())
	server.Close()
	require.Equal(t, 1, x.run(t.Context(), "healthcheck"))
	x = newTerminal(t, "server: {port: none}")
	require.Equal(t, 1, x.run(t.Context(), "healthcheck"))
	require.Contains(t, x.errOut.String(), "server.port")
}
