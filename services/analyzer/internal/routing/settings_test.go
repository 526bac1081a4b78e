package routing_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/analyzer/internal/routing"
	"hydrallm/shared/config"
	"hydrallm/shared/config/configtest"
	"hydrallm/shared/contract"
	"hydrallm/shared/dispatcherhealth"
)

// configured is a gateway with a configuration as a file has it; all keys are thought to work.
func configured(t *testing.T, text string) *world {
	t.Helper()
	cfg := configtest.Parse(t, text)
	w := &world{cfg: *cfg}
	w.state.Providers = dispatcherhealth.Assume(cfg.Providers)
	return w
}

const fourProviders = `
providers:
  - {id: gemini, keys: [k], default_models: {free: of-gemini}}
  - {id: groq, keys: [k], default_models: {free: of-groq}}
  - {id: own, url: "http://h/v1", key: k, default_models: {free: small, premium: large}}
  - {id: ollama}
`

// R-351, section 13: each setting of routing.* decides something here. Whatever is not set is as the requirements say.
func TestSettings(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		settings string
		model    string
		tokens   int64
		want     string // "" = there is no such model
	}{
		"threshold by default, below":  {``, "auto", 8191, "groq [of-groq] token_count"},
		"threshold by default, at":     {``, "auto", 8192, "gemini [of-gemini] token_count"},
		"max_tokens_fast_model, below": {`max_tokens_fast_model: 100`, "auto", 99, "groq [of-groq] token_count"},
		"max_tokens_fast_model, at":    {`max_tokens_fast_model: 100`, "auto", 100, "gemini [of-gemini] token_count"},
		"a large threshold":            {`max_tokens_fast_model: 100000`, "auto", 99999, "groq [of-groq] token_count"},
		"fast":                         {`fast: [own], priority: [own, gemini]`, "auto", 1, "own [small] token_count"},
		"fast, not in the priority":    {`fast: [own], priority: [gemini]`, "auto", 1, "gemini [of-gemini] key_availability"},
		"no fast":                      {`fast: []`, "auto", 1, "gemini [of-gemini] key_availability"},
		"large":                        {`large: own`, "auto", 9000, "own [small] token_count"},
		"no large":                     {`large: ""`, "auto", 9000, "gemini [of-gemini] key_availability"},
		"priority":                     {`large: "", fast: [], priority: [own, gemini]`, "auto", 1, "own [small] key_availability"},
		"no priority":                  {`large: "", fast: []`, "auto", 1, "gemini [of-gemini] key_availability"},
		"final_fallback":               {`large: "", fast: [], priority: [ollama], final_fallback: ollama`, "auto", 1, "agent ollama [] key_availability"},
		"aliases by default":           {``, "gpt-4o", 1, "gemini [gemini-2.5-pro] model_hint"},
		"aliases":                      {`aliases: {gpt-4o: own/x}`, "gpt-4o", 1, "own [x] model_hint"},
		"aliases replace the defaults": {`aliases: {other: own/x}`, "gpt-4o", 1, ""},
		"no aliases":                   {`aliases: {}`, "gpt-4o", 1, ""}, // C-04
		"premium_models":               {`premium_models: [big]`, "own/my-big-one", 1, "own [my-big-one] model_hint strict named premium"},
		"free_models":                  {`free_models: [large]`, "own/large", 1, "own [large] model_hint strict named"},
		"neither":                      {``, "own/large", 1, "own [large] model_hint strict named premium"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := configured(t, fourProviders+"routing: {"+tc.settings+"}\n")
			d, err := w.decide(routing.Question{Operation: contract.Chat, Model: tc.model, Tokens: tc.tokens})
			if tc.want == "" {
				requireNotFound(t, err)
				return
			}
			requireDecision(t, tc.want, d, err)
		})
	}
}

// the tier that the configuration gives a key is the one that routing believes before a dispatcher speaks.
func TestSettingsOfKeys(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]string{
		`key: k`:                                     "own [small] model_hint strict",
		`key: k, tier: premium`:                      "own [large] model_hint strict premium",
		`keys: [a, {value: b, tier: premium}]`:       "own [large] model_hint strict premium",
		`keys: [a, b], tier: standard`:               "own [small] model_hint strict",
		`keys: [{value: a, tier: free}], tier: free`: "own [small] model_hint strict",
	} {
		w := configured(t, `providers: [{id: own, url: "http://h/v1", `+keys+`, default_models: {free: small, premium: large}}]`)
		d, err := w.chat("own/auto")
		requireDecision(t, want, d, err)
	}
}

// The environment without a file says the same things (section 13).
func TestSettingsOfTheEnvironment(t *testing.T) {
	t.Parallel()
	vars := map[string]string{
		"GEMINI_KEYS": "g", "GROQ_KEYS": "q", "CEREBRAS_KEYS": "c", "MAX_TOKENS_FAST_MODEL": "50", "PROVIDER_PRIORITY": "cerebras,gemini",
		"DEFAULT_FREE_MODEL": "f", "DEFAULT_PREMIUM_MODEL": "p", "PREMIUM_MODELS": "ultra", "FREE_MODELS": "p",
	}
	cfg, _, err := config.Load(configtest.Environment(t, vars, nil))
	require.NoError(t, err)
	w := &world{cfg: *cfg}
	w.state.Providers = dispatcherhealth.Assume(cfg.Providers)
	for range 2 { // groq has no priority
		d, err := w.decide(routing.Question{Model: "auto", Tokens: 49})
		require.NoError(t, err)
		require.Equal(t, "cerebras", d.Provider)
	}
	d, err := w.decide(routing.Question{Model: "auto", Tokens: 50})
	requireDecision(t, "gemini [f] token_count", d, err)
	d, err = w.chat("gemini/ultra-1")
	requireDecision(t, "gemini [ultra-1] model_hint strict named premium", d, err)
	d, err = w.chat("gemini/p")
	requireDecision(t, "gemini [p] model_hint strict named", d, err)
	w.set(keys(contract.TierPremium), "gemini")
	d, err = w.decide(routing.Question{Model: "gemini/auto"})
	require.NoError(t, err)
	require.Equal(t, "p", d.Model)
}
