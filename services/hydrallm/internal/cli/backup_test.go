package cli_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// what did not become a backup has no name that looks like one.
func TestFailedBackupLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"refused": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		"broken off": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("\x1f\x8b\x08")) // the test sees what comes of it
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
		"no backup": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTerminal(t, "")
			srv := httptest.NewServer(answer)
			t.Cleanup(srv.Close)
			out := t.TempDir()
			require.Equal(t, 1, x.run(t.Context(), "backup", "--url", srv.URL, filepath.Join(out, "b.tar.gz")), x.out.String())
			left, err := os.ReadDir(out)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// data that would be replaced are those that the configuration names, and no others.
func TestRestoreKeepsToTheNamedPlace(t *testing.T) {
	t.Parallel()
	x := newTerminal(t, `providers: [{id: p, url: "http://127.0.0.1:1/v1"}]`)
	require.NoError(t, os.MkdirAll(filepath.Join(x.dir, "data", "nats"), 0o700))
	x.env = map[string]string{"DATA_DIR": filepath.Join(t.TempDir(), "other")}
	require.NoError(t, os.WriteFile(filepath.Join(x.dir, "b.tar.gz"), nil, 0o600))
	require.Equal(t, 1, x.run(t.Context(), "restore", "--force", filepath.Join(x.dir, "b.tar.gz")))
	require.Contains(t, x.errOut.String(), filepath.Join("data", "nats"))
	require.Contains(t, x.errOut.String(), "move them first")
}
