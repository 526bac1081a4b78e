package discover_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/discover"
	"hydrallm/shared/contract"
	"hydrallm/shared/modelindex"
	"hydrallm/shared/testkit/fixtures"
)

// recorded are the lists of every provider that there is a sample of, with what routing gets of them.
var recorded = map[string]struct {
	source discover.Source
	files  map[string]string // by path
	want   []modelindex.Model
}{
	"openai": {
		source: discover.Source{Dialect: "openai", URL: "https://h/v1"},
		files:  map[string]string{"/v1/models": "openai/models-list.json"},
		want:   []modelindex.Model{{ID: "alpha-1", Tier: contract.TierUnknown}, {ID: "emb-1", Tier: contract.TierUnknown, Embedding: true}},
	},
	"anthropic": {
		source: discover.Source{Dialect: "anthropic", URL: "https://h"},
		files:  map[string]string{"/v1/models": "anthropic/models-list.json"},
		want: []modelindex.Model{{
			ID: "beta-1", Name: "Beta 1", Tier: contract.TierUnknown, Window: 1_000_000, Output: 128_000,
			Can: contract.FeatureImages | contract.FeatureFiles | contract.FeatureTools, Cannot: contract.FeatureAudio,
		}},
	},
	"anthropic with the version in its address": {
		source: discover.Source{Dialect: "anthropic", URL: "https://h/v1"},
		files:  map[string]string{"/v1/models": "anthropic/models-list.json"},
		want: []modelindex.Model{{
			ID: "beta-1", Name: "Beta 1", Tier: contract.TierUnknown, Window: 1_000_000, Output: 128_000,
			Can: contract.FeatureImages | contract.FeatureFiles | contract.FeatureTools, Cannot: contract.FeatureAudio,
		}},
	},
	"gemini, whose compatible list has no windows": {
		source: discover.Source{Vendor: "gemini", Dialect: "openai", URL: "https://h/v1beta/openai"},
		files: map[string]string{
			"/v1beta/openai/models": "gemini/models-list.json", "/v1beta/models": "gemini-native/models-list.json",
		},
		want: []modelindex.Model{
			{ID: "gamma-flash", Name: "Gamma Flash", Tier: contract.TierFree, Window: 1_048_576, Output: 65_536, Can: contract.FeatureThinking},
			{ID: "gamma-embed", Name: "Gamma Embed", Tier: contract.TierFree, Window: 2048, Output: 1, Embedding: true},
		},
	},
	"gemini without a native list": {
		source: discover.Source{Vendor: "gemini", Dialect: "openai", URL: "https://h/v1beta/openai/"},
		files:  map[string]string{"/v1beta/openai/models": "gemini/models-list.json"},
		want: []modelindex.Model{
			{ID: "gamma-flash", Name: "Gamma Flash", Tier: contract.TierFree}, {ID: "gamma-embed", Tier: contract.TierFree, Embedding: true},
		},
	},
	"gemini native": {
		source: discover.Source{Dialect: "gemini", URL: "https://h/v1beta"},
		files:  map[string]string{"/v1beta/models": "gemini-native/models-list.json"},
		want: []modelindex.Model{
			{ID: "gamma-flash", Name: "Gamma Flash", Tier: contract.TierFree, Window: 1_048_576, Output: 65_536, Can: contract.FeatureThinking},
			{ID: "gamma-embed", Name: "Gamma Embed", Tier: contract.TierFree, Window: 2048, Output: 1, Embedding: true},
		},
	},
	"groq": {
		source: discover.Source{Vendor: "groq", Dialect: "openai", URL: "https://h/openai/v1"},
		files:  map[string]string{"/openai/v1/models": "groq/models-list.json"},
		want:   []modelindex.Model{{ID: "delta-120b", Tier: contract.TierUnknown, Window: 131_072, Output: 65_536}},
	},
	"cerebras, whose windows are in a public list": {
		source: discover.Source{Vendor: "cerebras", Dialect: "openai", URL: "https://h/v1"},
		files:  map[string]string{"/v1/models": "cerebras/models-public.json", "/public/v1/models": "cerebras/models-public.json"},
		want:   []modelindex.Model{{ID: "epsilon-31b", Tier: contract.TierUnknown, Window: 131_072, Output: 40_960}},
	},
	"openrouter": {
		source: discover.Source{Vendor: "openrouter", Dialect: "openai", URL: "https://h/api/v1"},
		files:  map[string]string{"/api/v1/models": "openrouter/models-list.json", "/api/v1/key": "openrouter/key.json"},
		want: []modelindex.Model{{
			ID: "vendor/zeta-1", Name: "Vendor: Zeta 1", Tier: contract.TierUnknown, Window: 131_072, Output: 32_768,
			Can: contract.FeatureImages | contract.FeatureTools | contract.FeatureThinking, Cannot: contract.FeatureAudio,
		}},
	},
	"deepseek": {
		source: discover.Source{Vendor: "deepseek", Dialect: "openai", URL: "https://h"},
		files:  map[string]string{"/models": "deepseek/models-list.json"},
		want:   []modelindex.Model{{ID: "eta-flash", Tier: contract.TierUnknown}, {ID: "eta-pro", Tier: contract.TierUnknown}},
	},
	"mistral": {
		source: discover.Source{Vendor: "mistral", Dialect: "openai", URL: "https://h/v1"},
		files:  map[string]string{"/v1/models": "mistral/models-list.json"},
		want: []modelindex.Model{
			{ID: "theta-small", Tier: contract.TierUnknown, Window: 262_144, Can: contract.FeatureImages | contract.FeatureTools},
			{ID: "theta-small-latest", Name: "theta-small", Tier: contract.TierUnknown, Window: 262_144, Can: contract.FeatureImages | contract.FeatureTools},
		},
	},
	"ollama": {
		source: discover.Source{Dialect: "ollama", URL: "http://h/v1"},
		files:  map[string]string{"/api/tags": "ollama/tags.json", "/api/show": "ollama/show.json", "/v1/models": "openai/models-list.json"},
		want: []modelindex.Model{
			{ID: "kappa:8b", Tier: contract.TierFree, Window: 131_072, Can: contract.FeatureTools, Cannot: contract.FeaturesMedia | contract.FeatureThinking},
			{ID: "bge-m3:latest", Tier: contract.TierFree, Window: 131_072, Can: contract.FeatureTools, Cannot: contract.FeaturesMedia | contract.FeatureThinking, Embedding: true}, // described by the sample of another model
		},
	},
	"ollama that can't be asked about a model": {
		source: discover.Source{Dialect: "ollama", URL: "http://h/v1"},
		files:  map[string]string{"/api/tags": "ollama/tags.json"},
		want: []modelindex.Model{
			{ID: "kappa:8b", Tier: contract.TierFree, Window: 131_072, Can: contract.FeatureTools, Cannot: contract.FeaturesMedia | contract.FeatureThinking},
			{ID: "bge-m3:latest", Tier: contract.TierFree, Embedding: true},
		},
	},
	"a server that speaks only half of ollama": {
		source: discover.Source{Dialect: "ollama", URL: "http://h/v1"},
		files:  map[string]string{"/v1/models": "vllm/models-list.json"},
		want:   []modelindex.Model{{ID: "mu-32b", Tier: contract.TierFree, Window: 8192}},
	},
	"llama.cpp, whose slots are smaller than the model": {
		source: discover.Source{Dialect: "openai", URL: "http://h/v1"},
		files:  map[string]string{"/v1/models": "llamacpp/models-list.json", "/props": "llamacpp/props.json"},
		want:   []modelindex.Model{{ID: "lambda.gguf", Tier: contract.TierUnknown, Window: 8192, Cannot: contract.FeatureImages | contract.FeatureAudio}},
	},
	"llama.cpp without properties": {
		source: discover.Source{Dialect: "openai", URL: "http://h/v1"},
		files:  map[string]string{"/v1/models": "llamacpp/models-list.json"},
		want:   []modelindex.Model{{ID: "lambda.gguf", Tier: contract.TierUnknown, Window: 131_072, Cannot: contract.FeatureImages | contract.FeatureAudio}},
	},
	"vllm": {
		source: discover.Source{Dialect: "openai", URL: "http://h/v1"},
		files:  map[string]string{"/v1/models": "vllm/models-list.json"},
		want:   []modelindex.Model{{ID: "mu-32b", Tier: contract.TierUnknown, Window: 8192}},
	},
	"lm studio": {
		source: discover.Source{Vendor: "lmstudio", Dialect: "openai", URL: "http://h/v1"},
		files:  map[string]string{"/api/v1/models": "lmstudio/models-v1.json"},
		want: []modelindex.Model{
			{ID: "org/nu-20b", Name: "Nu 20B", Tier: contract.TierFree, Window: 16_384, Can: contract.FeatureTools, Cannot: contract.FeatureImages},
			{ID: "text-emb", Name: "Emb", Tier: contract.TierFree, Window: 2048, Embedding: true},
		},
	},
	"an old lm studio, which answers 200 to everything": {
		source: discover.Source{Vendor: "lmstudio", Dialect: "openai", URL: "http://h/v1"},
		files:  map[string]string{"/api/v1/models": "lmstudio/error-200-endpoint.json", "/v1/models": "openai/models-list.json"},
		want:   []modelindex.Model{{ID: "alpha-1", Tier: contract.TierFree}, {ID: "emb-1", Tier: contract.TierFree, Embedding: true}},
	},
	"openclaw": {
		source: discover.Source{Dialect: "openclaw", URL: "http://h/v1"},
		files:  map[string]string{"/v1/models": "openclaw/models-list.json"},
		want: []modelindex.Model{
			{ID: "openclaw", Tier: contract.TierUnknown},
			{ID: "openclaw/default", Tier: contract.TierUnknown},
			{ID: "openclaw/research", Tier: contract.TierUnknown},
		},
	},
}

// what is discovered of every recorded list.
func TestRecordedLists(t *testing.T) {
	t.Parallel()
	for name, tt := range recorded {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			models, err := discover.List(t.Context(), serve(tt.files), tt.source, "key")
			require.NoError(t, err)
			require.Equal(t, tt.want, discover.Classify(models, tt.source.Rules(nil, nil)))
		})
	}
}

// No list among the samples is forgotten above.
func TestEveryRecordedListIsRead(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, tt := range recorded {
		for _, file := range tt.files {
			used[file] = true
		}
	}
	for _, f := range fixtures.All() {
		if strings.Contains(f.File, "/models") {
			require.True(t, used[f.File], f.File)
		}
	}
}

// every recorded failure is one here too, whatever its status, and of the same class.
func TestRecordedErrorsAreNeverSuccess(t *testing.T) {
	t.Parallel()
	vendors := map[string]bool{"groq": true, "cerebras": true, "gemini": true, "deepseek": true, "mistral": true, "openrouter": true, "openai": true}
	n := 0
	for _, f := range fixtures.All() {
		if f.Class == "" || f.Kind() == "sse" || !vendors[f.Provider()] {
			continue
		}
		n++
		source := discover.Source{Vendor: f.Provider(), Dialect: "openai", URL: "https://h/v1"}
		client := serve(map[string]string{"/v1/models": f.File, "/v1/key": f.File})
		_, err := discover.List(t.Context(), client, source, "key")
		var refused *discover.RefusedError
		require.ErrorAs(t, err, &refused, f.File)
		require.Equal(t, f.Class, string(refused.Verdict.Class), f.File)
	}
	require.Greater(t, n, 20)
}
