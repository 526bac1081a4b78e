// Package anthropic lets a provider that speaks Anthropic Messages be called with Chat Completions.
//
// What a client sends beside OpenAI's own members goes through when the Messages API has it: system, thinking, top_k, output_config,
// metadata.user_id, cache_control on parts and tools, and parts and tools in Anthropic's form. Members that neither side knows are not sent.
//
// The thinking of a model must come back to it unchanged and signed while it works with tools. It goes to the client as reasoning_content
// and, for the way back, in the member reasoning_details of the message: one entry for each thinking block, in a form that OpenRouter's
// clients know, {"type":"reasoning.text","text","signature","format","index"} or {"type":"reasoning.encrypted","data","format","index"}. In a
// stream the entry of a block comes whole, in a delta of its own after the text of the block, so that a client that joins arrays keeps
// it as well as one that joins entries by their index. Only entries with this package's format are sent; reasoning_content alone is not,
// since thinking without a signature is refused. The blocks come back before the text of their message, which is where models put them.
package anthropic

import (
	"net/http"

	"hydrallm/services/dispatcher/internal/dialect"
)

const (
	// path is below a base URL such as https://api.anthropic.com.
	path = "/v1/messages"
	// version is the last one that takes temperature and top_p.
	version = "2023-06-01"
	// DefaultMaxTokens is the limit of an answer for which the client states none: the Messages API wants one. Thinking that has a budget
	// of its own comes on top.
	DefaultMaxTokens = 8192
	// format marks entries of reasoning_details whose signatures Anthropic knows.
	format = `"anthropic-claude-v1"`
)

// Translator is the dialect. The zero value is ready for use. The base URL of its provider comes without the "/v1" that OpenAI's have:
// https://api.anthropic.com.
type Translator struct{}

var _ dialect.Translator = Translator{}

// Authorize sets the key.
func (Translator) Authorize(h http.Header, key string) { h.Set("X-Api-Key", key) }
