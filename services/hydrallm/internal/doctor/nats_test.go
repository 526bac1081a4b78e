package doctor

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/topology"
)

// an external NATS server is looked at without a change to it.
func TestNATSRows(t *testing.T) {
	t.Parallel()
	start := func(more string) (url string) {
		addr := freeport.Addr(t)
		file := filepath.Join(t.TempDir(), "nats.conf")
		require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "listen: %q\n%s\n", addr, more), 0o600))
		natstest.StartConfigured(t, file)
		return "nats://" + addr
	}
	upstream := serve(t, vendor{}).URL + "/v1"
	look := func(url string) Report {
		return examine(t, one(upstream, "nats: {url: '"+url+"'}\n"), nil)
	}
	row := look("nats://"+freeport.Addr(t)).row(t, "NATS")
	require.Equal(t, Fail, row.State)
	require.Contains(t, row.Do, "nats.url")

	row = look(start("")).row(t, "NATS")
	require.Equal(t, Fail, row.State)
	require.Contains(t, row.Found, "not enabled")

	url := start(fmt.Sprintf("jetstream {store_dir: %q, max_memory_store: 4GiB, max_file_store: 16GiB}", t.TempDir()))
	nc, err := nats.Connect(url, nats.Timeout(await.Limit))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(await.Limit))
	require.NoError(t, err)
	// A server with too much to do answers late, which a look is right to tell: it is made again.
	until := func(what string, ok func(checks map[string]Row) bool) {
		await.True(t, func() bool {
			checks := map[string]Row{}
			for _, row := range look(url).Checks {
				checks[row.Check] = row
			}
			return ok(checks)
		}, what)
	}
	until("a server that was not used yet is fine", func(checks map[string]Row) bool {
		return checks["NATS"].State == OK && strings.HasPrefix(checks["NATS: streams and buckets"].Found, "none is there")
	})
	for name := range js.StreamNames(t.Context()).Name() {
		require.Fail(t, "a look has made something", name)
	}
	await.True(t, func() bool {
		return topology.Ensure(t.Context(), js, topology.Config{}, slog.New(slog.DiscardHandler)) == nil
	}, "making the streams")
	until("all is there", func(checks map[string]Row) bool {
		row := checks["NATS: streams and buckets"]
		return row.State == OK && strings.Contains(row.Found, "are there") && checks["NATS: leaders"].State == ""
	})
	dead, err := js.Stream(t.Context(), subject.DeadStream)
	require.NoError(t, err)
	changed := dead.CachedInfo().Config
	changed.MaxBytes++
	_, err = js.UpdateStream(t.Context(), changed)
	require.NoError(t, err)
	require.NoError(t, js.DeleteStream(t.Context(), subject.FactsStream))
	until("what is missing and what differs", func(checks map[string]Row) bool {
		row := checks["NATS: streams and buckets"]
		return row.State == Fail && strings.Contains(row.Found, subject.FactsStream) && strings.Contains(checks["NATS: differences"].Found, subject.DeadStream)
	})
}

// a server whose copies are away works, and is not to lose another one.
func TestReplicas(t *testing.T) {
	t.Parallel()
	rows := kept([]topology.Found{{Name: "A", Replicas: 3, Behind: 1}, {Name: "B", Replicas: 3}}, 3)
	require.Equal(t, Warn, rows[1].State)
	require.Contains(t, rows[1].Found, "A")
	rows = kept([]topology.Found{{Name: "A", Replicas: 3}, {Name: "B", Err: topology.ErrNoAnswer}}, 3)
	require.Equal(t, Fail, rows[1].State)
	require.Equal(t, OK, rows[2].State)
}
