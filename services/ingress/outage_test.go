package ingress_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/ingress"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/natstest"
)

// remote is a server in a process of its own, behind the same door as one in this process.
type remote struct{ *natstest.Process }

func (r remote) InProcessConn() (net.Conn, error) {
	return net.Dial("tcp", strings.TrimPrefix(r.URL(), "nats://"))
}

// setupRemote is setup with a NATS server that the test may end.
func setupRemote(t *testing.T, change func(*ingress.Config)) (*gateway, *natstest.Process) {
	t.Helper()
	p := natstest.NewProcess(t)
	p.Start(t)
	return setupOn(t, remote{p}, change), p
}

// A request that comes while NATS is away waits for it, and is answered when it is back.
func TestRequestWaitsForNATS(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"small": chatBody, "above the payload limit": wrap(strings.Repeat("A", 9<<20))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, p := setupRemote(t, func(c *ingress.Config) { c.QueueTimeout = time.Minute })
			g.work(echo)
			require.Equal(t, http.StatusOK, g.chat(chatBody).StatusCode)
			p.Kill()
			status := make(chan int, 1)
			go func() {
				a, err := g.try(t.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
				if err != nil {
					t.Error(err)
				}
				status <- a.StatusCode
			}()
			g.awaitPending(1)
			require.Equal(t, http.StatusServiceUnavailable, g.do(http.MethodGet, "/readyz", nil).StatusCode)
			p.Start(t)
			require.Equal(t, http.StatusOK, await.Value(t, status))
		})
	}
}

// It waits for the queue timeout at most.
func TestNATSStaysAway(t *testing.T) {
	t.Parallel()
	g, p := setupRemote(t, func(c *ingress.Config) { c.QueueTimeout = 500 * time.Millisecond })
	p.Kill()
	a := g.chat(chatBody)
	requireError(t, a, http.StatusServiceUnavailable)
	require.NotEmpty(t, a.Header.Get("Retry-After"))
}

// A client that leaves while its request waits is not waited for.
func TestClientLeavesWhileNATSIsAway(t *testing.T) {
	t.Parallel()
	g, p := setupRemote(t, func(c *ingress.Config) { c.QueueTimeout = time.Hour })
	p.Kill()
	ctx, leave := context.WithCancel(t.Context())
	go func() { _, _ = g.try(ctx, http.MethodPost, "/v1/chat/completions", strings.NewReader(chatBody)) }()
	g.awaitPending(1)
	leave()
	g.awaitPending(0)
}

// awaitPending waits until so many requests await their answer.
func (g *gateway) awaitPending(n int) {
	g.t.Helper()
	await.True(g.t, func() bool {
		return strings.Contains(g.do(http.MethodGet, "/metrics", nil).body, fmt.Sprintf("hydrallm_ingress_in_flight %d\n", n))
	})
}
