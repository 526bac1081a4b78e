package routing_test

import (
	"testing"

	"hydrallm/services/analyzer/internal/routing"
	"hydrallm/shared/contract"
	"hydrallm/shared/modelindex"
)

// The client of embeddings names a model, or gets 404: vectors of different models can't be mixed.
func TestEmbeddings(t *testing.T) {
	t.Parallel()
	w := vendors().
		offer("groq", modelindex.Model{ID: "shared-embed", Embedding: true}, modelindex.Model{ID: "llama-3.3", Tier: contract.TierFree}).
		offer("cerebras", modelindex.Model{ID: "shared-embed", Embedding: true}, modelindex.Model{ID: "x-both"}).
		offer("ollama", modelindex.Model{ID: "Nomic-Embed:latest", Embedding: true}, modelindex.Model{ID: "qwen-vectors"}, modelindex.Model{ID: "x-both", Embedding: true}).
		set(keys(), "groq")
	tests := map[string]struct {
		model string
		want  string // "" = 404
		says  string
	}{
		"a configured model":          {"my-gpt", "configured [my-gpt] model_hint strict named", ""},
		"a provider's model":          {"gemini/Text-Embedding-004", "gemini [Text-Embedding-004] model_hint strict named", ""},
		"an agent's model":            {"LOCAL-AGENT/OLLAMA/nomic", "agent ollama [nomic] model_hint strict named", ""},
		"a discovered one, usable":    {"shared-embed", "cerebras [shared-embed] model_hint named", ""},
		"a discovered one, any case":  {"nomic-embed:LATEST", "agent ollama [Nomic-Embed:latest] model_hint named", ""},
		"the one that makes vectors":  {"x-both", "agent ollama [x-both] model_hint named", ""},
		"an own provider begins it":   {"mistral-embed", "Mistral [mistral-embed] model_hint named", ""},
		"a keyword and discovery":     {"qwen-vectors", "agent ollama [qwen-vectors] model_hint named", ""},
		"a keyword, in another case":  {"Qwen-Vectors", "agent ollama [qwen-vectors] model_hint named", ""},
		"a keyword without discovery": {"qwen3-embedding", "", "`qwen3-embedding` does not exist"},
		"unknown":                     {"text-embedding-3-small", "", "does not exist"},
		"not configured":              {"openclaw/x", "", "the local agent openclaw is not configured"},
		"automatic":                   {"auto", "", "is no embedding model"},
		"no name":                     {" ", "", "is no embedding model"},
		"an alias":                    {"GPT-4o", "", "is no embedding model"},
		"a provider alone":            {"Groq", "", "is no embedding model"},
		"inside a provider":           {"groq/auto", "", "is no embedding model"},
		"inside an agent":             {"LOCAL-AGENT/OLLAMA/default", "", "is no embedding model"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := w.decide(routing.Question{Operation: contract.Embeddings, Model: tt.model})
			if tt.want == "" {
				requireNotFound(t, err, tt.says)
				return
			}
			requireDecision(t, tt.want, d, err)
		})
	}
}
