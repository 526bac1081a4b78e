package ingress_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"hydrallm/services/ingress"
	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/config/configtest"
	"hydrallm/shared/dispatcherhealth"
	"hydrallm/shared/process"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/startstoptest"
)

// stopping begins to stop the ingress and gives the result later.
func (g *gateway) stopping(limit time.Duration) <-chan error {
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	go func() {
		defer cancel()
		done <- g.ingress.Stop(ctx)
	}()
	return done
}

func (g *gateway) refusesConnections() bool {
	conn, err := net.Dial("tcp", g.addr)
	if err == nil {
		_ = conn.Close()
	}
	return err != nil
}

// requests under way finish, and their connections end then; idle connections do not hold up the stop.
func TestStopWaitsForRequests(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	begun, release := make(chan struct{}, 2), make(chan struct{})
	g.work(func(ctx context.Context, r *reply) {
		begun <- struct{}{}
		<-release
		echo(ctx, r)
	})
	idle := dial(t, g.addr)
	_, err := io.WriteString(idle, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	_, err = readAnswer(bufio.NewReader(idle))
	require.NoError(t, err)
	fresh := dial(t, g.addr) // has never sent anything
	busy := dial(t, g.addr)
	_, err = io.WriteString(busy, rawChat("", streamBody)+rawChat("", chatBody)) // the second must not be served any more
	require.NoError(t, err)
	await.Value(t, begun)

	done := g.stopping(testWait)
	await.True(t, g.refusesConnections)
	_, err = fresh.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.Empty(t, done, "it waits for the stream")
	close(release)
	in := bufio.NewReader(busy)
	a, err := readAnswer(in)
	require.NoError(t, err)
	require.Contains(t, a.body, "[DONE]")
	_, err = readAnswer(in)
	require.Error(t, err)
	require.NoError(t, await.Value(t, done))
	require.NoError(t, g.ingress.Stop(t.Context()), "stopping is idempotent")
}

// before the port closes, /readyz says for a while that the gateway is not ready. It serves on meanwhile.
func TestStopTellsFirst(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) { c.StopPause = time.Hour })
	g.work(echo)
	require.Equal(t, http.StatusOK, g.chat(chatBody).StatusCode)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.ingress.Stop(ctx) }()
	await.True(t, func() bool {
		a := g.do(http.MethodGet, "/readyz", nil)
		return a.StatusCode == http.StatusServiceUnavailable && strings.Contains(a.body, `"stopping"`)
	})
	a := g.chat(chatBody)
	require.Equal(t, http.StatusOK, a.StatusCode)
	require.True(t, a.Close, "the next request should go elsewhere")
	require.Equal(t, http.StatusOK, g.do(http.MethodGet, "/healthz", nil).StatusCode)
	require.Empty(t, done)
	cancel() // the time for the whole stop is over
	require.NoError(t, await.Value(t, done))
	require.True(t, g.refusesConnections())

	g = setup(t, func(c *ingress.Config) { c.StopPause = 50 * time.Millisecond })
	begun := time.Now()
	require.NoError(t, await.Value(t, g.stopping(testWait)))
	require.GreaterOrEqual(t, time.Since(begun), 50*time.Millisecond)
}

// beyond the limit of connections, requests are refused in a way that clients understand, and health checks are answered.
func TestConnectionLimit(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) { c.MaxConns = 1 })
	begun, release := make(chan struct{}), make(chan struct{})
	g.work(func(ctx context.Context, r *reply) {
		close(begun)
		<-release
		echo(ctx, r)
	})
	busy := dial(t, g.addr)
	_, err := io.WriteString(busy, rawChat("", chatBody))
	require.NoError(t, err)
	await.Value(t, begun)
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/metrics": http.StatusOK, "/v1/models": 503, "/": 503, "/v1/admin/status": 503} {
		a := g.do(http.MethodGet, path, nil)
		require.Equal(t, want, a.StatusCode, path)
		require.True(t, a.Close, path)
		if want == http.StatusServiceUnavailable {
			_, code := requireError(t, a, want)
			require.Equal(t, "too_many_connections", code)
			require.NotEmpty(t, a.Header.Get("Retry-After"))
		}
	}
	a := g.chat(chatBody)
	require.Equal(t, http.StatusServiceUnavailable, a.StatusCode)
	close(release)
	in, err := readAnswer(bufio.NewReader(busy))
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, in.StatusCode, "who was there first is served")
	await.True(t, func() bool { return g.do(http.MethodGet, "/v1/models", nil).StatusCode == http.StatusOK })
}

// what does not finish in time ends with an error that the client sees, and its worker stops.
func TestStopCutsOff(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	var begun, cancelled sync.WaitGroup
	begun.Add(2)
	cancelled.Add(2)
	g.work(func(ctx context.Context, r *reply) {
		if r.work.Request.Stream {
			_ = r.head("text/event-stream")
			_ = r.send(ctx, "data: one\n\n")
		}
		begun.Done()
		<-r.gone
		cancelled.Done()
	})
	answers := make(chan answer, 2)
	for _, body := range []string{chatBody, streamBody} {
		go func() {
			a, err := g.try(t.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
			if err != nil {
				t.Error(err)
			}
			answers <- a
		}()
	}
	begun.Wait()
	err := await.Value(t, g.stopping(300*time.Millisecond))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "2 answers cut off")
	for range 2 {
		a := await.Value(t, answers)
		if a.StatusCode == http.StatusOK {
			require.True(t, strings.HasPrefix(a.body, "data: one\n\ndata: {\"error\":"), a.body)
			require.NotContains(t, a.body, "[DONE]")
			continue
		}
		_, code := requireError(t, a, http.StatusServiceUnavailable)
		require.Equal(t, "stopping", code)
	}
	cancelled.Wait()
}

// A client that does not read holds up the stop no longer than the rest.
func TestStopDespiteAStuckClient(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	full := make(chan struct{})
	g.work(func(ctx context.Context, r *reply) {
		_ = r.head("text/event-stream")
		chunk := strings.Repeat("x", 64<<10)
		once := sync.OnceFunc(func() { close(full) })
		timer := time.AfterFunc(time.Second, once)
		defer timer.Stop()
		for r.send(ctx, chunk) == nil {
			timer.Reset(time.Second)
		}
	})
	conn, _ := open(t, g)
	defer conn.Close() //nolint:errcheck // not read
	await.Value(t, full)
	require.Error(t, await.Value(t, g.stopping(100*time.Millisecond)))
}

func TestStartAndStop(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	g.work(echo)
	startstoptest.Stress(t, g.ingress, func() {
		g.url = "http://" + g.ingress.Addr().String()
		require.Equal(t, http.StatusOK, g.chat(chatBody).StatusCode)
	})
	require.Nil(t, g.ingress.Addr())
}

func TestStartRefuses(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, taken.Close()) })
	b := bustest.Start(t)
	log, addr := slog.New(slog.DiscardHandler), taken.Addr().String()
	i, err := ingress.New(ingress.Config{ID: "i", Addr: addr}, b, log, prometheus.NewRegistry())
	require.NoError(t, err)
	require.ErrorContains(t, i.Start(t.Context()), addr)
	require.NoError(t, i.Stop(t.Context()))

	reg := prometheus.NewRegistry()
	for _, cfg := range []ingress.Config{{}, {ID: "i"}, {Addr: addr}, {ID: "i", Addr: addr, MaxBody: -1}, {ID: "i", Addr: addr, MaxConns: -1}, {ID: "i", Addr: addr, StopPause: -1}, {ID: "i", Addr: addr, QueueTimeout: -1}} {
		_, err := ingress.New(cfg, b, log, reg)
		require.Error(t, err)
	}
	_, err = ingress.New(ingress.Config{ID: "i", Addr: addr}, b, log, reg)
	require.NoError(t, err)
	_, err = ingress.New(ingress.Config{ID: "i", Addr: addr}, b, log, reg)
	require.ErrorContains(t, err, "metrics", "two of them can't share a registry")
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	ready := func() (int, string) {
		a := g.do(http.MethodGet, "/readyz", nil)
		return a.StatusCode, a.body
	}
	status, body := ready()
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.JSONEq(t, `{"status":"not ready","reason":"no dispatcher is running"}`, body)
	state, err := g.worker.Bucket(t.Context(), subject.StateBucket)
	require.NoError(t, err)
	_, err = state.Put(t.Context(), dispatcherhealth.Key("d1"), []byte(`{"providers":{}}`))
	require.NoError(t, err)
	await.True(t, func() bool { status, _ := ready(); return status == http.StatusOK })
	require.NoError(t, state.Delete(t.Context(), dispatcherhealth.Key("d1"), 0))
	await.True(t, func() bool { status, _ := ready(); return status != http.StatusOK })
	require.Equal(t, http.StatusOK, g.do(http.MethodGet, "/healthz", nil).StatusCode, "alive all the time")
}

// figures with closed label sets.
func TestMetrics(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	g.work(echo)
	g.chat(chatBody)
	g.chat(streamBody)
	g.chat("{")
	g.do(http.MethodGet, "/surprise", nil)
	text := g.do(http.MethodGet, "/metrics", nil).body
	for _, line := range []string{
		`hydrallm_ingress_requests_total{class="2xx",route="chat"} 2`, `hydrallm_ingress_requests_total{class="4xx",route="chat"} 1`,
		`hydrallm_ingress_requests_total{class="4xx",route="other"} 1`, `hydrallm_ingress_first_byte_seconds_count 2`,
		`gen_ai_server_request_duration_seconds_count{error_type="",gen_ai_operation_name="chat",gen_ai_provider_name="",gen_ai_request_model="other",gen_ai_response_model="other"} 2`,
		`hydrallm_ingress_unfinished_total{reason="gap"} 0`, `hydrallm_ingress_in_flight 0`,
	} {
		require.Contains(t, text, line+"\n")
	}
	require.NotContains(t, text, "surprise")
	require.NotContains(t, text, "hydrallm_ingress_request_body_bytes_total 0\n")
	require.NotContains(t, text, "hydrallm_ingress_response_body_bytes_total 0\n")
}

//
func TestBindIsReported(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		addr string
		keys []string
		warn bool
	}{
		"loopback":                 {"127.0.0.1:0", nil, false},
		"loopback, six":            {"[::1]:0", nil, false},
		"everywhere":               {"0.0.0.0:0", nil, true},
		"everywhere, with a key":   {"0.0.0.0:0", []string{"key"}, false},
		"everywhere, without host": {":0", nil, true},
		"name":                     {"localhost:0", nil, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if conn, err := net.Listen("tcp", tt.addr); err != nil {
				t.Skip("no such address here")
			} else {
				require.NoError(t, conn.Close())
			}
			g := setup(t, func(c *ingress.Config) { c.Addr, c.ClientKeys = tt.addr, tt.keys })
			host, _, err := net.SplitHostPort(tt.addr)
			require.NoError(t, err)
			if host != "" {
				require.Contains(t, g.log.String(), `"[llm-proxy] server: bind" host=`+host+" port=")
			}
			require.Equal(t, tt.warn, strings.Contains(g.log.String(), "level=WARN"))
		})
	}
}

func TestBuild(t *testing.T) {
	t.Parallel()
	gateway := configtest.Parse(t, `
server: {host: 127.0.0.1, port: 8100, client_keys: [k1], admin_key: a, cors_origins: ["https://x"], max_body_bytes: 5, queue_timeout: 3s, debug: true, stop_pause: 4s, max_connections: 6, ping_after: 7s}
providers: [{id: p, url: "http://127.0.0.1:1/v1"}]
upstreams: [{id: u, provider: p, model: x}]
models: [{name: m, upstreams: [u]}, {name: unusable, upstreams: [nowhere]}]
`)
	c := ingress.FromGateway(gateway)
	require.Equal(t, "127.0.0.1:8100", c.Addr)
	require.Equal(t, []string{"k1"}, c.ClientKeys)
	require.Equal(t, "a", c.AdminKey)
	require.Equal(t, []string{"https://x"}, c.CORSOrigins)
	require.Equal(t, 5, c.MaxBody)
	require.Equal(t, 3*time.Second, c.QueueTimeout)
	require.Equal(t, 4*time.Second, c.StopPause)
	require.Equal(t, 6, c.MaxConns)
	require.Equal(t, 7*time.Second, c.PingAfter)
	require.True(t, c.Debug)
	require.Len(t, c.Models, 1, "URL-04b")
	s, err := ingress.Build(process.Parts{
		ID: "ingress-1", Config: gateway, Version: "1", Bus: bustest.Start(t), Log: slog.New(slog.DiscardHandler),
		Metrics: prometheus.NewRegistry(),
	})
	require.NoError(t, err)
	require.NoError(t, s.Stop(t.Context()), "a service that never started can be stopped")
}
