package ollama

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strings"
	"sync"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/openai"
)

// Dialect speaks to servers whose base URL ends with /v1; their native operations are beside it. It is safe for concurrent use.
type Dialect struct {
	client dialect.Client
	plain  dialect.OpenAI

	mu     sync.Mutex
	models map[modelKey]*state
}

var _ dialect.Dialect = (*Dialect)(nil)

// New makes a dialect that calls through the client.
func New(client dialect.Client) *Dialect {
	return &Dialect{client: client, plain: dialect.OpenAI{Client: client}, models: map[modelKey]*state{}}
}

// Chat passes the call on, or makes it a native one when the window must be raised.
func (d *Dialect) Chat(ctx context.Context, call upstream.Call) (*dialect.Response, error) {
	window := d.window(ctx, call)
	if window == 0 {
		return d.plain.Chat(ctx, call)
	}
	body, err := Request(call.Body, window, call.Stream)
	if err != nil {
		return nil, err
	}
	call.URL, call.Body = native(call.URL, "/api/chat"), body
	if call.Stream {
		call.Header.Set("Accept", "application/x-ndjson")
	}
	authorize(call)
	resp, err := dialect.Plain(d.client.Do(ctx, call))
	if err == nil && resp.Status/100 == 2 && !strings.Contains(resp.Header.Get("Content-Type"), "html") {
		translate(resp, call.Stream)
	}
	return resp, err
}

// Embed passes the call on.
func (d *Dialect) Embed(ctx context.Context, call upstream.Call) (*upstream.Response, error) {
	return d.plain.Embed(ctx, call)
}

// Pass passes the call on.
func (d *Dialect) Pass(ctx context.Context, call upstream.Call, path string) (*upstream.Response, error) {
	return d.plain.Pass(ctx, call, path)
}

// translate says how a native answer is read. The body of a stream has lines, no events.
func translate(resp *dialect.Response, stream bool) {
	id := newID()
	if !stream {
		resp.Completion = func(out *answer.Chunk, body []byte) bool { return Completion(out, body, id) }
		return
	}
	resp.Kind = dialect.Events
	resp.Events = func(*openai.Reader) answer.Source { return Events(resp.Body, id) }
}

// native gives the address of a native operation of the server with this base URL.
func native(base, path string) string {
	address, query, found := strings.Cut(base, "?")
	address = strings.TrimSuffix(strings.TrimRight(address, "/"), "/v1")
	if found {
		address += "?" + query
	}
	return dialect.Operation(address, path)
}

func authorize(call upstream.Call) {
	if call.Key != "" {
		call.Header.Set("Authorization", "Bearer "+call.Key)
	}
}

// newID names an answer; native ones have no name.
func newID() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// jsonHeader is what a question about the server is sent with: the operator's headers, but not what belongs to the chat.
func jsonHeader(h http.Header) http.Header {
	h = h.Clone()
	if h == nil {
		h = http.Header{}
	}
	h.Set("Accept", "application/json")
	h.Set("Content-Type", "application/json")
	return h
}
