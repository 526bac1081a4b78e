package execute_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/breaker"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/execute"
	"hydrallm/services/dispatcher/internal/pipenet"
	"hydrallm/services/dispatcher/internal/slot"
	"hydrallm/services/dispatcher/internal/surface"
	"hydrallm/services/dispatcher/internal/surface/chat"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
	"hydrallm/shared/telemetry"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// world is an executor with upstreams in memory; run it in a synctest bubble for its time to be fake.
type world struct {
	t        *testing.T
	net      *pipenet.Network
	exec     *execute.Executor
	plan     planner
	slots    *slot.Local
	ledger   ledger
	breakers *breaker.Set
	client   *upstream.Client
	log      bytes.Buffer
	stops    []func()

	mu    sync.Mutex
	calls map[string]int
	gone  map[string]int
}

// handler answers one call; n counts the calls of this upstream from 1.
type handler func(w http.ResponseWriter, r *http.Request, n int)

// setup makes channels with the ids of upstreams, all in one chain called m in the order of their names.
func setup(t *testing.T, upstreams map[string]handler, adjust ...func(*execute.Channel)) *world {
	t.Helper()
	w := &world{t: t, net: pipenet.New(), slots: &slot.Local{}, calls: map[string]int{}, gone: map[string]int{}}
	w.client = upstream.New(upstream.Config{Dial: w.net.Dial})
	var links []execute.Link
	presets := map[string]breaker.Config{}
	for _, id := range []string{"a", "b", "c", "d"} {
		h, ok := upstreams[id]
		if !ok {
			continue
		}
		w.stops = append(w.stops, w.net.Serve(id, w.count(id, h)))
		c := &execute.Channel{
			ID: id, Circuit: id, Provider: "p" + id, URL: "http://" + id + "/v1", Key: "key-of-" + id, Dialect: dialect.OpenAI{Client: w.client},
			HeadersTimeout: 240 * time.Second, RequestTimeout: 300 * time.Second,
		}
		for _, fn := range adjust {
			fn(c)
		}
		links = append(links, execute.Link{Channel: c, Model: "real-" + id})
		presets[id] = breaker.Config{Failures: 3, Window: 300 * time.Second, OpenFor: 60 * time.Second}
	}
	var err error
	w.breakers, err = breaker.NewSet(presets, nil)
	require.NoError(t, err)
	log, _, err := telemetry.NewLogger(telemetry.LogConfig{Level: "info", Format: "text"}, &w.log)
	require.NoError(t, err)
	w.plan.chain = execute.NewChain(links)
	w.exec = &execute.Executor{
		Surfaces: map[contract.Surface]surface.Surface{contract.SurfaceChat: chat.Surface{}}, Planner: &w.plan, Breakers: permits{w.breakers}, Slots: w.slots, Ledger: &w.ledger,
		Limits: execute.Limits{MaxHops: 3, MaxRetries: 3, GateTimeout: 30 * time.Second}, Secrets: strings.NewReplacer("key-of-a", "[key]"), Log: log,
		Metrics: execute.NewMetrics(prometheus.NewRegistry(), func(string, string) bool { return true }), Health: &execute.Health{},
	}
	return w
}

// close ends everything, so that nothing is left of the world.
func (w *world) close() {
	w.client.Close()
	for _, stop := range w.stops {
		stop()
	}
}

func (w *world) count(id string, h handler) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		w.mu.Lock()
		w.calls[id]++
		n := w.calls[id]
		w.mu.Unlock()
		h(rw, r, n)
		if r.Context().Err() != nil {
			w.mu.Lock()
			w.gone[id]++
			w.mu.Unlock()
		}
	}
}

func (w *world) called(id string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[id]
}

func (w *world) idle() {
	w.t.Helper()
	for _, u := range w.slots.Active() {
		require.Zero(w.t, u.Active, u.ID)
	}
}

// planner has one chain for every decision.
type planner struct {
	chain   *execute.Chain
	absent  []string // models that were reported to be missing, as provider/model
	refuses []string // providers that were reported to refuse what the gateway adds
	lacks   []string // and to lack features, as provider/model features
	models  []string // of the first link, one for each time it is planned; then its own
}

func (p *planner) Plan(*contract.Decision, bool) (*execute.Chain, error) {
	if len(p.models) == 0 {
		return p.chain, nil
	}
	links := slices.Clone(p.chain.Links)
	links[0].Model, p.models = p.models[0], p.models[1:]
	return execute.NewChain(links), nil
}

func (p *planner) Absent(provider, model string) { p.absent = append(p.absent, provider+"/"+model) }

func (p *planner) Lacks(provider, model string, needs contract.Features) {
	p.lacks = append(p.lacks, fmt.Sprint(provider, "/", model, " ", needs))
}

func (p *planner) Refuses(provider string) { p.refuses = append(p.refuses, provider) }

type permits struct{ set *breaker.Set }

func (p permits) Ready(id string) bool { return p.set.Get(id).Ready() }

func (p permits) Acquire(id string) (execute.Permit, bool) {
	permit, ok := p.set.Get(id).Acquire()
	return &permit, ok
}

func (p permits) OpenFor(id string) time.Duration { return p.set.Get(id).Snapshot().Remaining }

// ledger keeps what is told of calls before they are made.
type ledger struct {
	mu    sync.Mutex
	facts []contract.RequestRecord
}

func (l *ledger) Begin(_ context.Context, r contract.RequestRecord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.facts = append(l.facts, r)
}

// answer is what a client gets.
type answer struct {
	mu     sync.Mutex
	head   *contract.Head
	headAt time.Time
	body   strings.Builder
	end    *contract.End
}

func (a *answer) Head(h contract.Head) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.head != nil {
		return errors.New("a second head")
	}
	a.head, a.headAt = &h, time.Now()
	return nil
}

func (a *answer) Data(_ context.Context, p []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.head == nil || a.end != nil {
		return errors.New("data out of place")
	}
	a.body.Write(p)
	return nil
}

func (a *answer) End(e contract.End) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.head == nil || a.end != nil {
		return errors.New("end out of place")
	}
	a.end = &e
	return nil
}

func (a *answer) Flush() error { return nil }

func (a *answer) text() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.body.String()
}

func (a *answer) header(name string) string {
	for _, h := range a.head.Header {
		if h[0] == name {
			return h[1]
		}
	}
	return ""
}

const (
	plainBody  = `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	streamBody = `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`
)

// run executes a request to its end.
func (w *world) run(ctx context.Context, body string) (*answer, execute.Outcome) {
	var a answer
	out := w.exec.Run(ctx, job(body), &a)
	return &a, out
}

func job(body string) execute.Job {
	req, err := openai.ScanRequest([]byte(body))
	if err != nil {
		panic(err)
	}
	return execute.Job{Body: []byte(body), Request: &contract.Request{
		ID: "r1", Model: req.Model, Stream: req.Stream, ReceivedAt: time.Now(), Operation: contract.Chat, Surface: contract.SurfaceChat,
		Decision: &contract.Decision{Model: "m", PinProvider: true, Configured: true, Reason: contract.ReasonModelHint},
	}}
}

// background starts a streamed request and gives its answer, and what waits for its end.
func (w *world) background(ctx context.Context) (*answer, func() execute.Outcome) {
	var a answer
	done := make(chan execute.Outcome, 1)
	go func() { done <- w.exec.Run(ctx, job(streamBody), &a) }()
	return &a, func() execute.Outcome { return <-done }
}

// Answers of upstreams.

func status(code int, body string) handler {
	return func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

func reply(text string) handler {
	return func(w http.ResponseWriter, r *http.Request, n int) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte(`"stream":true`)) {
			events(delta(`{"content":"`+text+`"}`), stop, doneEvent)(w, r, n)
			return
		}
		status(http.StatusOK, `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"`+
			text+`"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`)(w, r, n)
	}
}

// pause is a step of events that waits, or until the client leaves.
func pause(d time.Duration) string { return "pause " + d.String() }

func events(steps ...string) handler {
	return func(w http.ResponseWriter, r *http.Request, _ int) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		flush := http.NewResponseController(w).Flush
		_ = flush()
		for _, s := range steps {
			if wait, ok := strings.CutPrefix(s, "pause "); ok {
				d, err := time.ParseDuration(wait)
				if err != nil {
					panic(err)
				}
				select {
				case <-time.After(d):
				case <-r.Context().Done():
					return
				}
				continue
			}
			_, _ = io.WriteString(w, s)
			_ = flush()
		}
	}
}

func hang(_ http.ResponseWriter, r *http.Request, _ int) { <-r.Context().Done() }

// inTurn answers the calls of an upstream one after the other; the last handler repeats.
func inTurn(hs ...handler) handler {
	return func(w http.ResponseWriter, r *http.Request, n int) { hs[min(n, len(hs))-1](w, r, n) }
}

func delta(d string) string {
	return `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` + d + `,"finish_reason":null}]}` + "\n\n"
}

const (
	stop      = `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	doneEvent = "data: [DONE]\n\n"
	errorLine = `data: {"error":{"message":"engine died with key-of-a"}}` + "\n\n"
)

// single lets a channel make one call at a time.
func single(id string) func(*execute.Channel) {
	return func(c *execute.Channel) {
		if c.ID == id {
			c.Limit = 1
		}
	}
}
