package process_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/process"
)

// a binary asks the one that runs, without a shell or another program.
func TestHealthcheck(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" && r.URL.Path != "/v1/models" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	port := server.URL[strings.LastIndexByte(server.URL, ':')+1:]
	require.NoError(t, process.Healthcheck(t.Context(), []string{port}))
	require.NoError(t, process.Healthcheck(t.Context(), []string{port, "/v1/models"}))
	require.ErrorContains(t, process.Healthcheck(t.Context(), []string{port, "/other"}), "503")
	require.Error(t, process.Healthcheck(t.Context(), []string{"1"}))
	require.Error(t, process.Healthcheck(t.Context(), []string{"x y"}))
	require.Error(t, process.Healthcheck(t.Context(), nil))
	require.Error(t, process.Healthcheck(t.Context(), []string{port, "/", "x"}))
}
