package binaries

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/processtest"
)

// a local server that can do two things at a time gets two, everything else overflows to the hosted one, and the first
// in the list is taken again as soon as it has room. A model that is only local is busy meanwhile.
func TestTwoSlotsAndOverflow(t *testing.T) {
	t.Parallel()
	local, hosted := fakellm.Start(t), fakellm.Start(t)
	release := make(chan struct{})
	local.Handle(func(r fakellm.Request) fakellm.Answer {
		<-release
		return fakellm.Talk("from local")(r)
	})
	hosted.Handle(fakellm.Talk("from hosted"))
	dir, addr := t.TempDir(), freeport.Addr(t)
	config := filepath.Join(dir, "config.yaml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `
server: {host: 127.0.0.1, port: %s}
providers:
  - {id: local, url: "%s/v1", max_concurrency: 2}
  - {id: hosted, url: "%s/v1", key: "${HOSTED_KEY}"}
upstreams:
  - {id: local-small, provider: local, model: qwen2.5}
  - {id: hosted-small, provider: hosted, model: qwen2.5-72b}
models:
  - {name: my-model, upstreams: [local-small, hosted-small]}
  - {name: only-local, upstreams: [local-small]}
routing: {final_fallback: "", aliases: {}}
`, portOf(t, addr), local.URL(), hosted.URL()), 0o600))
	w := processtest.RunAlone(t, dir, processtest.AllInOne(t), "HOSTED_KEY=key-of-the-host")
	w.AwaitReady(t, addr)
	c := client{base: "http://" + addr + "/v1"}

	var asking sync.WaitGroup
	var first [2]reply
	for i := range first {
		asking.Go(func() { first[i] = c.ask(t, "my-model") })
	}
	local.AwaitCount(t, 2)
	const more = 6
	for range more {
		got := c.ask(t, "my-model")
		require.Equal(t, http.StatusOK, got.status, got.body)
		require.Contains(t, got.body, "from hosted")
	}
	busy := c.ask(t, "only-local")
	require.Equal(t, http.StatusServiceUnavailable, busy.status, busy.body)
	require.Contains(t, busy.body, "all upstreams busy")
	close(release)
	asking.Wait()
	for _, got := range first {
		require.Equal(t, http.StatusOK, got.status, got.body)
		require.Contains(t, got.body, "from local")
	}
	require.Contains(t, c.ask(t, "my-model").body, "from local")
	require.Contains(t, c.ask(t, "only-local").body, "from local")
	require.Equal(t, 2, local.MaxActive())
	require.Len(t, hosted.Requests(), more)
}
