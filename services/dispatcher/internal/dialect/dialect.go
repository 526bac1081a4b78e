// Package dialect lets every provider be called as if it spoke Chat Completions: a Dialect takes OpenAI's JSON and gives back a whole answer or
// answer events, whatever goes over the wire. What an error means is not decided here: its status and body stay the provider's own, which
// package classify knows.
package dialect

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
)

// Client makes HTTP calls; *upstream.Client is one.
type Client interface {
	Do(ctx context.Context, call upstream.Call) (*upstream.Response, error)
}

// Dialect calls one kind of provider. It is safe for concurrent use.
//
// The URL of a call is the base URL of the provider, and its Key goes wherever the dialect wants it.
type Dialect interface {
	// Chat makes a call whose Body is a request to Chat Completions. Any status but 2xx comes with the body that the provider sent. An error of
	// type *openai.RequestError says that the request can't be put into the dialect, which is the client's affair; other errors are those of
	// upstream.Client.Do.
	Chat(ctx context.Context, call upstream.Call) (*Response, error)
	// Embed makes a call whose Body is a request to Embeddings.
	Embed(ctx context.Context, call upstream.Call) (*upstream.Response, error)
	// Pass makes a call to a path of OpenAI's API below the base URL, whose Body goes as it is. The error is ErrUnsupported for a provider that
	// has another API; config.Dialect says so, too.
	Pass(ctx context.Context, call upstream.Call, path string) (*upstream.Response, error)
}

// Bypass is a dialect whose provider speaks the protocol of a surface: a client of it needs no translation.
type Bypass interface {
	Dialect

	// Surface is the protocol.
	Surface() contract.Surface
	// Native makes a call whose Body is a request of the surface, and whose Header has what the client says of the protocol.
	Native(ctx context.Context, call upstream.Call) (*Response, error)
	// CountTokens asks how many tokens such a request has. The answer comes as the provider sends it.
	CountTokens(ctx context.Context, call upstream.Call) (*upstream.Response, error)
}

// OpenAI is the plain dialect: most providers, and local engines, take OpenAI's requests as they are.
type OpenAI struct{ Client Client }

var _ Dialect = OpenAI{}

// Chat passes the call on.
func (d OpenAI) Chat(ctx context.Context, call upstream.Call) (*Response, error) {
	return Plain(d.do(ctx, call, "/chat/completions"))
}

// Embed passes the call on.
func (d OpenAI) Embed(ctx context.Context, call upstream.Call) (*upstream.Response, error) {
	return d.do(ctx, call, "/embeddings")
}

// Pass passes the call on.
func (d OpenAI) Pass(ctx context.Context, call upstream.Call, path string) (*upstream.Response, error) {
	return d.do(ctx, call, path)
}

func (d OpenAI) do(ctx context.Context, call upstream.Call, path string) (*upstream.Response, error) {
	call.URL = Operation(call.URL, path)
	if call.Key != "" {
		call.Header.Set("Authorization", "Bearer "+call.Key)
	}
	return d.Client.Do(ctx, call)
}

// Operation puts the path of an operation, which may have a query, behind a base URL, before the query of that.
func Operation(base, path string) string {
	url, query, found := strings.Cut(base, "?")
	switch {
	case !found:
		return base + path
	case strings.Contains(path, "?"):
		return url + path + "&" + query
	}
	return url + path + "?" + query
}

// Native is a request in the words of a provider.
type Native struct {
	Path   string      // of the operation, below the base URL; may have a query
	Header http.Header // what the provider wants beside the usual; nil for nothing
	Body   []byte
}

// Translator puts chat completions into another protocol and back. It is pure code: no network, no state of its own.
type Translator interface {
	// Authorize sets the credentials.
	Authorize(h http.Header, key string)
	// Request translates a request to Chat Completions. The error is an *openai.RequestError that names what can't be translated.
	Request(body []byte, stream bool) (Native, error)
	// Completion fills out, an empty whole answer, with what the body of a 2xx answer says, which it may alias. It is false when the body is no
	// answer, such as an error that came with status 200.
	Completion(out *answer.Chunk, body []byte) bool
	// Events begins the translation of an event stream. The answer is said to be done only if the provider's stream ended properly; events that
	// are errors come as the provider sent them.
	Events() answer.Translator
}

// Embedder is a Translator whose protocol has embeddings.
type Embedder interface {
	// Embeddings translates a request to Embeddings. The error is an *openai.RequestError that names what can't be translated. The answer needs
	// no translation: package embed reads those of all protocols.
	Embeddings(body []byte) (Native, error)
}

// Translated is the dialect of a provider that a Translator knows.
type Translated struct {
	Client     Client
	Translator Translator
}

var _ Dialect = Translated{}

// Chat translates the call and its answer.
func (d Translated) Chat(ctx context.Context, call upstream.Call) (*Response, error) {
	native, err := d.Translator.Request(call.Body, call.Stream)
	if err != nil {
		return nil, err
	}
	resp, err := Plain(d.Do(ctx, call, native))
	if err != nil {
		return nil, err
	}
	resp.Completion = d.Translator.Completion
	resp.Events = func(r *openai.Reader) answer.Source { return answer.Translate(r, d.Translator.Events()) }
	return resp, nil
}

// Embed translates the call if the protocol has embeddings.
func (d Translated) Embed(ctx context.Context, call upstream.Call) (*upstream.Response, error) {
	e, ok := d.Translator.(Embedder)
	if !ok {
		return nil, fmt.Errorf("embeddings: %w", ErrUnsupported)
	}
	native, err := e.Embeddings(call.Body)
	if err != nil {
		return nil, err
	}
	return d.Do(ctx, call, native)
}

// Pass is nothing that another protocol can do.
func (Translated) Pass(context.Context, upstream.Call, string) (*upstream.Response, error) {
	return nil, ErrUnsupported
}

// Do makes a call in the words of the provider.
func (d Translated) Do(ctx context.Context, call upstream.Call, native Native) (*upstream.Response, error) {
	call.URL, call.Body = Operation(call.URL, native.Path), native.Body
	for name, values := range native.Header {
		if len(call.Header.Values(name)) == 0 { // what the operator set wins
			call.Header[name] = values
		}
	}
	if call.Key != "" {
		d.Translator.Authorize(call.Header, call.Key)
	}
	return d.Client.Do(ctx, call)
}
