package binaries

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/processtest"
)

// the images hold nothing but a binary, so that each binary can ask the one that runs.
func TestEachBinaryAsksWhetherItIsWell(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	require.NoError(t, err)

	names := []string{"hydrallm", "ingress", "analyzer", "enricher", "dispatcher", "session-writer"}
	dir := processtest.Services(t, names...)
	for _, name := range names {
		out, err := exec.CommandContext(t.Context(), filepath.Join(dir, name), "healthcheck", at.Port()).CombinedOutput()
		require.NoError(t, err, "%s: %s", name, out)
		var refused *exec.ExitError
		out, err = exec.CommandContext(t.Context(), filepath.Join(dir, name), "healthcheck", at.Port(), "/elsewhere").CombinedOutput()
		require.ErrorAs(t, err, &refused, name)
		require.Contains(t, string(out), "/elsewhere answers 404", name)
	}
}
