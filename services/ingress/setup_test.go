package ingress_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"hydrallm/services/ingress"
	"hydrallm/shared/bus"
	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/contract"
	"hydrallm/shared/query"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/testkit/output"
	"hydrallm/shared/topology"
)

// fasthttp keeps the text of the Date header in a goroutine for the life of the process.
func TestMain(m *testing.M) {
	if url := os.Getenv(enricherEnv); url != "" {
		runEnricher(url)
		return
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
}

const testWait = await.Limit

// gateway is an ingress on a real NATS server, with a bus for the workers of the test.
type gateway struct {
	t       testing.TB
	ingress *ingress.Ingress
	nats    bus.InProcess
	worker  *bus.Bus
	url     string
	addr    string
	log     *output.Buffer
	metrics *prometheus.Registry
	client  *http.Client
}

// setup starts an ingress; change may alter its configuration.
func setup(tb testing.TB, change func(*ingress.Config)) *gateway {
	tb.Helper()
	return setupOn(tb, natstest.Start(tb), change)
}

func setupOn(tb testing.TB, server bus.InProcess, change func(*ingress.Config)) *gateway {
	tb.Helper()
	g := setupBetween(tb, bustest.Connect(tb, server), bustest.Connect(tb, server), change)
	g.nats = server
	return g
}

// setupBetween starts an ingress on a bus, whose workers are on another one.
func setupBetween(tb testing.TB, front, worker *bus.Bus, change func(*ingress.Config)) *gateway {
	tb.Helper()
	g := &gateway{t: tb, log: &output.Buffer{}, worker: worker, metrics: prometheus.NewRegistry()}
	cfg := ingress.Config{ID: "ingress-test", Addr: "127.0.0.1:0", QueueTimeout: testWait, Gatherer: g.metrics, Version: "1.2.3"}
	if change != nil {
		change(&cfg)
	}
	level := slog.LevelDebug
	if _, bench := tb.(*testing.B); bench {
		level = slog.LevelInfo // as in production
	}
	log := slog.New(slog.NewTextHandler(g.log, &slog.HandlerOptions{Level: level}))
	var err error
	g.ingress, err = ingress.New(cfg, front, log, g.metrics)
	require.NoError(tb, err)
	require.NoError(tb, g.ingress.Start(tb.Context()))
	tb.Cleanup(g.stop)
	g.addr = g.ingress.Addr().String()
	g.url = "http://" + g.addr
	transport := &http.Transport{DisableCompression: true}
	g.client = &http.Client{Transport: transport}
	tb.Cleanup(transport.CloseIdleConnections)
	return g
}

func (g *gateway) stop() {
	g.t.Helper()
	if g.t.Failed() {
		g.t.Logf("log of the ingress:\n%s", g.log.String()) // it names the causes that clients don't see
	}
	ctx, cancel := context.WithTimeout(context.Background(), testWait)
	defer cancel()
	require.NoError(g.t, g.ingress.Stop(ctx))
}

// reply is the worker's side of one delivery.
type reply struct {
	*bus.Reply
	work *bus.Work
	gone <-chan struct{} // closed when the request is cancelled
}

// work answers requests with handler, the way a dispatcher does; those that need a decision, because they are first there.
func (g *gateway) work(handler func(ctx context.Context, r *reply)) {
	g.t.Helper()
	g.answer(topology.Analyzer, handler)
}

// answer answers the requests that come to a stage.
func (g *gateway) answer(consumer string, handler func(ctx context.Context, r *reply)) {
	g.t.Helper()
	g.consume(bus.WorkConfig{Consumer: consumer}, func(ctx context.Context, w *bus.Work) {
		r := &reply{Reply: w.OpenReply(), work: w, gone: ctx.Done()}
		defer r.Close()
		handler(ctx, r)
		w.Done()
	})
}

// consume runs a stage until the end of the test.
func (g *gateway) consume(cfg bus.WorkConfig, handler func(ctx context.Context, w *bus.Work)) {
	g.t.Helper()
	cfg.MaxInFlight = 64
	c, err := g.worker.ConsumeWork(g.t.Context(), cfg, handler)
	require.NoError(g.t, err)
	g.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testWait)
		defer cancel()
		require.NoError(g.t, c.Stop(ctx))
	})
}

// answers has the worker answer the queries of a service.
func (g *gateway) answers(service string, handlers query.Handlers) {
	g.t.Helper()
	s, err := g.worker.Serve(g.t.Context(), bus.QueryConfig{Service: service, Instance: "worker", Handlers: handlers})
	require.NoError(g.t, err)
	g.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testWait)
		defer cancel()
		require.NoError(g.t, s.Stop(ctx))
	})
}

func (r *reply) head(contentType string) error {
	return r.Head(contract.Head{Status: http.StatusOK, Header: [][2]string{{"Content-Type", contentType}, {"X-Gateway-Model", "up"}}})
}

// send sends data at once.
func (r *reply) send(ctx context.Context, text string) error {
	if err := r.Data(ctx, []byte(text)); err != nil {
		return err
	}
	return r.Flush()
}

func (r *reply) end() error {
	if err := r.End(contract.End{Outcome: contract.OutcomeSuccess}); err != nil {
		return err
	}
	return r.Flush()
}

const (
	answerJSON = `{"id":"c1","object":"chat.completion","choices":[]}`
	chatBody   = `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	streamBody = `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`
)

// echo answers every request: streams with three events, others with JSON.
func echo(ctx context.Context, r *reply) {
	if !r.work.Request.Stream {
		_ = r.head("application/json")
		_ = r.Data(ctx, []byte(answerJSON))
		_ = r.end()
		return
	}
	_ = r.head("text/event-stream")
	for _, text := range []string{"data: one\n\n", "data: two\n\n", "data: [DONE]\n\n"} {
		_ = r.send(ctx, text)
	}
	_ = r.end()
}

type answer struct {
	*http.Response
	body string
}

// try sends a request and reads the whole answer. header is a list of names and values.
func (g *gateway) try(ctx context.Context, method, path string, body io.Reader, header ...string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, g.url+path, body)
	if err != nil {
		return answer{}, err
	}
	for pair := range slices.Chunk(header, 2) {
		req.Header.Set(pair[0], pair[1])
	}
	resp, err := g.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	text, err := io.ReadAll(resp.Body)
	return answer{resp, string(text)}, errors.Join(err, resp.Body.Close())
}

// readAnswer reads the next answer of a connection.
func readAnswer(in *bufio.Reader) (answer, error) {
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		return answer{}, err
	}
	text, err := io.ReadAll(resp.Body)
	return answer{resp, string(text)}, errors.Join(err, resp.Body.Close())
}

func (g *gateway) do(method, path string, body io.Reader, header ...string) answer {
	g.t.Helper()
	a, err := g.try(g.t.Context(), method, path, body, header...)
	require.NoError(g.t, err)
	return a
}

func (g *gateway) chat(body string, header ...string) answer {
	g.t.Helper()
	return g.do(http.MethodPost, "/v1/chat/completions", strings.NewReader(body), header...)
}

// noting is echo that notes the ids of requests.
func noting(rids chan<- string) func(context.Context, *reply) {
	return func(ctx context.Context, r *reply) {
		rids <- r.work.Request.ID
		echo(ctx, r)
	}
}
