package routing_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/analyzer/internal/routing"
	"hydrallm/shared/config"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/modelindex"
)

// strictness is judged from the client's own string.
func TestStrict(t *testing.T) {
	t.Parallel()
	for model, strict := range map[string]bool{
		"gemini/gemini-1.5-pro": true, "gemini/auto": true, "GEMINI/auto": true, "groq/llama-3.3-70b": true,
		"local-agent/ollama/llama3": true, "opencode/github-copilot/gpt-4o": true,
		"auto": false, "default": false, "mllm/auto": false, "gpt-4o": false, "gemini-1.5-pro": false, "groq": false,
		"some-router/google/gemini-x": false, // a provider's name anywhere else does not count
	} {
		t.Run(model, func(t *testing.T) {
			t.Parallel()
			d, err := vendors().chat(model)
			require.NoError(t, err)
			require.Equal(t, strict, d.PinProvider, show(d))
		})
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ model, want string }{
		//
		"auto":                  {"auto", "groq [groq-default] token_count"},
		"auto in another case":  {" AuTo\t", "groq [groq-default] token_count"},
		"default":               {"Default", "groq [groq-default] token_count"},
		"mllm/auto":             {"MLLM/auto", "groq [groq-default] token_count"},
		"no name":               {"", "groq [groq-default] token_count"},
		"nothing but space":     {" \n ", "groq [groq-default] token_count"},
		"null as a word is one": {"opencode-null", "agent opencode [opencode-null] model_hint named"},
		// R-072, B-14
		"inside a provider":             {"groq/auto", "groq [groq-default] model_hint strict"},
		"inside a provider, default":    {"GROQ/Default", "groq [groq-default] model_hint strict"},
		"inside a provider, no name":    {"groq/", "groq [groq-default] model_hint strict"},
		"inside a provider, unknown":    {"mistral/auto", "Mistral [] model_hint strict"},
		"case of the model is kept":     {"Groq/Some-Model", "groq [Some-Model] model_hint strict named"},
		"slashes in the model are kept": {"groq/meta/Llama:x/y", "groq [meta/Llama:x/y] model_hint strict named"},
		"own provider in another case":  {"mISTRAL/Large", "Mistral [Large] model_hint strict named"},
		"an agent":                      {"opencode/github-copilot/gpt-4o", "agent opencode [github-copilot/gpt-4o] model_hint strict named"},
		"an agent chooses":              {"ollama/auto", "agent ollama [] model_hint strict"},
		"an agent, no name":             {"ollama/", "agent ollama [] model_hint strict"},
		"LOCAL-AGENT":                   {"LOCAL-AGENT/OLLAMA/Llama3:8b", "agent ollama [Llama3:8b] model_hint strict named"},
		"local-agent in small letters":  {"local-agent/shelf/a/b", "agent shelf [a/b] model_hint strict named"},
		"LOCAL-AGENT chooses":           {"LOCAL-AGENT/OPENCODE/auto", "agent opencode [] model_hint strict"},
		"LOCAL-AGENT without a model":   {"LOCAL-AGENT/OPENCODE", "agent opencode [] model_hint strict"},
		// the provider alone
		"a provider alone": {"groq", "groq [groq-default] model_hint"},
		"in another case":  {"Cerebras", "cerebras [] model_hint"},
		"an agent alone":   {"opencode", "agent opencode [] model_hint"},
		"ollama alone":     {"ollama", "agent ollama [] model_hint"},
		// R-075, C-04
		"an alias":                       {"gpt-4o", "gemini [gemini-2.5-pro] model_hint"},
		"an alias in another case":       {"GPT-4O", "gemini [gemini-2.5-pro] model_hint"},
		"for automatic routing":          {"quick", "groq [groq-default] token_count"},
		"for a provider's model":         {"fixed", "groq [Some/Model] model_hint"},
		"for a provider":                 {"scoped", "gemini [g-flash] model_hint"},
		"for a configured model":         {"mine", "configured [my-gpt] model_hint strict named"},
		"for nothing":                    {"lost", "groq [groq-default] token_count"},
		"for a provider that is missing": {"gone", "groq [groq-default] token_count"},
		"for another alias":              {"twice", "groq [groq-default] token_count"},
		"for itself":                     {"loop", "groq [groq-default] token_count"},
		// B-15, B-17
		"gemini":                      {"gemini-1.5-Pro", "gemini [gemini-1.5-Pro] model_hint named"},
		"cerebras before llama":       {"cerebras-llama-3.3-70b", "cerebras [cerebras-llama-3.3-70b] model_hint named"},
		"llama":                       {"llama-3.3-70b", "groq [llama-3.3-70b] model_hint named"},
		"deepseek":                    {"DeepSeek-R1", "groq [DeepSeek-R1] model_hint named"},
		"ollama before qwen":          {"ollama-qwen", "agent ollama [ollama-qwen] model_hint"},
		"ollama before llama":         {"ollama-llama3", "agent ollama [ollama-llama3] model_hint"},
		"gemma":                       {"gemma3:4b", "agent ollama [gemma3:4b] model_hint named"},
		"qwen":                        {"qwen2.5-coder", "agent ollama [qwen2.5-coder] model_hint named"},
		"phi":                         {"phi4", "agent ollama [phi4] model_hint named"},
		"groq after cerebras":         {"x-groq-y", "groq [x-groq-y] model_hint named"},
		"an own provider begins it":   {"mistral-large", "Mistral [mistral-large] model_hint named"},
		"before any keyword":          {"mistral-on-llama", "Mistral [mistral-on-llama] model_hint named"},
		"an own agent begins it":      {"shelf:7b", "agent shelf [shelf:7b] model_hint named"},
		"a digit ends a word":         {"mistral7b", "Mistral [mistral7b] model_hint named"},
		"a slash before a provider":   {"/groq/x", "groq [/groq/x] model_hint named"},
		"a provider that is no first": {"some-router/google/gemini-x", "gemini [some-router/google/gemini-x] model_hint named"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := vendors().chat(tt.model)
			requireDecision(t, tt.want, d, err)
		})
	}
}

// R-078, C-02
func TestNamesThatLeadNowhere(t *testing.T) {
	t.Parallel()
	w := vendors().without("gemini", "opencode")
	tests := map[string]struct {
		model string
		says  []string
	}{
		"unknown":                         {"no-such-model", []string{"`no-such-model` does not exist"}},
		"a letter goes on":                {"mistrals-model", []string{"`mistrals-model`"}},
		"a preset":                        {"gemini/x", []string{"`gemini/x`", "the provider gemini is not configured"}},
		"a preset that needs a file":      {"openrouter/google/gemini-x", []string{"the provider openrouter is not configured"}},
		"a preset in another case":        {"Gemini/auto", []string{"the provider gemini is not configured"}},
		"an agent":                        {"opencode/x", []string{"the local agent opencode is not configured"}},
		"LOCAL-AGENT with none":           {"LOCAL-AGENT/OPENCODE/x", []string{"the local agent OPENCODE is not configured"}},
		"LOCAL-AGENT with a vendor":       {"LOCAL-AGENT/groq/x", []string{"the local agent groq is not configured"}},
		"LOCAL-AGENT alone":               {"LOCAL-AGENT", []string{"`LOCAL-AGENT`"}},
		"LOCAL-AGENT and a slash":         {"LOCAL-AGENT/", []string{"`LOCAL-AGENT/`"}},
		"a preset alone":                  {"gemini", []string{"the provider gemini is not configured"}},
		"a keyword":                       {"gemini-2.5-pro", []string{"the provider gemini is not configured"}},
		"an agent's keyword":              {"opencode-x", []string{"the local agent opencode is not configured"}},
		"the word null":                   {"null", []string{"`null`"}},
		"a slash":                         {"/", []string{"`/`"}},
		"slashes":                         {strings.Repeat("/", 512), []string{"`////"}},
		"control characters":              {"a\x00b\r\nc", []string{"`a\uFFFDb\uFFFD\uFFFDc`"}},
		"no text at all":                  {"\xff\xfe", []string{"does not exist"}},
		"as long as the ingress lets it":  {strings.Repeat("é", 256), []string{strings.Repeat("é", 200) + "...`"}},
		"much longer":                     {strings.Repeat("й", 1<<20), nil},
		"a long agent":                    {"local-agent/" + strings.Repeat("x", 1<<16), []string{"is not configured"}},
		"an agent with control character": {"local-agent/a\x1b[2J/x", []string{"the local agent a\uFFFD[2J is not configured"}},
		"without an upstream":             {"unusable", []string{"`unusable`"}},
		"a part of an alias":              {"gpt-4", []string{"`gpt-4`"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := w.chat(tt.model)
			requireNotFound(t, err, tt.says...)
		})
	}
}

// what discovery knows comes before any keyword, at the first provider that is usable.
func TestDiscoveredModels(t *testing.T) {
	t.Parallel()
	m := func(id string) modelindex.Model { return modelindex.Model{ID: id, Tier: contract.TierFree} }
	known := func() *world {
		w := vendors()
		w.cfg.Providers = append(w.cfg.Providers, w.cfg.Providers[1])
		w.cfg.Providers[len(w.cfg.Providers)-1].ID = "router"
		w.set(keys(contract.TierFree), "router")
		w.offer("router", m("groq/compound"), m("openclaw/tool"), m("Shared-Gemini"), m("unknown-vendor/Model:free"), m("gpt-4o"), m("x")).
			offer("cerebras", m("llama-3.3-70b"), m("Shared-Gemini"), m("X")).
			offer("ollama", m("llama3:8b"))
		return w
	}
	declared := func() *world {
		w := vendors()
		w.cfg.Providers[1].DefaultModels.Free = "openai/of-groq"
		return w
	}
	tests := map[string]struct {
		model string
		world *world
		want  string
	}{
		"before a keyword":                {"llama-3.3-70b", known(), "cerebras [llama-3.3-70b] model_hint named"},
		"in the order of priority":        {"Shared-Gemini", known(), "cerebras [Shared-Gemini] model_hint named"},
		"the usable one":                  {"Shared-Gemini", known().set(keys(), "cerebras"), "router [Shared-Gemini] model_hint named"},
		"the one with a closed circuit":   {"Shared-Gemini", known().set(contract.ProviderState{Keys: map[string]int{"free": 1}, Open: true}, "cerebras"), "router [Shared-Gemini] model_hint named"},
		"none is usable":                  {"Shared-Gemini", known().set(keys(), "cerebras", "router"), "cerebras [Shared-Gemini] model_hint named"},
		"in another case":                 {"shared-gemini", known(), "cerebras [Shared-Gemini] model_hint named"},
		"the exact one first":             {"x", known(), "router [x] model_hint named"},
		"at an agent":                     {"llama3:8b", known(), "agent ollama [llama3:8b] model_hint named"},
		"with a slash":                    {"unknown-vendor/Model:free", known(), "router [unknown-vendor/Model:free] model_hint named"},
		"a configured provider is strict": {"groq/compound", known(), "groq [compound] model_hint strict named"},
		"a preset that is missing":        {"openclaw/tool", known(), "router [openclaw/tool] model_hint named"},
		"an alias comes first":            {"gpt-4o", known(), "gemini [gemini-2.5-pro] model_hint"},
		"an alias without a target":       {"gpt-4o", known().without("gemini"), "router [gpt-4o] model_hint named"},
		"a strict name is taken as it is": {"router/X", known(), "router [X] model_hint strict named"},
		"the configuration names it":      {"openai/of-groq", declared(), "groq [openai/of-groq] model_hint named"},
		"discovery does not know it":      {"openai/of-groq", declared().offer("groq", m("other")), ""},
		"named for an agent":              {"llama3", vendors(), "agent ollama [llama3] model_hint named"},
		"a listing of nobody counts not":  {"foreign", known().offer("foreigner", m("foreign")), ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := tt.world.chat(tt.model)
			if tt.want == "" {
				requireNotFound(t, err)
				return
			}
			requireDecision(t, tt.want, d, err)
		})
	}
}

// The longest id counts where ids hold slashes or begin each other.
func TestLongestProvider(t *testing.T) {
	t.Parallel()
	w := vendors()
	for _, id := range []string{"team/eu", "team", "mis", "Mistral-Large"} {
		p := w.cfg.Providers[1]
		p.ID = id
		w.cfg.Providers = append(w.cfg.Providers, p)
	}
	for model, want := range map[string]string{
		"team/eu/m":        "team/eu [m] model_hint strict named",
		"Team/EU/auto":     "team/eu [groq-default] model_hint strict",
		"team/us/m":        "team [us/m] model_hint strict named",
		"team/eu":          "team/eu [groq-default] model_hint",
		"mistral-large-2":  "Mistral-Large [mistral-large-2] model_hint named",
		"mistral-medium":   "Mistral [mistral-medium] model_hint named",
		"mis-x":            "mis [mis-x] model_hint named",
		"mistral-large/x":  "Mistral-Large [x] model_hint strict named",
		" team/ padded \n": "team [padded] model_hint strict named",
	} {
		d, err := w.chat(model)
		requireDecision(t, want, d, err)
	}
}

// without any place for automatic routing, the name of another vendor's model is unknown like any other.
func TestAliasWithoutAnyProvider(t *testing.T) {
	t.Parallel()
	w := vendors().without("gemini", "groq", "cerebras", "ollama", "opencode")
	_, err := w.chat("gpt-4o")
	requireNotFound(t, err, "`gpt-4o`")
	_, err = w.chat("quick")
	requireNotFound(t, err, "`quick`")
	_, err = w.chat("auto")
	f := fault.From(err)
	require.Equal(t, fault.Failed, f.Kind)
	require.Equal(t, 503, f.Status())
	require.Contains(t, f.Message, "No provider is configured")
}

// a model of the premium tier wants a premium key, also when the client names it.
func TestPremiumOfNamedModels(t *testing.T) {
	t.Parallel()
	w := vendors().offer("gemini", modelindex.Model{ID: "a-pro", Tier: contract.TierPremium}, modelindex.Model{ID: "a-flash", Tier: contract.TierFree})
	w.cfg.Routing.PremiumModels, w.cfg.Routing.FreeModels = []string{"", "OPUS"}, []string{"mini"}
	for model, premium := range map[string]bool{
		"gemini/a-pro": true, "a-pro": true, "gemini/a-flash": false, "gemini/g-pro": true, "gemini/g-flash": false,
		"groq/some-opus": true, "groq/some-Opus-mini": true, "groq/some-mini": false, "groq/other": false, "ollama/opus": false,
	} {
		d, err := w.decide(routing.Question{Model: model})
		require.NoError(t, err)
		require.Equal(t, premium, d.Premium, "%s: %s", model, show(d))
	}
}

// the aliases that are in force by default are for models that nobody here offers; those of the operator come before everything.
func TestDefaultAliasesAndWhoOffersTheModel(t *testing.T) {
	t.Parallel()
	w := vendors().offer("Mistral", modelindex.Model{ID: "gpt-4o"})
	d, err := w.chat("gpt-4o")
	requireDecision(t, "gemini [gemini-2.5-pro] model_hint", d, err)
	w.cfg.Routing.Aliases = config.DefaultAliases()
	d, err = w.chat("gpt-4o")
	requireDecision(t, "Mistral [gpt-4o] model_hint named", d, err)
	d, err = w.chat("gpt-4o-mini")
	requireDecision(t, "gemini [gemini-2.5-flash] model_hint", d, err)
}
