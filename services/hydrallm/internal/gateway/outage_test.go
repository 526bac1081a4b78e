package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/natstest"
)

// outageWait bounds what a machine with much to do may need to end processes, elect leaders and answer.
const outageWait = 2 * time.Minute

// An outage of NATS under load heals by itself, however the servers ended and wherever the requests are kept: readiness says so in the
// meantime, no request stays without an end, and models with a limit are served again.
func TestOutageOfNATS(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{1, 3} {
		for _, onDisk := range []bool{false, true} {
			for how, end := range map[string]func(*natstest.Process){"stopped": (*natstest.Process).Stop, "killed": (*natstest.Process).Kill} {
				t.Run(fmt.Sprintf("%d nodes, on disk %t, %s", nodes, onDisk, how), func(t *testing.T) {
					t.Parallel()
					x := startOutage(t, nodes, onDisk)
					stop := x.load(t)
					x.each(end)
					x.awaitReady(t, http.StatusServiceUnavailable)
					x.each(func(p *natstest.Process) { p.Start(t) })
					begun := time.Now()
					x.awaitReady(t, http.StatusOK)
					t.Logf("ready %s after the servers listen", time.Since(begun).Round(time.Millisecond))
					var asking sync.WaitGroup
					for range 20 {
						asking.Go(func() {
							if e := x.question(t.Context(), true); e.status != http.StatusOK || !e.whole {
								t.Errorf("after the outage: %+v", e)
							}
						})
					}
					asking.Wait()
					t.Logf("answers %s after the servers listen", time.Since(begun).Round(time.Millisecond))
					for _, e := range stop() {
						require.NoError(t, e.err)
						require.Contains(t, []int{http.StatusOK, http.StatusServiceUnavailable}, e.status)
					}
				})
			}
		}
	}
}

// outage is a gateway on a NATS that the test breaks.
type outage struct {
	running
	nodes    []*natstest.Process
	upstream *fakellm.Server
}

func startOutage(t *testing.T, nodes int, onDisk bool) *outage {
	t.Helper()
	x := &outage{upstream: fakellm.Start(t), nodes: []*natstest.Process{natstest.NewProcess(t)}}
	x.upstream.Handle(fakellm.Talk("one two three"))
	if nodes > 1 {
		x.nodes = natstest.NewCluster(t, nodes)
	}
	s := configured(t, freeport.Port(t), fmt.Sprintf(`
providers: [{id: p, url: "%s/v1", key: key-of-the-provider, max_concurrency: 50}]
upstreams: [{id: u, provider: p, model: real}]
models: [{name: m, upstreams: [u]}]
routing: {final_fallback: "", aliases: {}}
`, x.upstream.URL()))
	s.Server.QueueTimeout = 20 * time.Second // until what was lost in memory is given up
	s.NATS.URL, s.NATS.Replicas, s.NATS.WorkOnDisk = natstest.URLs(x.nodes), nodes, onDisk
	x.each(func(p *natstest.Process) { p.Start(t) })
	x.running = serve(t, s)
	x.awaitReady(t, http.StatusOK)
	require.Equal(t, http.StatusOK, x.question(t.Context(), true).status)
	return x
}

// each does something to all servers at the same time.
func (x *outage) each(do func(*natstest.Process)) {
	var wg sync.WaitGroup
	for _, p := range x.nodes {
		wg.Go(func() { do(p) })
	}
	wg.Wait()
}

func (x *outage) awaitReady(t *testing.T, want int) {
	t.Helper()
	await.True(t, func() bool {
		status, _ := x.do(t, http.MethodGet, "/readyz", "")
		return status == want
	})
}

// ended is what became of a question.
type ended struct {
	status int
	text   string
	whole  bool // the answer has its end
	err    error
}

func (x *outage) question(ctx context.Context, stream bool) (e ended) {
	ctx, cancel := context.WithTimeout(ctx, outageWait)
	defer cancel()
	body := fmt.Sprintf(`{"model":"m","stream":%t,"messages":[{"role":"user","content":"hi"}]}`, stream)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, x.url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return ended{err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return ended{err: err}
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(resp.Body)
	return ended{status: resp.StatusCode, text: string(text), whole: strings.Contains(string(text), "[DONE]") || !stream, err: err}
}

// load asks questions until it is told to stop, and gives what became of them.
func (x *outage) load(t *testing.T) (stop func() []ended) {
	t.Helper()
	const clients = 8
	var mu sync.Mutex
	var ends []ended
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	var asking sync.WaitGroup
	for i := range clients {
		asking.Go(func() {
			for ctx.Err() == nil {
				e := x.question(context.WithoutCancel(ctx), i%2 == 0)
				mu.Lock()
				ends = append(ends, e)
				mu.Unlock()
			}
		})
	}
	await.True(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(ends) > 5*clients
	})
	return func() []ended {
		cancel()
		asking.Wait()
		return ends
	}
}
