// Package dialect lets every provider be called as if it spoke Chat Completions: a Dialect takes OpenAI's JSON and gives back OpenAI's JSON or
// events, whatever goes over the wire. What an error means is not decided here: its status and body stay the provider's own, which
// package classify knows.
package dialect

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"hydrallm/services/dispatcher/internal/upstream"
)

// Client makes HTTP calls; *upstream.Client is one.
type Client interface {
	Do(ctx context.Context, call upstream.Call) (*upstream.Response, error)
}

// Dialect calls one kind of provider. It is safe for concurrent use.
//
// The URL of a call is the base URL of the provider, and its Key goes wherever the dialect wants it.
type Dialect interface {
	// Chat makes a call whose Body is a request to Chat Completions. A 2xx answer is a chat completion, or, when Stream is set, an event
	// stream of its chunks. Any other status, and any event that is an error, comes as the provider sent it. An error of type
	// *openai.RequestError says that the request can't be put into the dialect, which is the client's affair; other errors are those of
	// upstream.Client.Do.
	Chat(ctx context.Context, call upstream.Call) (*upstream.Response, error)
	// Embed makes a call whose Body is a request to Embeddings.
	Embed(ctx context.Context, call upstream.Call) (*upstream.Response, error)
}

// OpenAI is the plain dialect: most providers, and local engines, take OpenAI's requests as they are.
type OpenAI struct{ Client Client }

var _ Dialect = OpenAI{}

// Chat passes the call on.
func (d OpenAI) Chat(ctx context.Context, call upstream.Call) (*upstream.Response, error) {
	return d.do(ctx, call, "/chat/completions")
}

// Embed passes the call on.
func (d OpenAI) Embed(ctx context.Context, call upstream.Call) (*upstream.Response, error) {
	return d.do(ctx, call, "/embeddings")
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
	// Completion translates a whole 2xx answer. A body that is no answer, such as an error that came with status 200, is returned as it is.
	Completion(body []byte) []byte
	// Events translates an event stream while it is read. The stream that comes out ends with [DONE] only if the provider's ended properly;
	// events that are errors are passed on as they came.
	Events(r io.Reader) io.Reader
}

// Embedder is a Translator whose protocol has embeddings.
type Embedder interface {
	// Embeddings translates a request to Embeddings. The error is an *openai.RequestError that names what can't be translated. The answer needs
	// no translation: package embed reads those of all protocols.
	Embeddings(body []byte) (Native, error)
}

// maxAnswer bounds a whole answer that is translated.
const maxAnswer = 64 << 20

// Translated is the dialect of a provider that a Translator knows.
type Translated struct {
	Client     Client
	Translator Translator
}

var _ Dialect = Translated{}

// Chat translates the call and its answer.
func (d Translated) Chat(ctx context.Context, call upstream.Call) (*upstream.Response, error) {
	native, err := d.Translator.Request(call.Body, call.Stream)
	if err != nil {
		return nil, err
	}
	resp, err := d.do(ctx, call, native)
	if err != nil || resp.Status/100 != 2 {
		return resp, err
	}
	if isEvents(resp.Header) {
		resp.Body = d.Translator.Events(resp.Body)
		return resp, nil
	}
	body := &lazy{src: resp.Body, translate: d.Translator.Completion}
	resp.Body, resp.Length = body, -1
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
	return d.do(ctx, call, native)
}

func (d Translated) do(ctx context.Context, call upstream.Call, native Native) (*upstream.Response, error) {
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

func isEvents(h http.Header) bool {
	return strings.HasPrefix(strings.ToLower(h.Get("Content-Type")), "text/event-stream")
}

// lazy is a whole answer that is translated when it is read.
type lazy struct {
	src       io.Reader
	translate func([]byte) []byte
	rest      []byte
	read      bool
}

func (l *lazy) Read(p []byte) (int, error) {
	if !l.read {
		body, err := io.ReadAll(io.LimitReader(l.src, maxAnswer))
		if err != nil {
			return 0, err
		}
		l.rest, l.read = l.translate(body), true
	}
	if len(l.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}
