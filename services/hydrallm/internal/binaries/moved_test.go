package binaries

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/processtest"
)

// an installation is moved as a directory. Its data is beside its configuration file, wherever the gateway is started, so that usage and
// the keys that were added at run time are there again; nothing is left in the directories of the starts.
func TestInstallationIsMoved(t *testing.T) {
	t.Parallel()
	upstream := fakellm.Start(t)
	upstream.Handle(fakellm.Talk("hello"))
	upstream.Offer("real")
	root, addr := t.TempDir(), freeport.Addr(t)
	home := filepath.Join(root, "first", "place")
	require.NoError(t, os.MkdirAll(home, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(home, "config.yaml"), fmt.Appendf(nil, `
server: {host: 127.0.0.1, port: %s, admin_key: the-admin-key-of-the-test}
providers: [{id: groq, url: "%s/v1", keys: []}]
routing: {final_fallback: "", aliases: {}}
`, portOf(t, addr), upstream.URL()), 0o600))
	c := client{base: "http://" + addr + "/v1"}
	admin := []string{"X-Admin-Key", "the-admin-key-of-the-test"}
	begin := func() (w *processtest.Process, from string) {
		from = t.TempDir()
		w = processtest.RunAlone(t, from, processtest.AllInOne(t), "CONFIG_PATH="+filepath.Join(home, "config.yaml"))
		w.AwaitReady(t, addr)
		return w, from
	}
	total := func() int64 {
		return gjson.Get(c.do(t, http.MethodGet, "/admin/stats", "", admin...).body, "total_requests").Int()
	}
	answered := func() bool { return c.ask(t, "groq/real").status == http.StatusOK }

	w, from := begin()
	require.False(t, answered(), "there is no key yet")
	added := c.do(t, http.MethodPost, "/admin/keys", `{"provider":"groq","keys":["gsk_added_at_run_time"]}`, admin...)
	require.Equal(t, http.StatusOK, added.status, added.body)
	await.True(t, answered)
	await.True(t, func() bool { return total() > 0 })
	w.End(t, syscall.SIGTERM)
	requireEmpty(t, from)

	moved := filepath.Join(root, "second place")
	require.NoError(t, os.Rename(home, moved))
	home = moved
	w, from = begin()
	require.Positive(t, total(), "usage of the first place")
	await.True(t, answered, "with the key that was added at the first place")
	require.Contains(t, c.do(t, http.MethodGet, "/admin/status", "", admin...).body, `"active_keys":1`)
	w.End(t, syscall.SIGTERM)
	requireEmpty(t, from)
	requireEmpty(t, filepath.Join(root, "first"))
}

func requireEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}
