package quotasim_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/breaker"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/execute"
	"hydrallm/services/dispatcher/internal/keypool"
	"hydrallm/services/dispatcher/internal/pipenet"
	"hydrallm/services/dispatcher/internal/plan"
	"hydrallm/services/dispatcher/internal/slot"
	"hydrallm/services/dispatcher/internal/surface"
	"hydrallm/services/dispatcher/internal/surface/chat"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/config"
	"hydrallm/shared/config/configtest"
	"hydrallm/shared/contract"
	"hydrallm/shared/modelindex"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const (
	requests = 20_000
	perKey   = 5 // keys of each provider
)

// world is a dispatcher without its bus, and the providers that it calls.
type world struct {
	net       *pipenet.Network
	providers map[string]*provider
	local     atomic.Int64 // calls of the local model
	localDown atomic.Bool
	exec      *execute.Executor
	pools     map[string]*keypool.Pool
	breakers  *breaker.Set
	client    *upstream.Client
	stops     []func()
}

func configuration() string {
	var b strings.Builder
	b.WriteString("providers:\n")
	for _, id := range []string{"gemini", "groq", "cerebras"} {
		fmt.Fprintf(&b, "  - {id: %s, url: 'http://%s/v1', default_models: {free: model-of-%s}, keys: [", id, id, id)
		for i := range perKey {
			fmt.Fprintf(&b, "%s-key-%d, ", id, i)
		}
		b.WriteString("]}\n")
	}
	b.WriteString("  - {id: ollama, dialect: openai, url: 'http://ollama/v1', default_models: {free: llama3}}\n")
	return b.String()
}

func setup(t *testing.T) *world {
	t.Helper()
	cfg := configtest.Parse(t, configuration())
	w := &world{net: pipenet.New(), providers: map[string]*provider{}, pools: map[string]*keypool.Pool{}}
	w.client = upstream.New(upstream.Config{Dial: w.net.Dial})
	preset := cfg.Resilience.ProviderBreaker
	circuits := map[string]breaker.Config{}
	for _, p := range cfg.Providers {
		circuits[plan.ProviderCircuit(p.ID)] = breaker.Config{Consecutive: preset.Consecutive, OpenFor: preset.OpenFor, HalfOpen: preset.HalfOpen}
		if !p.Pooled {
			continue
		}
		w.providers[p.ID] = newProvider(p.ID)
		w.stops = append(w.stops, w.net.Serve(p.ID, w.providers[p.ID]))
		var keys []keypool.Key
		for _, k := range p.Keys {
			keys = append(keys, keypool.Key{Value: k.Value.Reveal(), Tier: k.Tier})
		}
		c := cfg.Resilience.Cooldowns
		w.pools[p.ID] = keypool.New(keys, keypool.Cooldowns{Forbidden: c.Forbidden, Quota: c.Quota, Other: c.Other, Max: c.Max}, nil)
	}
	w.stops = append(w.stops, w.net.Serve("ollama", http.HandlerFunc(w.serveLocal)))
	var err error
	w.breakers, err = breaker.NewSet(circuits, nil)
	require.NoError(t, err)
	planner, err := plan.New(plan.Config{
		Gateway: cfg, Pools: w.pools, Book: func() *modelindex.Book { return modelindex.NewBook() },
		Dialect: func(config.Provider, bool) dialect.Dialect { return dialect.OpenAI{Client: w.client} },
	})
	require.NoError(t, err)
	r := cfg.Resilience
	w.exec = &execute.Executor{
		Surfaces: map[contract.Surface]surface.Surface{contract.SurfaceChat: chat.Surface{}}, Planner: planner, Breakers: permits{w.breakers}, Slots: &slot.Local{}, Ledger: noLedger{}, Secrets: strings.NewReplacer(), Log: slog.New(slog.DiscardHandler),
		Metrics: execute.NewMetrics(prometheus.NewRegistry(), func(string, string) bool { return true }), Health: &execute.Health{},
		Limits: execute.Limits{MaxHops: r.MaxHops, MaxRetries: r.MaxRetries, GateTimeout: r.GateTimeout},
	}
	return w
}

// noLedger forgets what begins.
type noLedger struct{}

func (noLedger) Begin(context.Context, contract.RequestRecord) {}

func (w *world) close() {
	w.client.Close()
	for _, stop := range w.stops {
		stop()
	}
}

func (w *world) serveLocal(rw http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.local.Add(1)
	if w.localDown.Load() {
		http.Error(rw, "{}", http.StatusInternalServerError)
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(rw, `{"id":"c","object":"chat.completion","created":1,"model":"x","choices":[{"index":0,"message":{"role":"assistant",`+
		`"content":"from local"},"finish_reason":"stop"}]}`)
}

type permits struct{ set *breaker.Set }

func (p permits) Ready(id string) bool { return p.set.Get(id).Ready() }

func (p permits) Acquire(id string) (execute.Permit, bool) {
	permit, ok := p.set.Get(id).Acquire()
	return &permit, ok
}

func (p permits) OpenFor(id string) time.Duration { return p.set.Get(id).Snapshot().Remaining }

// free says whether a provider may be called now.
func (w *world) free(id string) bool {
	return w.breakers.Get(plan.ProviderCircuit(id)).Ready() && w.pools[id].Usable("model-of-"+id, keypool.AnyKey, nil)
}

// decide does what routing does: small requests go in turn to the fast providers that can be called, large ones to the large provider.
func (w *world) decide(n int, large bool) *contract.Decision {
	d := &contract.Decision{Provider: "gemini", Reason: contract.ReasonTokenCount}
	if !large {
		fast := slices.DeleteFunc([]string{"groq", "cerebras"}, func(id string) bool { return !w.free(id) })
		if len(fast) > 0 {
			d.Provider = fast[n%len(fast)]
		}
	}
	d.Model = "model-of-" + d.Provider
	return d
}

// sink takes the status of an answer.
type sink struct{ status int }

func (s *sink) Head(h contract.Head) error       { s.status = h.Status; return nil }
func (*sink) Data(context.Context, []byte) error { return nil }
func (*sink) End(contract.End) error             { return nil }
func (*sink) Flush() error                       { return nil }

func (w *world) ask(n int, rng *rand.Rand) func() int {
	large := rng.IntN(100) == 0
	words := rng.IntN(2000)
	if large {
		words = 10_000
	}
	body := `{"model":"auto","messages":[{"role":"user","content":"` + strings.Repeat("word ", words) + `?"}]}`
	d := w.decide(n, large)
	return func() int {
		var s sink
		w.exec.Run(context.Background(), execute.Job{Body: []byte(body), Request: &contract.Request{
			ID: fmt.Sprint("r", n), Model: "auto", Operation: contract.Chat, Surface: contract.SurfaceChat, ReceivedAt: time.Now(), Decision: d,
		}}, &s)
		return s.status
	}
}

// A day of requests whose number goes up and down, with an hour in which a provider is broken: nobody is refused while there is a key or the local model, no key is called before the
// wait is over that its provider asked for, and the keys of a provider share the load.
func TestDay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := setup(t)
		defer w.close()
		rng := rand.New(rand.NewPCG(1, 2))
		var failed atomic.Int64
		var asking sync.WaitGroup
		start := time.Now()
		for n := range requests {
			since := time.Since(start)
			w.providers["cerebras"].down.Store(since > 6*time.Hour && since < 7*time.Hour)
			gap := rng.ExpFloat64() * float64(24*time.Hour) / requests
			if n%100 < 30 {
				gap /= 200 // a burst
			} else {
				gap *= 1.4
			}
			time.Sleep(time.Duration(gap)) //nolint:forbidigo // fake time
			run := w.ask(n, rng)
			asking.Go(func() {
				if run() != http.StatusOK {
					failed.Add(1)
				}
			})
		}
		asking.Wait()
		t.Logf("%d requests in %s: local %d, failed %d", requests, time.Since(start), w.local.Load(), failed.Load())
		require.Zero(t, failed.Load())
		for id, p := range w.providers {
			var served []int
			refused, total := 0, 0
			for _, a := range p.keys {
				served = append(served, a.served)
				refused += a.refused
				total += a.served
			}
			t.Logf("%s: served by key %v, refused %d", id, served, refused)
			require.Empty(t, p.early, id)
			require.Len(t, served, perKey, id)
			for _, n := range served {
				require.InEpsilon(t, float64(total)/perKey, n, 0.1, id)
			}
		}
	})
}
