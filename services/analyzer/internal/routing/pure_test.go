package routing_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/analyzer/internal/routing"
	"hydrallm/shared/config"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/modelindex"
)

var (
	someIDs = []string{
		"gemini", "groq", "cerebras", "ollama", "opencode", "openclaw", "mistral", "Router", "router", "team/eu", "local-agent", "auto", "ü",
	}
	someModels = []string{"llama3", "Llama3", "gemini-2.5-pro", "groq/compound", "embed", "vision:7b", "x"}
	tiers      = []string{contract.TierFree, contract.TierPremium, contract.TierUnknown}
	dialects   = []string{"openai", "gemini", "ollama", "anthropic"}
)

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

func some(r *rand.Rand, list []string) []string {
	list = slices.Clone(list)
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:r.IntN(len(list)+1)]
}

// anyWorld makes a configuration with a state and a model index from a seed.
func anyWorld(seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 1))
	w := &world{}
	var listings []modelindex.Listing
	w.state.Providers = map[string]contract.ProviderState{}
	for _, id := range some(r, someIDs) {
		w.cfg.Providers = append(w.cfg.Providers, config.Provider{
			ID: id, Dialect: pick(r, dialects), DefaultModels: config.DefaultModels{Free: pick(r, []string{"", "free"}), Premium: pick(r, []string{"", "premium"})},
		})
		switch r.IntN(4) {
		case 0:
		case 1:
			w.set(contract.ProviderState{Keys: map[string]int{contract.TierFree: 1}, Open: true}, id)
		default:
			w.set(contract.ProviderState{Keys: map[string]int{pick(r, tiers): r.IntN(2)}}, id)
		}
		if r.IntN(2) == 0 {
			l := modelindex.Listing{Provider: id}
			for _, m := range some(r, someModels) {
				l.Models = append(l.Models, modelindex.Model{ID: m, Tier: pick(r, tiers), Can: contract.Features(r.IntN(32)), Cannot: contract.Features(r.IntN(32)), Embedding: m == "embed"})
			}
			listings = append(listings, l)
		}
	}
	w.state.Book = modelindex.NewBook(listings...)
	w.cfg.Models = []config.Model{{Name: "my-gpt", Upstreams: []string{"u"}}}
	w.cfg.Routing = config.Routing{
		Priority: some(r, someIDs), MaxTokensFast: 100, Fast: some(r, someIDs), Large: pick(r, someIDs), FinalFallback: pick(r, someIDs),
		Aliases: map[string]string{"gpt-4": pick(r, []string{"gemini-2.5-pro", "auto", "my-gpt", "groq/x", "gpt-4"}), "GPT-4": "mistral/y"},
	}
	return w
}

var someNames = []string{
	"auto", " AUTO ", "", "default", "my-gpt", "gpt-4", "Gpt-4", "groq", "groq/auto", "gemini/", "LOCAL-AGENT/OLLAMA/llama3", "local-agent//", "team/eu/m",
	"openclaw/a/b", "llama3", "LLAMA3", "groq/compound", "embed", "vision:7b", "mistral-large", "ollama-x", "phi", "none", "a/b/c", "\x00", "\xff/\xff", "ü-x", "İ/İ",
	strings.Repeat("/", 512), "router/auto", "Router/auto",
}

// checkDecision holds a decision, or a refusal, against what is true of all of them.
func checkDecision(t *testing.T, w *world, q routing.Question, d contract.Decision, err error) {
	t.Helper()
	if err != nil {
		f := fault.From(err)
		require.Contains(t, []fault.Kind{fault.ModelNotFound, fault.Failed}, f.Kind)
		requireClean(t, f.Message)
		require.Equal(t, contract.Decision{}, d)
		return
	}
	require.Contains(t, []string{
		contract.ReasonModelHint, contract.ReasonTokenCount, contract.ReasonImagePresent, contract.ReasonKeyAvailability,
	}, d.Reason)
	if d.Configured {
		require.Equal(t, "my-gpt", d.Model)
		require.Empty(t, d.Provider+d.Agent)
		require.True(t, d.PinProvider && d.PinModel)
		return
	}
	require.NotEqual(t, d.Provider == "", d.Agent == "", "one of them: %s", show(d))
	i := slices.IndexFunc(w.cfg.Providers, func(p config.Provider) bool { return p.ID == d.Provider+d.Agent })
	require.GreaterOrEqual(t, i, 0, "it is configured")
	p := w.cfg.Providers[i]
	agent := slices.Contains([]string{"ollama", "opencode", "openclaw"}, p.ID) || p.Dialect == "ollama"
	require.Equal(t, agent, d.Agent != "")
	require.Equal(t, [...]any{q.Needs, q.Search, q.Tokens}, [...]any{d.Needs, d.Search, d.Tokens})
	if d.PinModel {
		require.NotEmpty(t, d.Model)
		require.Equal(t, contract.ReasonModelHint, d.Reason)
	}
	if d.PinProvider {
		first, _, slash := strings.Cut(strings.ToLower(strings.TrimSpace(q.Model)), "/")
		require.True(t, slash && (first == "local-agent" || strings.HasPrefix(strings.ToLower(p.ID), first)), "%q: %s", q.Model, show(d))
	}
	if slices.Contains([]string{"", "auto", "default", "mllm/auto"}, strings.ToLower(strings.TrimSpace(q.Model))) {
		require.False(t, d.PinModel || d.PinProvider || d.Reason == contract.ReasonModelHint, show(d))
	}
	if q.Operation == contract.Embeddings {
		require.True(t, d.PinModel)
	}
}

// the same question over the same data gives the same decision, and every decision is one that the dispatcher can follow.
func FuzzDecide(f *testing.F) {
	for i, name := range someNames {
		f.Add(uint64(i), name, int64(i*20), i%2 == 0, i%3 == 0)
	}
	f.Fuzz(func(t *testing.T, seed uint64, model string, tokens int64, images, embeddings bool) {
		checkPure(t, seed, routing.Question{Operation: operation(embeddings), Model: model, Tokens: tokens, Needs: needs(images), Search: images})
	})
}

func operation(embeddings bool) contract.Operation {
	if embeddings {
		return contract.Embeddings
	}
	return contract.Chat
}

func checkPure(t *testing.T, seed uint64, q routing.Question) {
	t.Helper()
	w := anyWorld(seed)
	r := routing.New(&w.cfg)
	var turn1, turn2 atomic.Uint64
	turn1.Store(seed)
	turn2.Store(seed)
	d1, err1 := r.Decide(q, w.state, &turn1)
	_, _ = r.Decide(routing.Question{Model: "auto"}, w.state, &atomic.Uint64{})
	again := anyWorld(seed)
	d2, err2 := routing.New(&again.cfg).Decide(q, again.state, &turn2)
	require.Equal(t, d1, d2)
	require.Equal(t, err1, err2)
	require.Equal(t, turn1.Load(), turn2.Load())
	require.LessOrEqual(t, turn1.Load()-seed, uint64(1))
	checkDecision(t, w, q, d1, err1)
}

// The same over many worlds and all kinds of names.
func TestDecisionsAreSound(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		for i, name := range someNames {
			q := routing.Question{Operation: operation(i%7 == 3), Model: name, Tokens: int64(seed % 200), Needs: contract.Features((seed + uint64(i)) % 32)}
			checkPure(t, seed, q)
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	w := vendors()
	for i := range 1000 {
		w.cfg.Models = append(w.cfg.Models, config.Model{Name: fmt.Sprintf("model-%d", i), Upstreams: []string{"u"}})
	}
	many := make([]modelindex.Model, 400)
	for i := range many {
		many[i] = modelindex.Model{ID: fmt.Sprintf("vendor-%d/model-%d", i%20, i), Tier: contract.TierFree}
	}
	w.offer("cerebras", many...)
	r := routing.New(&w.cfg)
	for name, q := range map[string]routing.Question{
		"configured": {Model: "model-500"}, "auto": {Model: "auto"}, "large": {Model: "auto", Tokens: 9000}, "images": {Model: "auto", Needs: contract.FeatureImages},
		"strict": {Model: "groq/Some-Model"}, "alias": {Model: "gpt-4o"}, "discovered": {Model: "vendor-7/model-7"}, "keyword": {Model: "llama-3.3-70b"},
		"unknown": {Model: "no-such-model"},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Decide(q, w.state, &w.turn); (err != nil) != (name == "unknown") {
					b.Fatal(err)
				}
			}
		})
	}
}
