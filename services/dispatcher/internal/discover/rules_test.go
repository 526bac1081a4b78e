package discover_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/discover"
	"hydrallm/shared/contract"
	"hydrallm/shared/modelindex"
)

func models(all ...string) []modelindex.Model {
	var list []modelindex.Model
	for _, id := range all {
		list = append(list, modelindex.Model{ID: id})
	}
	return list
}

// what does not chat is left out, and what makes vectors is marked.
func TestKinds(t *testing.T) {
	t.Parallel()
	for _, id := range []string{
		"llama3:8b", "gemini-2.5-pro", "gpt-4o", "openai/gpt-oss-120b", "dolphin-mistral", "qwen2.5-vl", "google/gemma-3n-e4b-it", "eclipse-7b",
		"deepseek-v4-flash", "olive-7b", "claude-haiku-4-5", "mistral-small-latest", "imagine-7b", "phi4", "vision-llama",
	} {
		require.Equal(t, []modelindex.Model{{ID: id, Tier: contract.TierUnknown}}, discover.Classify(models(id), discover.Rules{}), id)
	}
	for _, id := range []string{
		"bge-m3:latest", "text-embedding-3-small", "nomic-embed-text", "gte-large", "multilingual-e5-large", "all-minilm:33m",
		"paraphrase-multilingual", "gemini-embedding-001", "mxbai-embed-large", "BAAI/bge-large-en",
	} {
		require.Equal(t, []modelindex.Model{{ID: id, Tier: contract.TierUnknown, Embedding: true}}, discover.Classify(models(id), discover.Rules{}), id)
	}
	for _, id := range []string{
		"whisper-large-v3", "distil-whisper-large-v3-en", "bge-reranker-v2-m3", "rerank-english", "clip-vit-base", "jina-clip-v2", "tts-1",
		"gpt-4o-mini-tts", "omni-moderation-latest", "meta-llama/llama-guard-4-12b", "openai/gpt-oss-safeguard-20b", "dall-e-3", "gpt-image-1",
		"gemini-2.5-flash-image", "imagen-4.0-generate-001", "veo-3.0", "stable-diffusion-xl", "gpt-4o-transcribe", "gpt-realtime",
		"vision-adapter-7b", "gpt-3.5-turbo-instruct", "gemini-2.5-flash-preview-tts",
	} {
		require.Empty(t, discover.Classify(models(id), discover.Rules{}), id)
	}
}

// the tiers, and the operator's lists before all else.
func TestTiers(t *testing.T) {
	t.Parallel()
	google := discover.Rules{Gemini: true}
	for name, tt := range map[string]struct {
		model modelindex.Model
		rules discover.Rules
		want  string
	}{
		"flash":                {modelindex.Model{ID: "gemini-2.5-flash"}, google, contract.TierFree},
		"lite":                 {modelindex.Model{ID: "gemini-X-LITE"}, google, contract.TierFree},
		"pro":                  {modelindex.Model{ID: "gemini-2.5-pro"}, google, contract.TierPremium},
		"gemma":                {modelindex.Model{ID: "gemma-3-27b-it"}, google, contract.TierFree},
		"google's vectors":     {modelindex.Model{ID: "gemini-embedding-001", Embedding: true}, google, contract.TierFree},
		"others":               {modelindex.Model{ID: "gpt-4o"}, discover.Rules{}, contract.TierUnknown},
		"flash of others":      {modelindex.Model{ID: "glm-flash"}, discover.Rules{}, contract.TierUnknown},
		"free offer":           {modelindex.Model{ID: "x/y:free"}, discover.Rules{}, contract.TierFree},
		"local":                {modelindex.Model{ID: "llama3"}, discover.Rules{Local: true}, contract.TierFree},
		"premium list":         {modelindex.Model{ID: "openai/GPT-4o-mini"}, discover.Rules{Premium: []string{"gpt-4o"}}, contract.TierPremium},
		"free list":            {modelindex.Model{ID: "llama-3.1-8b-instant"}, discover.Rules{Free: []string{" Llama-3.1-8B "}}, contract.TierFree},
		"both lists":           {modelindex.Model{ID: "llama3"}, discover.Rules{Premium: []string{"llama3"}, Free: []string{"llama"}}, contract.TierPremium},
		"lists beat the name":  {modelindex.Model{ID: "gemini-2.5-flash"}, discover.Rules{Gemini: true, Premium: []string{"flash"}}, contract.TierPremium},
		"blanks match nothing": {modelindex.Model{ID: "x"}, discover.Rules{Premium: []string{"", " "}}, contract.TierUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := discover.Classify([]modelindex.Model{tt.model}, tt.rules)
			require.Equal(t, tt.want, got[0].Tier)
		})
	}
}

// the first model of a tier is the default, so the order matters.
func TestOrder(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rules      discover.Rules
		have, want []string
	}{
		"instruct, chat, rest": {
			discover.Rules{},
			[]string{"a", "b-chat", "c-Instruct", "d", "e-instruct", "bge-m3", "f-chat"},
			[]string{"c-Instruct", "e-instruct", "b-chat", "f-chat", "a", "d", "bge-m3"},
		},
		"google": {
			discover.Rules{Gemini: true},
			[]string{
				"gemini-embedding-001", "gemma-3-27b-it", "gemini-2.0-flash-001", "gemini-2.0-flash", "gemini-flash-latest", "gemini-2.5-pro",
				"gemini-3-pro-preview", "gemini-2.5-flash-lite", "gemini-2.5-flash", "gemini-10-flash", "gemini-2.5-computer-use-preview-10-2025",
			},
			[]string{
				"gemini-10-flash", "gemini-2.5-pro", "gemini-2.5-flash", "gemini-2.5-flash-lite", "gemini-2.0-flash", "gemini-2.0-flash-001",
				"gemini-flash-latest", "gemini-3-pro-preview", "gemini-2.5-computer-use-preview-10-2025", "gemma-3-27b-it", "gemini-embedding-001",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			have := models(tt.have...)
			before := slices.Clone(have)
			require.Equal(t, tt.want, ids(discover.Classify(have, tt.rules)))
			require.Equal(t, before, have)
		})
	}
	small := []modelindex.Model{{ID: "tiny-instruct", Window: 4096}, {ID: "big", Window: 131_072}, {ID: "unknown"}}
	require.Equal(t, []string{"big", "unknown", "tiny-instruct"}, ids(discover.Classify(small, discover.Rules{})))
}

// which model an agent is asked for.
func TestPreferred(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		have            []string
		requested, want string
	}{
		"requested":                  {[]string{"llama3:8b", "phi4:latest"}, "phi4:latest", "phi4:latest"},
		"requested without its tag":  {[]string{"llama3:8b", "phi4:latest"}, "phi4", "phi4:latest"},
		"requested with a tag":       {[]string{"llama3:8b", "phi4"}, "phi4:latest", "phi4"},
		"requested in another case":  {[]string{"llama3:8b", "Phi4:latest"}, "phi4", "Phi4:latest"},
		"exact before similar":       {[]string{"phi4:latest", "phi4"}, "phi4", "phi4"},
		"another tag is another":     {[]string{"qwen2:7b", "phi4:mini"}, "phi4", "qwen2:7b"},
		"requested makes vectors":    {[]string{"bge-m3:latest", "qwen2:7b"}, "bge-m3", "qwen2:7b"},
		"unknown":                    {[]string{"gemma3:4b", "qwen2:7b"}, "gpt-4o", "qwen2:7b"},
		"none requested":             {[]string{"yi:9b", "deepseek-r1", "phi4", "gemma3", "mistral", "qwen3", "llama3.1"}, "", "llama3.1"},
		"qwen":                       {[]string{"yi:9b", "deepseek-r1", "phi4", "gemma3", "mistral", "qwen3"}, "", "qwen3"},
		"mistral":                    {[]string{"yi:9b", "deepseek-r1", "phi4", "gemma3", "mistral"}, "", "mistral"},
		"gemma":                      {[]string{"yi:9b", "deepseek-r1", "phi4", "gemma3"}, "", "gemma3"},
		"phi":                        {[]string{"yi:9b", "deepseek-r1", "phi4"}, "", "phi4"},
		"deepseek":                   {[]string{"wizardlm2", "yi:9b", "deepseek-r1"}, "", "deepseek-r1"},
		"yi":                         {[]string{"wizardlm2", "yi:9b"}, "", "yi:9b"},
		"wizardlm":                   {[]string{"aya", "wizardlm2"}, "", "wizardlm2"},
		"a family inside a word":     {[]string{"dolphin:7b", "hf.co/x/Qwen3-GGUF"}, "", "hf.co/x/Qwen3-GGUF"},
		"none of a preferred family": {[]string{"whisper", "bge-m3", "aya:8b", "zephyr"}, "", "aya:8b"},
		"none that chats":            {[]string{"whisper", "bge-m3"}, "bge-m3", "llama3"},
		"none at all":                {nil, "phi4", "llama3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id, _ := discover.Preferred(models(tt.have...), tt.requested)
			require.Equal(t, tt.want, id)
		})
	}
}
