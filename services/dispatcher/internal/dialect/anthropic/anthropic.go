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
	"context"
	"net/http"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
)

const (
	// path is below a base URL such as https://api.anthropic.com.
	path = "/v1/messages"
	// countPath counts the tokens of a request.
	countPath = path + "/count_tokens"
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

// New makes the dialect.
func New(client dialect.Client) dialect.Bypass {
	return bypass{dialect.Translated{Client: client, Translator: Translator{}}}
}

// bypass is the dialect, of which a client of Messages needs nothing but the address and the key.
type bypass struct{ dialect.Translated }

// Surface is Messages.
func (bypass) Surface() contract.Surface { return contract.SurfaceMessages }

// Native passes the call on. The answer is read as well as it is translated, but passes as it is.
func (d bypass) Native(ctx context.Context, call upstream.Call) (*dialect.Response, error) {
	resp, err := dialect.Plain(d.ask(ctx, call, path))
	if err != nil {
		return nil, err
	}
	resp.Native, resp.Completion = contract.SurfaceMessages, Translator{}.Completion
	resp.Events = func(r *openai.Reader) answer.Source {
		return answer.Native(r, Translator{}.Events(), contract.SurfaceMessages)
	}
	return resp, nil
}

// CountTokens passes the call on.
func (d bypass) CountTokens(ctx context.Context, call upstream.Call) (*upstream.Response, error) {
	return d.ask(ctx, call, countPath)
}

func (d bypass) ask(ctx context.Context, call upstream.Call, path string) (*upstream.Response, error) {
	return d.Do(ctx, call, dialect.Native{Path: path, Header: http.Header{"Anthropic-Version": {version}}, Body: call.Body})
}
