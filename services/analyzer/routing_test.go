package analyzer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus"
	"hydrallm/shared/config"
	"hydrallm/shared/contract"
	"hydrallm/shared/dispatcherhealth"
	"hydrallm/shared/modelindex"
	"hydrallm/shared/openai"
	"hydrallm/shared/subject"
	"hydrallm/shared/telemetry"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/output"
	"hydrallm/shared/testkit/startstoptest"
	"hydrallm/shared/topology"
)

// vendors is a configuration for automatic routing.
func vendors() *config.Config {
	pool := func(id, free string) config.Provider {
		return config.Provider{
			ID: id, Dialect: "openai", Pooled: true, Keys: []config.Key{{Value: config.Secret("key of " + id), Tier: contract.TierUnknown}},
			DefaultModels: config.DefaultModels{Free: free, Premium: free + "-pro"},
		}
	}
	return &config.Config{
		Providers: []config.Provider{pool("gemini", "g"), pool("groq", "q"), pool("cerebras", "c"), {ID: "ollama", Dialect: "ollama"}},
		Routing: config.Routing{
			Priority: []string{"gemini", "groq", "cerebras", "ollama"}, Fast: []string{"groq", "cerebras"}, Large: "gemini", FinalFallback: "ollama",
			MaxTokensFast: 8192,
		},
		Models: []config.Model{{Name: "m", Upstreams: []string{"u"}}},
	}
}

func (x *bundle) ask(t *testing.T, id string, operation contract.Operation, model, body string) {
	t.Helper()
	req := &contract.Request{ID: id, Ingress: "i1", Slip: routed, Operation: operation, Surface: contract.SurfaceChat, Model: model, SessionID: "s1", StartBy: time.Now().Add(time.Minute)}
	if operation == contract.Chat { // as the ingress reads it
		scan, err := openai.ScanRequest([]byte(body))
		require.NoError(t, err)
		req.Traits, req.Web.Search = contract.Traits{Tokens: scan.Tokens, Images: scan.Images, Audio: scan.Audio, Files: scan.Files}, scan.HasSearch
	}
	require.NoError(t, x.bus.PublishWork(t.Context(), req, []byte(body)))
}

// decided asks and gives the decision that reaches the dispatcher.
func (x *bundle) decided(t *testing.T, id, model, body string) contract.Decision {
	t.Helper()
	x.ask(t, id, contract.Chat, model, body)
	w := await.Value(t, x.next)
	require.Equal(t, id, w.Request.ID)
	require.Equal(t, body, string(w.Body), "the body is not touched")
	return *w.Request.Decision
}

// say publishes what a dispatcher knows and waits until the analyzer knows it.
func (x *bundle) say(t *testing.T, dispatcher string, providers map[string]contract.ProviderState) {
	t.Helper()
	bucket, err := x.bus.Bucket(t.Context(), subject.StateBucket)
	require.NoError(t, err)
	data, err := json.Marshal(contract.DispatcherState{ID: dispatcher, Providers: providers})
	require.NoError(t, err)
	_, err = bucket.Put(t.Context(), dispatcherhealth.Key(dispatcher), data)
	require.NoError(t, err)
	await.True(t, func() bool {
		known := x.Running().health.Providers()
		for id := range providers {
			if _, ok := known[id]; !ok {
				return false
			}
		}
		return len(known) == len(providers)
	})
}

func content(text string) string {
	return `{"messages":[{"role":"user","content":"` + text + `"}]}`
}

// Scenario 17, R-080, R-081, R-086: before a dispatcher speaks every key is thought to work; then what it says counts.
func TestAutomaticRouting(t *testing.T) {
	t.Parallel()
	x := setupWith(t, slog.New(slog.DiscardHandler), vendors())
	x.start(t)
	for i, want := range []string{"groq q", "cerebras c", "groq q", "cerebras c"} {
		d := x.decided(t, fmt.Sprint("small", i), "auto", content("hi"))
		require.Equal(t, want, d.Provider+" "+d.Model)
		require.Equal(t, contract.ReasonTokenCount, d.Reason)
	}
	large := content(strings.Repeat("a", 4*8192))
	require.Equal(t, contract.Decision{Provider: "gemini", Model: "g", Reason: contract.ReasonTokenCount, Tokens: 8192}, x.decided(t, "large", "auto", large))

	x.say(t, "a", map[string]contract.ProviderState{"gemini": {Keys: map[string]int{contract.TierPremium: 1}}, "cerebras": {Keys: map[string]int{contract.TierFree: 1}}})
	require.Equal(t, contract.Decision{Provider: "gemini", Model: "g-pro", Reason: contract.ReasonTokenCount, Premium: true, Tokens: 8192}, x.decided(t, "premium", "auto", large))
	for i := range 3 {
		require.Equal(t, "cerebras", x.decided(t, fmt.Sprint("one", i), "auto", content("hi")).Provider)
	}
	image := `{"has_search":true,"messages":[{"role":"user","content":[{"type":"text","text":"what?"},{"type":"image_url","image_url":{"url":"data:,"}}]}]}`
	require.Equal(t, contract.Decision{
		Provider: "gemini", Model: "g-pro", Reason: contract.ReasonImagePresent, Premium: true, Needs: contract.FeatureImages, Search: true, Tokens: 257,
	}, x.decided(t, "image", "auto", image))
	x.awaitCount(t, endRouted, 10)
	require.InDelta(t, 9, testutil.ToFloat64(x.metrics.decisions.WithLabelValues(contract.ReasonTokenCount)), 0)
	require.InDelta(t, 1, testutil.ToFloat64(x.metrics.decisions.WithLabelValues(contract.ReasonImagePresent)), 0)
}

// what discovery finds is known here at once.
func TestDiscoveredModelsAreFound(t *testing.T) {
	t.Parallel()
	x := setupWith(t, slog.New(slog.DiscardHandler), vendors())
	x.start(t)
	listing := modelindex.Listing{Provider: "cerebras", Models: []modelindex.Model{{ID: "Some-Model", Tier: contract.TierFree}, {ID: "vectors", Embedding: true}}}
	require.NoError(t, modelindex.Put(t.Context(), x.bus, listing))
	await.True(t, func() bool { return len(x.Running().modelIndex.Book().Providers("vectors")) == 1 })
	d := x.decided(t, "chat", "some-model", content("hi"))
	require.Equal(t, contract.Decision{Provider: "cerebras", Model: "Some-Model", Reason: contract.ReasonModelHint, PinModel: true, Tokens: 1}, d)

	x.ask(t, "embeddings", contract.Embeddings, "vectors", `{"input":"hi"}`)
	require.Equal(t, &contract.Decision{Provider: "cerebras", Model: "vectors", Reason: contract.ReasonModelHint, PinModel: true}, await.Value(t, x.next).Request.Decision)
	x.ask(t, "refused", contract.Embeddings, "auto", `{"input":"hi"}`)
	require.JSONEq(t, `{"status":404,"header":[["Content-Type","application/json"]]}`, string(await.Value(t, x.frames).Payload))
	require.Contains(t, string(await.Value(t, x.frames).Payload), "vectors of different models")
	x.awaitCount(t, endUnknown, 1)
}

// a body that travels beside its message stays as it is.
func TestLargeBodies(t *testing.T) {
	t.Parallel()
	x := setupWith(t, slog.New(slog.DiscardHandler), vendors())
	x.start(t)
	body := `{"messages":[{"role":"user","content":[{"type":"text","text":"ab"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("A", 9<<20) + `"}}]}]}`
	d := x.decided(t, "r1", "groq/auto", body)
	require.Equal(t, contract.Decision{Provider: "groq", Model: "q", Reason: contract.ReasonModelHint, PinProvider: true, Needs: contract.FeatureImages, Tokens: 257}, d)
}

// Automatic routing with nothing to call is answered, not queued.
func TestNothingToRouteTo(t *testing.T) {
	t.Parallel()
	x := setup(t)
	x.start(t)
	x.ask(t, "r1", contract.Chat, "auto", content("hi"))
	require.JSONEq(t, `{"status":503,"header":[["Content-Type","application/json"]]}`, string(await.Value(t, x.frames).Payload))
	data := string(await.Value(t, x.frames).Payload)
	require.Contains(t, data, "No provider is configured")
	require.Contains(t, data, "detail")
	x.awaitCount(t, endNoProvider, 1)
	require.Empty(t, x.next)
}

// The event ROUTING: one fact for each decision, and a line for each that is not about a configured model; neither holds the body (R-370, R-371,
//
func TestDecisionsAreRecorded(t *testing.T) {
	t.Parallel()
	var out output.Buffer
	log, closeLog, err := telemetry.NewLogger(telemetry.LogConfig{Level: "info", Format: "json"}, &out)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, closeLog()) })
	x := setupWith(t, log, vendors())
	x.start(t)
	x.decided(t, "r1", "m", content("a secret"))
	x.decided(t, "r2", "groq/a\x1b[2J b", content("a secret"))
	x.decided(t, "r3", "ollama", content("a secret"))

	facts := make(chan contract.Log, 8)
	c, err := x.bus.ConsumeFacts(t.Context(), bus.FactsConfig{Consumer: topology.SessionWriter, MaxBatch: 1, MaxWait: time.Millisecond},
		func(_ context.Context, batch []bus.Fact) error {
			for _, f := range batch {
				for line := range bytes.Lines(f.Data) {
					var l contract.Log
					if err := json.Unmarshal(line, &l); err != nil {
						t.Error(err)
					}
					facts <- l
				}
			}
			return nil
		})
	require.NoError(t, err)
	t.Cleanup(func() { startstoptest.Stop(t, c) })
	got := map[string]contract.Log{}
	for range 3 {
		l := await.Value(t, facts)
		got[l.RequestID] = l
	}
	require.Equal(t, "m goes to the upstreams of m: USER_HINT, about 2 tokens", got["r1"].Message)
	require.JSONEq(t, `{"session_id":"s1","model":"groq/a\ufffd[2J b","provider":"groq","target_model":"a\ufffd[2J b","reason":"model_hint","strict":true,"tokens":2}`,
		string(got["r2"].Metadata))
	require.Equal(t, "ollama goes to ollama: USER_HINT, about 2 tokens", got["r3"].Message)
	x.awaitCount(t, endRouted, 3)
	require.NotContains(t, out.String(), "secret")
	var events []map[string]any
	for line := range strings.Lines(out.String()) {
		var l map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &l))
		delete(l, "time")
		if l["msg"] == telemetry.EventPrefix+"routing" {
			events = append(events, l)
		}
	}
	require.ElementsMatch(t, []map[string]any{
		{
			"level": "INFO", "msg": "[llm-proxy] routing", "rid": "r2", "model": "groq/a\uFFFD[2J b", "provider": "groq", "target": "a\uFFFD[2J b",
			"reason": "model_hint", "tokens": 2.0,
		},
		{"level": "INFO", "msg": "[llm-proxy] routing", "rid": "r3", "model": "ollama", "agent": "ollama", "target": "", "reason": "model_hint", "tokens": 2.0},
	}, events)
	require.InDelta(t, 0, testutil.ToFloat64(x.metrics.unrecorded), 0)
}

// A service is stopped as often as anybody likes, also while it is being stopped.
func TestStopMayComeTwice(t *testing.T) {
	t.Parallel()
	x := setupWith(t, slog.New(slog.DiscardHandler), vendors())
	require.NoError(t, x.Start(t.Context()))
	x.decided(t, "r1", "auto", content("hi"))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := x.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// A start that fails leaves nothing behind.
func TestStartThatFails(t *testing.T) {
	t.Parallel()
	x := setupWith(t, slog.New(slog.DiscardHandler), vendors())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, x.Start(ctx), context.Canceled)
	x.start(t)
	x.decided(t, "r1", "auto", content("hi"))
}

// the analyzer leaves the enricher out where nothing is to be added: for an alias of a configured model, which is transparent unless the
// client asks for the web. It adds no stage.
func TestSlipIsShortened(t *testing.T) {
	t.Parallel()
	cfg := vendors()
	cfg.Routing.Aliases = map[string]string{"alias": "m", "my-alias": "m"}
	x := setupWith(t, slog.New(slog.DiscardHandler), cfg)
	x.start(t)
	enricher := make(chan *bus.Work, 8)
	x.consume(t, topology.Enricher, func(_ context.Context, w *bus.Work) {
		w.Done()
		enricher <- w
	})
	ask := func(model string, web contract.Web, slip contract.Slip) {
		req := &contract.Request{ID: model + string(slip.Here()), Ingress: "i1", Slip: slip, Operation: contract.Chat, Surface: contract.SurfaceChat, Model: model, Web: web, StartBy: time.Now().Add(time.Minute)}
		require.NoError(t, x.bus.PublishWork(t.Context(), req, []byte(content("hi"))))
	}
	long := contract.Slip{contract.StageReceived, contract.StageAnalyzed, contract.StageEnriched}
	short := contract.Slip{contract.StageEnriched}
	ask("alias", contract.Web{}, long)
	require.Equal(t, short, await.Value(t, x.next).Request.Slip)
	ask("groq/x", contract.Web{}, routed)
	require.Equal(t, short, await.Value(t, x.next).Request.Slip)
	ask("groq/y", contract.Web{}, long)
	require.Equal(t, long[1:], await.Value(t, enricher).Request.Slip)
	ask("my-alias", contract.Web{Search: true}, long)
	w := await.Value(t, enricher)
	require.True(t, w.Request.Decision.Configured)
	require.Equal(t, long[1:], w.Request.Slip)
}
