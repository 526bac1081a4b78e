package routing_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"hydrallm/services/analyzer/internal/routing"
	"hydrallm/shared/config"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/modelindex"
)

// world is a configuration and what is known of its providers.
type world struct {
	cfg   config.Config
	state routing.State
	turn  atomic.Uint64
}

// vendors is a gateway with three vendors, a provider of its own and two agents, all usable.
func vendors() *world {
	w := &world{cfg: config.Config{
		Providers: []config.Provider{
			{ID: "gemini", Dialect: "openai", DefaultModels: config.DefaultModels{Free: "g-flash", Premium: "g-pro"}},
			{ID: "groq", Dialect: "openai", DefaultModels: config.DefaultModels{Free: "groq-default"}},
			{ID: "cerebras", Dialect: "openai"},
			{ID: "ollama", Dialect: "openai", DefaultModels: config.DefaultModels{Free: "llama3"}}, // an agent by its id
			{ID: "opencode", Dialect: "opencode"},
			{ID: "Mistral", Dialect: "openai"},
			{ID: "shelf", Dialect: "ollama"}, // an agent by its dialect
		},
		Models: []config.Model{{Name: "my-gpt", Upstreams: []string{"u"}}, {Name: "unusable"}},
		Routing: config.Routing{
			Priority: []string{"gemini", "groq", "cerebras", "ollama", "opencode", "openclaw"}, MaxTokensFast: 8192,
			Fast: []string{"groq", "cerebras"}, Large: "gemini", FinalFallback: "ollama",
			Aliases: map[string]string{
				"gpt-4o": "gemini-2.5-pro", "quick": "auto", "Fixed": "groq/Some/Model", "mine": "my-gpt", "scoped": "gemini/auto",
				"lost": "claude/opus", "twice": "quick", "loop": "loop", "gone": "openclaw/x",
			},
		},
	}}
	w.state.Providers = map[string]contract.ProviderState{}
	for _, p := range w.cfg.Providers {
		w.state.Providers[p.ID] = keys(contract.TierFree)
	}
	return w
}

func keys(tiers ...string) contract.ProviderState {
	s := contract.ProviderState{Keys: map[string]int{}}
	for _, t := range tiers {
		s.Keys[t]++
	}
	return s
}

// without takes providers out of the configuration.
func (w *world) without(ids ...string) *world {
	var rest []config.Provider
	for _, p := range w.cfg.Providers {
		keep := true
		for _, id := range ids {
			keep = keep && p.ID != id
		}
		if keep {
			rest = append(rest, p)
		}
	}
	w.cfg.Providers = rest
	return w
}

// set says what is known of some providers.
func (w *world) set(s contract.ProviderState, ids ...string) *world {
	for _, id := range ids {
		w.state.Providers[id] = s
	}
	return w
}

func (w *world) offer(provider string, models ...modelindex.Model) *world {
	var listings []modelindex.Listing
	for _, p := range w.cfg.Providers {
		if l, ok := w.book().Listing(p.ID); ok {
			listings = append(listings, l)
		}
	}
	w.state.Book = modelindex.NewBook(append(listings, modelindex.Listing{Provider: provider, Models: models})...)
	return w
}

func (w *world) book() *modelindex.Book {
	if w.state.Book == nil {
		return modelindex.NewBook()
	}
	return w.state.Book
}

func (w *world) decide(q routing.Question) (contract.Decision, error) {
	return routing.New(&w.cfg).Decide(q, w.state, &w.turn)
}

func (w *world) chat(model string) (contract.Decision, error) {
	return w.decide(routing.Question{Operation: contract.Chat, Model: model})
}

// show writes a decision in one line: where it goes, the model, and what else is set.
func show(d contract.Decision) string {
	var b strings.Builder
	switch {
	case d.Configured:
		b.WriteString("configured")
	case d.Agent != "":
		b.WriteString("agent " + d.Agent)
	default:
		b.WriteString(d.Provider)
	}
	b.WriteString(" [" + d.Model + "] " + d.Reason)
	for _, f := range []struct {
		set  bool
		name string
	}{{d.PinProvider, "strict"}, {d.PinModel, "named"}, {d.Premium, "premium"}} {
		if f.set {
			b.WriteString(" " + f.name)
		}
	}
	return b.String()
}

func requireDecision(t *testing.T, want string, d contract.Decision, err error) {
	t.Helper()
	require.NoError(t, err)
	require.Equal(t, want, show(d))
}

func requireNotFound(t *testing.T, err error, contains ...string) {
	t.Helper()
	require.Error(t, err)
	f := fault.From(err)
	require.Equal(t, fault.ModelNotFound, f.Kind, f.Message)
	require.Equal(t, "model", f.Param)
	for _, part := range contains {
		require.Contains(t, f.Message, part)
	}
	requireClean(t, f.Message)
}

// requireClean checks that a message is fit for a client and a log line.
func requireClean(t *testing.T, message string) {
	t.Helper()
	require.Less(t, utf8.RuneCountInString(message), 600)
	require.True(t, utf8.ValidString(message))
	require.Equal(t, -1, strings.IndexFunc(message, func(r rune) bool { return !unicode.IsPrint(r) }), "%q", message)
}

// a configured name matches exactly or not at all.
func TestConfiguredNames(t *testing.T) {
	t.Parallel()
	var cfg config.Config
	for _, name := range []string{"my-gpt", "prov/ns/name:tag", "имя", "auto", "groq/x"} {
		cfg.Models = append(cfg.Models, config.Model{Name: name, Upstreams: []string{"u"}})
	}
	cfg.Models = append(cfg.Models, config.Model{Name: "unusable"})
	cfg.Providers = []config.Provider{{ID: "groq"}}
	r := routing.New(&cfg)
	tests := map[string]struct {
		model string
		shown string // in the refusal; "" = it is found
	}{
		"a name":                       {"my-gpt", ""},
		"a name with slashes":          {"prov/ns/name:tag", ""},
		"a name beyond ASCII":          {"имя", ""},
		"it shadows automatic routing": {"auto", ""},
		"it shadows a provider":        {"groq/x", ""},
		"case counts":                  {"My-GPT", "My-GPT"},
		"spaces count":                 {"my-gpt ", "my-gpt"},
		"a part is not the name":       {"my", "my"},
		"the end is not the name":      {"name:tag", "name:tag"},
		"something else entirely":      {"gpt-4o", "gpt-4o"},
		"a name with a line break":     {"my\ngpt", "my\uFFFDgpt"},
		"without an upstream":          {"unusable", "unusable"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var turn atomic.Uint64
			d, err := r.Decide(routing.Question{Operation: contract.Chat, Model: tt.model, Needs: contract.FeatureImages, Tokens: 5}, routing.State{}, &turn)
			if tt.shown != "" {
				requireNotFound(t, err, "`"+tt.shown+"`")
				return
			}
			require.NoError(t, err)
			want := contract.Decision{Model: tt.model, Reason: contract.ReasonModelHint, PinProvider: true, PinModel: true, Configured: true, Needs: contract.FeatureImages, Tokens: 5}
			require.Equal(t, want, d)
		})
	}
}

// the decision carries what was measured, and the reason is true.
func TestDecisionCarriesTheQuestion(t *testing.T) {
	t.Parallel()
	d, err := vendors().decide(routing.Question{Operation: contract.Chat, Model: "groq/x", Tokens: 77, Needs: contract.FeatureImages, Search: true})
	require.NoError(t, err)
	require.Equal(t, contract.Decision{
		Provider: "groq", Model: "x", Reason: contract.ReasonModelHint, PinProvider: true, PinModel: true, Needs: contract.FeatureImages, Search: true, Tokens: 77,
	}, d)
	d, err = vendors().decide(routing.Question{Operation: contract.Chat, Model: "auto", Tokens: 9000, Search: true})
	require.NoError(t, err)
	require.Equal(t, contract.Decision{Provider: "gemini", Model: "g-flash", Reason: contract.ReasonTokenCount, Search: true, Tokens: 9000}, d)
}
