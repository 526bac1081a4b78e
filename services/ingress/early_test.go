package ingress_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/ingress"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/surface/chat"
	"hydrallm/shared/testkit/await"
)

const pingComment = ": ping\n\n"

// a stream whose upstream is silent gets its status line and comments. What comes then is part of it: the answer, or an error as an event.
func TestSilentUpstream(t *testing.T) {
	t.Parallel()
	busy := &fault.Fault{Kind: fault.Busy, Message: "all upstreams busy", RetryAfter: 7 * time.Second}
	refuse := func(f *fault.Fault, header ...[2]string) func(context.Context, *reply) {
		return func(ctx context.Context, r *reply) {
			head := f.Head()
			head.Header = append(head.Header, header...)
			_ = r.Head(head)
			_ = r.Data(ctx, chat.Errors{}.AppendBody(nil, f, ""))
			_ = r.end()
		}
	}
	tests := map[string]struct {
		then func(context.Context, *reply)
		want string // after the comments
		log  string
	}{
		"the answer comes": {echo, "data: one\n\ndata: two\n\ndata: [DONE]\n\n", ""},
		"it is refused": {
			refuse(fault.New(fault.ModelNotFound, "The model `x` does not exist")),
			`data: {"error":{"message":"The model ` + "`x`" + ` does not exist","type":"invalid_request_error","param":null,"code":"model_not_found"}}` + "\n\n",
			"status=404 code=model_not_found route=chat model=m client=127.0.0.1",
		},
		"the upstreams fail": {
			refuse(busy, [2]string{"X-Gateway-Attempts", "2"}),
			`data: {"error":{"message":"all upstreams busy","type":"service_unavailable","param":null,"code":"all_upstreams_busy","retry_after":7}}` + "\n\n", "",
		},
	}
	for name, tt := range tests {
		for _, version := range []string{"HTTP/1.1", "HTTP/1.0"} {
			t.Run(name+" "+version, func(t *testing.T) {
				t.Parallel()
				g := setup(t, func(c *ingress.Config) { c.PingAfter, c.Heartbeat = time.Millisecond, 300*time.Millisecond })
				pinged := make(chan struct{})
				g.work(func(ctx context.Context, r *reply) {
					_ = g.working(r)
					select {
					case <-pinged:
						tt.then(ctx, r)
					case <-r.gone:
					}
				})
				conn := dial(t, g.addr)
				_, err := io.WriteString(conn, strings.Replace(rawChat("", streamBody), "HTTP/1.1", version, 1))
				require.NoError(t, err)
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				require.NoError(t, err)
				defer resp.Body.Close() //nolint:errcheck // only read
				require.Equal(t, http.StatusOK, resp.StatusCode)
				require.Equal(t, "text/event-stream; charset=utf-8", resp.Header.Get("Content-Type"))
				require.Equal(t, "no", resp.Header.Get("X-Accel-Buffering"))
				require.NotEmpty(t, resp.Header.Get("X-Request-Id"))
				for range 2 {
					got := make([]byte, len(pingComment))
					_, err := io.ReadFull(resp.Body, got)
					require.NoError(t, err)
					require.Equal(t, pingComment, string(got))
				}
				close(pinged)
				rest, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.Equal(t, tt.want, strings.ReplaceAll(string(rest), pingComment, ""))
				if tt.log != "" {
					await.True(t, func() bool { return strings.Contains(g.log.String(), tt.log) })
				} else {
					require.NotContains(t, g.log.String(), "request refused")
				}
			})
		}
	}
}

// an answer that is no stream, or a stream that is not to be pinged, keeps its status.
func TestStatusIsNotGivenAway(t *testing.T) {
	t.Parallel()
	refused := fault.New(fault.Failed, "all upstreams failed")
	tests := map[string]struct {
		body string
		ping time.Duration
	}{
		"no stream": {chatBody, time.Millisecond},
		"never":     {streamBody, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := setup(t, func(c *ingress.Config) { c.PingAfter = tt.ping })
			begun := make(chan struct{})
			g.work(func(ctx context.Context, r *reply) {
				_ = g.working(r)
				<-begun
				_ = r.Head(refused.Head())
				_ = r.Data(ctx, chat.Errors{}.AppendBody(nil, refused, ""))
				_ = r.End(contract.End{Outcome: contract.OutcomeError})
				_ = r.Flush()
			})
			time.AfterFunc(time.Second, func() { close(begun) }) // several sweeps later
			requireError(t, g.chat(tt.body), http.StatusServiceUnavailable)
		})
	}
}

// A client that leaves while it is pinged is noticed like any other.
func TestClientLeavesASilentStream(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) { c.PingAfter = time.Millisecond })
	cancelled := make(chan struct{})
	g.work(func(_ context.Context, r *reply) {
		_ = g.working(r)
		<-r.gone
		close(cancelled)
	})
	conn, body := open(t, g)
	_, err := body.ReadString('\n')
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	await.Value(t, cancelled)
	await.True(t, func() bool {
		return strings.Contains(g.do(http.MethodGet, "/metrics", nil).body, `unfinished_total{reason="gone"} 1`)
	})
}

// What is lost before the answer begins ends the stream in sight of the client, and in the log.
func TestSilentStreamIsGivenUp(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) { c.PingAfter = time.Millisecond })
	pinged := make(chan struct{})
	g.work(func(_ context.Context, r *reply) {
		_ = g.working(r)
		<-pinged
		_ = g.publish(r.work.Request, contract.Frame{Kind: contract.FrameData, Position: contract.Position{Stage: contract.StageReceived, Delivery: r.work.Delivery}, Seq: 3, Payload: []byte("x")})
		<-r.gone
	})
	conn, body := open(t, g)
	defer conn.Close() //nolint:errcheck // only read
	_, err := body.ReadString('\n')
	require.NoError(t, err)
	close(pinged)
	rest, err := io.ReadAll(body)
	require.NoError(t, err)
	require.Contains(t, string(rest), `data: {"error":{"message":"The answer was lost inside the gateway"`)
	require.NotContains(t, string(rest), "[DONE]")
	require.Contains(t, g.log.String(), `level=WARN msg="request refused"`)
}

// working says that a worker has the request, as the bus does sooner or later.
func (g *gateway) working(r *reply) error {
	return g.sign("worker", r.work.Request, r.work.Delivery)
}
