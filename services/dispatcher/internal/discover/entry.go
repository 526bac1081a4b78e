package discover

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"hydrallm/shared/modelindex"
)

// readEntry reads one element of a list in any of the shapes that OpenAI's has at providers. ok is false for what the provider says to be
// of no use for chat and embeddings, or not to be served. What is not known stays zero.
func readEntry(e gjson.Result) (m modelindex.Model, ok bool) {
	if e.Type == gjson.String {
		return modelindex.Model{ID: e.Str}, true
	}
	if e.Get("active").Type == gjson.False { // Groq
		return m, false
	}
	m = modelindex.Model{
		ID: text(e, "id", "key", "name", "model"), Name: text(e, "display_name", "displayName", "name"),
		Window: window(e), Output: output(e),
	}
	m.Can, m.Cannot = features(e)
	m.Embedding, ok = purpose(e, m.ID)
	return m, ok
}

// text gives the first member that is a string with something in it.
func text(e gjson.Result, names ...string) string {
	for _, name := range names {
		if v := e.Get(name); v.Type == gjson.String && v.Str != "" {
			return v.Str
		}
	}
	return ""
}

// window finds the context window. Where an aggregator names that of the best offer as well, the smaller one is safe.
func window(e gjson.Result) int {
	n := tokens(e, "context_window", "context_length", "max_context_length", "max_model_len", "max_input_tokens", "inputTokenLimit",
		"input_token_limit", "context_size", "limit.context", "limits.max_context_length", "limits.context_length", "details.context_length",
		"meta.n_ctx", "meta.n_ctx_train")
	if best := tokens(e, "top_provider.context_length"); best > 0 && (n == 0 || best < n) {
		return best
	}
	return n
}

// output finds the most tokens of an answer.
func output(e gjson.Result) int {
	return tokens(e, "max_completion_tokens", "max_output_tokens", "outputTokenLimit", "output_token_limit", "top_provider.max_completion_tokens",
		"limits.max_completion_tokens", "limit.output")
}

// maxTokens is more than any model has; larger numbers mean something else.
const maxTokens = 1 << 30

// tokens gives the first member that is a sensible count, as a number or as digits.
func tokens(e gjson.Result, names ...string) int {
	for _, name := range names {
		v := e.Get(name)
		n := v.Num
		if v.Type == gjson.String {
			n, _ = strconv.ParseFloat(v.Str, 64) // no number: no count
		}
		if n >= 1 && n <= maxTokens {
			return int(n)
		}
	}
	return 0
}

// elsewhere are the types of models that answer other requests than chat and embeddings.
var elsewhere = []string{"image", "audio", "video", "moderation", "rerank", "reranker", "transcription", "transcribe", "tts", "stt", "speech"}

// purpose tells from what the provider states whether a model makes vectors, and whether it is of use at all.
func purpose(e gjson.Result, id string) (embedding, ok bool) {
	kind := strings.ToLower(e.Get("type").Str)
	switch {
	case kind == "embedding", kind == "embeddings":
		return true, true
	case slices.Contains(elsewhere, kind):
		return false, false
	case e.Get("capabilities.completion_chat").Type == gjson.False: // Mistral
		return embeds(id), embeds(id)
	case has(e.Get("capabilities"), "embedding") && !has(e.Get("capabilities"), "completion"):
		return true, true
	}
	for _, list := range [...]string{"architecture.output_modalities", "output_modalities", "modalities.output"} {
		out := e.Get(list)
		if !out.IsArray() || has(out, "text") || len(out.Array()) == 0 {
			continue
		}
		vectors := has(out, "embedding") || has(out, "embeddings")
		return vectors, vectors
	}
	return embeds(id), true
}

// has says whether a value is an array that holds the word.
func has(list gjson.Result, word string) bool {
	return list.IsArray() && slices.ContainsFunc(list.Array(), func(v gjson.Result) bool { return strings.EqualFold(v.Str, word) })
}
