package ingress_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/ingress"
	"hydrallm/shared/bus"
	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/topology"
)

// open begins a streamed request and gives its connection, after the status line and headers.
func open(t *testing.T, g *gateway) (io.Closer, *bufio.Reader) {
	t.Helper()
	conn := dial(t, g.addr)
	_, err := io.WriteString(conn, rawChat("", streamBody))
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(); _ = resp.Body.Close() })
	require.Equal(t, http.StatusOK, resp.StatusCode)
	return conn, bufio.NewReader(resp.Body)
}

// publish sends frames as no bus would, and returns when the server has them.
func (g *gateway) publish(req *contract.Request, list ...contract.Frame) error {
	var msg []byte
	for _, f := range list {
		msg = contract.AppendFrame(msg, f)
	}
	return g.say(subject.Reply(req.Ingress, req.ID), msg)
}

// sign sends a sign of life of any worker, and returns when the server has it.
func (g *gateway) sign(worker string, req *contract.Request, delivery uint64) error {
	at := contract.Position{Stage: req.Slip.Here(), Delivery: delivery}
	return g.say(subject.Alive(req.Ingress), contract.AppendSigns(nil, worker, contract.Sign{Position: at, RequestID: req.ID}))
}

// say sends a message in the protocol of NATS.
func (g *gateway) say(subj string, msg []byte) error {
	conn, err := g.nats.InProcessConn()
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // nothing is left to be said
	in := bufio.NewReader(conn)
	if _, err := in.ReadString('\n'); err != nil { // INFO
		return err
	}
	text := fmt.Sprintf("CONNECT {\"verbose\":false}\r\nPUB %s %d\r\n%s\r\nPING\r\n", subj, len(msg), msg)
	if _, err := io.WriteString(conn, text); err != nil {
		return err
	}
	for {
		switch line, err := in.ReadString('\n'); {
		case err != nil || line == "PONG\r\n":
			return err
		case strings.HasPrefix(line, "-ERR"):
			return errors.New(line)
		} // else it asks for a sign of life itself, or says something about itself
	}
}

// CXL-05: what a worker sends reaches the client at once.
func TestEventsAreNotHeldBack(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	next := make(chan string)
	g.work(func(ctx context.Context, r *reply) {
		_ = r.head("text/event-stream; charset=utf-8")
		_ = r.Flush() // the headers alone are sent, too
		for text := range next {
			_ = r.send(ctx, text)
		}
		_ = r.end()
	})
	conn, body := open(t, g)
	defer conn.Close() //nolint:errcheck // only read
	for i := range 3 {
		text := fmt.Sprintf("data: %d\n\n", i)
		next <- text
		got := make([]byte, len(text))
		_, err := io.ReadFull(body, got)
		require.NoError(t, err)
		require.Equal(t, text, string(got))
	}
	close(next)
	rest, err := io.ReadAll(body)
	require.NoError(t, err)
	require.Empty(t, rest)
}

// R-012, CXL-01: a client that leaves is noticed, before the first byte and after it, although it sends nothing more.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	for _, committed := range []bool{false, true} {
		for _, reset := range []bool{false, true} {
			t.Run(fmt.Sprintf("committed=%t reset=%t", committed, reset), func(t *testing.T) {
				t.Parallel()
				g := setup(t, nil)
				begun, cancelled := make(chan struct{}), make(chan struct{})
				g.work(func(ctx context.Context, r *reply) {
					if committed {
						_ = r.head("text/event-stream")
						_ = r.send(ctx, "data: x\n\n")
					}
					close(begun)
					<-r.gone
					close(cancelled)
				})
				conn := dial(t, g.addr)
				_, err := io.WriteString(conn, rawChat("", streamBody))
				require.NoError(t, err)
				await.Value(t, begun)
				if committed {
					_, err := conn.Read(make([]byte, 10))
					require.NoError(t, err)
				}
				if reset {
					require.NoError(t, conn.SetLinger(0))
				}
				require.NoError(t, conn.Close())
				await.Value(t, cancelled)
				await.True(t, func() bool {
					metrics := g.do(http.MethodGet, "/metrics", nil).body
					return strings.Contains(metrics, `unfinished_total{reason="gone"} 1`) && strings.Contains(metrics, "hydrallm_ingress_in_flight 0")
				})
			})
		}
	}
}

// A client that has sent its next request already has not left.
func TestPipeliningIsNotLeaving(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	g.work(func(ctx context.Context, r *reply) {
		select {
		case <-r.gone:
			return
		case <-time.After(time.Second): // several looks at the connection
		}
		echo(ctx, r)
	})
	for _, a := range exchange(t, g.addr, rawChat("", chatBody)+rawChat("", streamBody), 2) {
		require.Equal(t, http.StatusOK, a.StatusCode)
	}
}

// R-040, SES-06 and delivery rule 3: what goes wrong between worker and client is never silent.
func TestBrokenAnswers(t *testing.T) {
	t.Parallel()
	const ok = contract.FrameData
	at := func(delivery uint64) contract.Position {
		return contract.Position{Stage: contract.StageReceived, Delivery: delivery}
	}
	head := func(kind string) contract.Frame {
		return contract.Frame{Kind: contract.FrameHead, Position: at(1), Payload: fmt.Appendf(nil, `{"status":200,"header":[["Content-Type",%q]]}`, kind)}
	}
	frame := func(kind contract.FrameKind, delivery, seq uint64, text string) contract.Frame {
		return contract.Frame{Kind: kind, Position: at(delivery), Seq: seq, Payload: []byte(text)}
	}
	const events, plain = "text/event-stream", "application/json"
	tests := map[string]struct {
		frames []contract.Frame
		fence  uint64
		status int
		body   string // what comes before the error event of a stream
	}{
		"gap in a stream":         {[]contract.Frame{head(events), frame(ok, 1, 1, "data: a\n\n"), frame(ok, 1, 3, "data: c\n\n")}, 0, 200, "data: a\n\n"},
		"gap in the middle":       {[]contract.Frame{head(events), frame(ok, 1, 1, "data: {\"a"), frame(ok, 1, 3, "data: c\n\n")}, 0, 200, "data: {\"a\n\n"},
		"gap in a whole answer":   {[]contract.Frame{head(plain), frame(ok, 1, 1, "{}"), frame(contract.FrameEnd, 1, 3, "{}")}, 0, 503, ""},
		"gap before the head":     {[]contract.Frame{frame(ok, 1, 1, "data: a\n\n")}, 0, 503, ""},
		"head that can't be read": {[]contract.Frame{frame(contract.FrameHead, 1, 0, "{")}, 0, 503, ""},
		"head with a bad status":  {[]contract.Frame{frame(contract.FrameHead, 1, 0, `{"status":42}`)}, 0, 503, ""},
		"worker of a stream died": {[]contract.Frame{head(events), frame(ok, 1, 1, "data: a\n\n")}, 2, 200, "data: a\n\n"},
		"worker of a whole died":  {[]contract.Frame{head(plain), frame(ok, 1, 1, "{")}, 2, 503, ""},
		"more than the window":    {[]contract.Frame{head(plain), frame(ok, 1, 1, strings.Repeat("x", 3<<20))}, 0, 503, ""},
		"older delivery answers":  {[]contract.Frame{head(events), frame(ok, 0, 7, "data: old\n\n"), frame(ok, 1, 2, "")}, 0, 200, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := setup(t, nil)
			cancelled := make(chan struct{})
			g.work(func(ctx context.Context, r *reply) {
				if r.work.Request.Model == "next" {
					echo(ctx, r)
					return
				}
				if err := g.publish(r.work.Request, tt.frames...); err != nil {
					t.Error(err)
				}
				if tt.fence != 0 {
					// Fence and frames come on two ways; frames come in order, so that those from before an answer are there.
					if _, err := g.try(context.WithoutCancel(ctx), http.MethodPost, "/v1/chat/completions", strings.NewReader(strings.Replace(chatBody, `"m"`, `"next"`, 1))); err != nil {
						t.Error(err)
					}
					if err := g.sign("dead", r.work.Request, 1); err != nil {
						t.Error(err)
					}
					for a := (contract.FenceAnswer{Decision: contract.FenceWait}); a.Decision != contract.FenceStop; { // until the sign is there
						var err error
						if a, err = g.worker.Fence(context.WithoutCancel(ctx), r.work.Request.Ingress, without("dead", r.work.Request, tt.fence)); err != nil {
							t.Error(err)
							break
						}
					}
				}
				<-r.gone
				close(cancelled)
			})
			a := g.chat(streamBody)
			require.Equal(t, tt.status, a.StatusCode, a.body)
			if tt.status != 200 {
				_, code := requireError(t, a, tt.status)
				require.Equal(t, "answer_lost", code)
				require.NotEmpty(t, a.Header.Get("Retry-After"))
			} else {
				event, found := strings.CutPrefix(a.body, tt.body)
				require.True(t, found, a.body)
				require.True(t, strings.HasPrefix(event, `data: {"error":{"message":`), event)
				require.True(t, strings.HasSuffix(event, "\n\n"))
				require.Equal(t, 1, strings.Count(event, "data:"))
				require.NotContains(t, a.body, "[DONE]")
			}
			await.Value(t, cancelled)
		})
	}
}

// Delivery rule 3: a redelivery runs when nothing is committed, and the lost delivery can't disturb it any more.
func TestRedelivery(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	g.work(func(ctx context.Context, r *reply) {
		req := r.work.Request
		a, err := g.worker.Fence(ctx, req.Ingress, without("", req, 2))
		if a.Decision != contract.FenceRun || err != nil {
			t.Error(a, err)
		}
		_ = r.head("application/json") // the first delivery is alive after all
		_ = r.send(ctx, "old")
		second := contract.Position{Stage: contract.StageReceived, Delivery: 2}
		head := contract.Head{Status: 201, Header: [][2]string{{"Content-Type", "text/plain"}, {"x-CaSe", "kept"}}}
		err = g.publish(req,
			contract.Frame{Kind: contract.FrameHead, Position: second, Payload: head.AppendJSON(nil)},
			contract.Frame{Kind: contract.FrameData, Position: second, Seq: 1, Payload: []byte("new")},
			contract.Frame{Kind: contract.FrameEnd, Position: second, Seq: 2, Payload: contract.End{}.AppendJSON(nil)},
		)
		if err != nil {
			t.Error(err)
		}
	})
	a := g.chat(chatBody)
	require.Equal(t, 201, a.StatusCode)
	require.Equal(t, "new", a.body)
	require.Equal(t, "text/plain", a.Header.Get("Content-Type"))
	unknown := &contract.Request{ID: "unknown", Slip: contract.Slip{contract.StageEnriched}}
	got, err := g.worker.Fence(t.Context(), "ingress-test", without("", unknown, 2))
	require.NoError(t, err)
	require.Equal(t, contract.FenceStop, got.Decision)
}

// without is the question about a redelivery of a worker who has found another one dead.
func without(gone string, req *contract.Request, delivery uint64) contract.FenceQuestion {
	return contract.FenceQuestion{RequestID: req.ID, At: contract.Position{Stage: req.Slip.Here(), Delivery: delivery}, Worker: "second", Gone: gone}
}

// Delivery rule 5: a request that no worker takes is refused after the queue time.
func TestQueueTimeout(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) { c.QueueTimeout = 200 * time.Millisecond })
	begin := time.Now()
	a := g.chat(chatBody)
	_, code := requireError(t, a, http.StatusServiceUnavailable)
	require.Equal(t, "queue_timeout", code)
	require.NotEmpty(t, a.Header.Get("Retry-After"))
	require.Less(t, time.Since(begin), testWait, "the usual time is as long")
	refused := make(chan string, 1)
	g.consume(bus.WorkConfig{Consumer: topology.Analyzer, Refused: func(_ context.Context, w *bus.Work) { refused <- w.Request.Model }},
		func(context.Context, *bus.Work) { t.Error("a worker gets it although it is too late") })
	require.Equal(t, "m", await.Value(t, refused))
}

// SES-06: a worker is not told to go on before the client has taken what it sent, and no more than that is held.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	const size = 24 << 20
	var sent atomic.Int64
	g.work(func(ctx context.Context, r *reply) {
		_ = r.head("text/event-stream")
		event := []byte("data: " + strings.Repeat("x", 64<<10-8) + "\n\n")
		for sent.Load() < size {
			if err := r.Data(ctx, event); err != nil {
				t.Error(err)
				return
			}
			_ = r.Flush()
			sent.Add(int64(len(event)))
		}
		_ = r.end()
	})
	conn, body := open(t, g)
	defer conn.Close() //nolint:errcheck // only read
	last := int64(-1)
	await.True(t, func() bool { // until nothing moves
		<-time.After(300 * time.Millisecond)
		now := sent.Load()
		still := now == last
		last = now
		return still && now > 0
	})
	require.Less(t, sent.Load(), int64(size), "the worker waits for the client")
	n, err := io.Copy(io.Discard, body)
	require.NoError(t, err)
	require.Equal(t, int64(size), n)
}

// A large answer that is no stream has credit while it is collected, and arrives whole.
func TestLargeAnswer(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	want := bytes.Repeat([]byte("0123456789abcdef"), 5<<20/16+1)
	g.work(func(ctx context.Context, r *reply) {
		_ = r.head("application/json")
		if err := r.Data(ctx, want); err != nil {
			t.Error(err)
		}
		_ = r.end()
	})
	for range 2 {
		a := g.chat(chatBody)
		require.Equal(t, int64(len(want)), a.ContentLength)
		require.True(t, bytes.Equal(want, []byte(a.body)))
	}
}

func TestEndlessAnswerIsCut(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	g.work(func(ctx context.Context, r *reply) {
		_ = r.head("application/json")
		chunk := make([]byte, 1<<20)
		for r.Data(ctx, chunk) == nil {
			_ = r.Flush()
		}
	})
	requireError(t, g.chat(chatBody), http.StatusServiceUnavailable)
}

// A silent stream is kept alive by comments, between events only and not before the commit.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) { c.Heartbeat = 500 * time.Millisecond })
	release := make(chan struct{})
	g.work(func(ctx context.Context, r *reply) {
		<-time.After(time.Second) // nothing is sent before the commit
		_ = r.head("text/event-stream")
		_ = r.send(ctx, "data: one\n\n")
		<-release
		_ = r.send(ctx, "data: ")
		<-time.After(1500 * time.Millisecond) // in the middle of an event
		_ = r.send(ctx, "two\n\n")
		_ = r.end()
	})
	conn, body := open(t, g)
	defer conn.Close() //nolint:errcheck // only read
	first := make([]byte, len("data: one\n\n: ping\n\n: ping\n\n"))
	_, err := io.ReadFull(body, first)
	require.NoError(t, err)
	require.Equal(t, "data: one\n\n: ping\n\n: ping\n\n", string(first))
	close(release)
	rest, err := io.ReadAll(body)
	require.NoError(t, err)
	require.Equal(t, "data: two\n\n", strings.ReplaceAll(string(rest), ": ping\n\n", ""))
	require.Contains(t, string(rest), "data: two\n\n")
}

// A client of HTTP/1.0 knows no chunks: its stream ends with the connection.
func TestHTTP10(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	g.work(echo)
	for _, body := range []string{streamBody, chatBody} {
		conn := dial(t, g.addr)
		_, err := io.WriteString(conn, strings.Replace(rawChat("Connection: keep-alive\r\n", body), "HTTP/1.1", "HTTP/1.0", 1))
		require.NoError(t, err)
		a, err := readAnswer(bufio.NewReader(conn))
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.StatusCode)
		require.Empty(t, a.TransferEncoding)
		require.Contains(t, []string{answerJSON, "data: one\n\ndata: two\n\ndata: [DONE]\n\n"}, a.body)
		if body == streamBody {
			_, err = conn.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF)
		}
	}
	require.Contains(t, g.do(http.MethodGet, "/metrics", nil).body, "hydrallm_ingress_in_flight 0")
}

// a body above the payload limit of NATS arrives byte for byte.
func TestLargeRequest(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	body := wrap(strings.Repeat("A", 12<<20))
	got := make(chan bool, 1)
	g.work(func(ctx context.Context, r *reply) {
		got <- string(r.work.Body) == body
		echo(ctx, r)
	})
	require.Equal(t, http.StatusOK, g.chat(body).StatusCode)
	require.True(t, await.Value(t, got))
}

// A full stream of requests refuses new ones instead of losing old ones.
func TestPipelineIsFull(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) { c.QueueTimeout = 10 * time.Second })
	filler, id := bytes.Repeat([]byte("x"), 256<<10), 0
	fill := func() {
		bustest.LimitWork(t, g.nats, 4<<20)
		for ; ; id++ {
			req := &contract.Request{ID: strconv.Itoa(id), Ingress: "x", Slip: contract.Slip{contract.StageEnriched}, StartBy: time.Now().Add(testWait)}
			err := g.worker.PublishWork(t.Context(), req, filler)
			if errors.Is(err, bus.ErrWorkFull) {
				return
			}
			require.NoError(t, err)
		}
	}
	var a answer
	await.True(t, func() bool { // a session that gets no sign of life of the server gives the stream its own limit again
		fill()
		a = g.chat(wrap(strings.Repeat("A", len(filler))))
		return strings.Contains(a.body, "no more requests")
	})
	requireError(t, a, http.StatusServiceUnavailable)
	require.NotEmpty(t, a.Header.Get("Retry-After"))
}
