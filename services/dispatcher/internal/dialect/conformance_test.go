package dialect_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/agent/openclaw"
	"hydrallm/services/dispatcher/internal/answer/answertest"
	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/dialect/anthropic"
	"hydrallm/services/dispatcher/internal/dialect/compat"
	"hydrallm/services/dispatcher/internal/dialect/gemini"
	"hydrallm/services/dispatcher/internal/dialect/ollama"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fixtures"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// subject is a dialect under test, with the samples of a provider that speaks it.
type subject struct {
	vendor    string // for the table of errors
	make      func(c dialect.Client) dialect.Dialect
	base      string // path of the base URL
	keyHeader string
	stream    string // sample of an event stream, whose answer is a text
	whole     string // sample of a whole answer
	failure   string // sample of a refusal
}

func compatible(vendor string) func(c dialect.Client) dialect.Dialect {
	return func(c dialect.Client) dialect.Dialect {
		return compat.Dialect{Dialect: dialect.OpenAI{Client: c}, Vendor: vendor, Signatures: compat.NewSignatures()}
	}
}

func translated(t dialect.Translator) func(c dialect.Client) dialect.Dialect {
	return func(c dialect.Client) dialect.Dialect { return dialect.Translated{Client: c, Translator: t} }
}

var subjects = map[string]subject{
	"openai": {
		make: func(c dialect.Client) dialect.Dialect { return dialect.OpenAI{Client: c} }, base: "/v1", keyHeader: "Authorization",
		stream: "openai/stream-text.sse", whole: "openai/chat-text.json", failure: "openai/error-429-rate.json",
	},
	"gemini, compatible": {
		vendor: "gemini", make: compatible("gemini"), base: "/v1beta/openai", keyHeader: "Authorization",
		stream: "gemini/stream-text.sse", whole: "openai/chat-text.json", failure: "gemini/error-429.json",
	},
	"groq": {
		vendor: "groq", make: compatible("groq"), base: "/openai/v1", keyHeader: "Authorization",
		stream: "groq/stream-text.sse", whole: "openai/chat-text.json", failure: "groq/error-429-tpm.json",
	},
	"cerebras": {
		vendor: "cerebras", make: compatible("cerebras"), base: "/v1", keyHeader: "Authorization",
		stream: "cerebras/stream-text.sse", whole: "openai/chat-text.json", failure: "cerebras/error-429.json",
	},
	"openrouter": {
		vendor: "openrouter", make: compatible("openrouter"), base: "/api/v1", keyHeader: "Authorization",
		stream: "openrouter/stream-text.sse", whole: "openai/chat-text.json", failure: "openrouter/error-429-upstream.json",
	},
	"mistral": {
		vendor: "mistral", make: compatible("mistral"), base: "/v1", keyHeader: "Authorization",
		stream: "mistral/stream-text.sse", whole: "openai/chat-text.json", failure: "mistral/error-429.json",
	},
	"deepseek": {
		vendor: "deepseek", make: compatible("deepseek"), base: "/v1", keyHeader: "Authorization",
		stream: "deepseek/stream-reasoning.sse", whole: "deepseek/chat-keepalive.json", failure: "deepseek/error-402.json",
	},
	"llama.cpp": {
		vendor: "llamacpp", make: compatible("llamacpp"), base: "/v1", keyHeader: "Authorization",
		stream: "llamacpp/stream-text.sse", whole: "openai/chat-text.json", failure: "llamacpp/error-503-loading.json",
	},
	"anthropic": {
		vendor: "anthropic", make: translated(anthropic.Translator{}), base: "", keyHeader: "X-Api-Key",
		stream: "anthropic/stream-text.sse", whole: "anthropic/message-text.json", failure: "anthropic/error-529.json",
	},
	"gemini": {
		vendor: "gemini", make: translated(gemini.Translator{}), base: "/v1beta", keyHeader: "X-Goog-Api-Key",
		stream: "gemini-native/stream-text.sse", whole: "gemini-native/generate.json", failure: "gemini-native/error-429.json",
	},
	"ollama": {
		vendor: "ollama", make: func(c dialect.Client) dialect.Dialect { return ollama.New(c) }, base: "/v1", keyHeader: "Authorization",
		stream: "ollama/stream-text.sse", whole: "openai/chat-text.json", failure: "ollama/error-503-busy.json",
	},
	"openclaw": {
		vendor: "openclaw", make: func(c dialect.Client) dialect.Dialect { return openclaw.New(openclaw.Config{}, c) }, base: "/v1",
		keyHeader: "Authorization", stream: "openclaw/stream-text.sse", whole: "openai/chat-text.json", failure: "openclaw/error-403.json",
	},
}

const (
	key      = "key-of-the-conformance-suite"
	question = `{"model":"some-model","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hi"}],"stream":`
)

// exchange is one call of a dialect to a server that answers with a sample.
type exchange struct {
	sent *http.Request
	resp *dialect.Response
	err  error
	gone chan struct{} // closed when the server sees the caller leave
}

// call makes a chat call and gives what came of it. The server sends body and then, if hang is set, nothing more until the caller leaves.
func (s subject) call(ctx context.Context, t *testing.T, f fixtures.Fixture, body []byte, streaming, hang bool) *exchange {
	t.Helper()
	x := &exchange{gone: make(chan struct{})}
	seen := make(chan *http.Request, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			return
		}
		seen <- r
		maps.Copy(w.Header(), f.Header)
		w.WriteHeader(f.Status)
		_, _ = w.Write(body)
		if hang {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			close(x.gone)
		}
	}))
	t.Cleanup(srv.Close)
	client := upstream.New(upstream.Config{})
	t.Cleanup(client.Close)
	text := question + "false}"
	if streaming {
		text = question + "true}"
	}
	x.resp, x.err = s.make(client).Chat(ctx, upstream.Call{
		URL: srv.URL + s.base, Key: key, Header: http.Header{}, Body: []byte(text), Stream: streaming, HeadersTimeout: time.Minute, RequestTimeout: time.Minute,
	})
	x.sent = <-seen
	return x
}

// The suite that every dialect passes: whatever goes over the wire, its user sees Chat Completions.
func TestConformance(t *testing.T) {
	t.Parallel()
	for name, s := range subjects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for what, test := range map[string]func(*testing.T){
				"stream": s.testStream, "cut stream": s.testCut, "whole answer": s.testWhole, "refusal": s.testRefusal,
				"caller leaves": s.testLeaves, "no JSON": s.testNoJSON,
			} {
				t.Run(what, func(t *testing.T) {
					t.Parallel()
					test(t)
				})
			}
		})
	}
}

// An event stream ends once and says something, and the key is where it belongs and nowhere else.
func (s subject) testStream(t *testing.T) {
	t.Helper()
	f := fixtures.Get(s.stream)
	x := s.call(t.Context(), t, f, f.Body, true, false)
	require.NoError(t, x.err)
	defer x.resp.Close()
	require.Equal(t, http.StatusOK, x.resp.Status)
	require.True(t, strings.HasPrefix(x.resp.Header.Get("Content-Type"), "text/event-stream"))
	body, err := answertest.Body(x.resp)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(body, "[DONE]"))
	answer, err := collected(body)
	require.NoError(t, err)
	require.NotEmpty(t, gjson.GetBytes(answer, "choices.0.message.content").Str)
	require.Contains(t, []string{"stop", "length"}, gjson.GetBytes(answer, "choices.0.finish_reason").Str)

	require.Contains(t, x.sent.Header.Get(s.keyHeader), key)
	require.NotContains(t, x.sent.URL.String(), key)
	x.sent.Header.Del(s.keyHeader)
	for header, values := range x.sent.Header {
		require.NotContains(t, strings.Join(values, " "), key, header)
	}
}

// A stream that breaks off before its end is one that broke off, after the translation too.
func (s subject) testCut(t *testing.T) {
	t.Helper()
	f := fixtures.Get(s.stream)
	half := f.Body[:len(f.Body)/3]
	x := s.call(t.Context(), t, f, half, true, false)
	require.NoError(t, x.err)
	defer x.resp.Close()
	body, err := answertest.Body(x.resp)
	require.NoError(t, err)
	require.NotContains(t, body, "[DONE]")
	_, err = collected(body)
	require.True(t, errors.Is(err, classify.ErrTruncated) || errors.Is(err, classify.ErrEmptyAnswer), "%v", err)
}

func (s subject) testWhole(t *testing.T) {
	t.Helper()
	f := fixtures.Get(s.whole)
	x := s.call(t.Context(), t, f, f.Body, false, false)
	require.NoError(t, x.err)
	defer x.resp.Close()
	body, err := answertest.Body(x.resp)
	require.NoError(t, err)
	require.True(t, answertest.Answers([]byte(body)))
	require.NotEmpty(t, gjson.Get(body, "choices.0.message.content").Str)
	require.NotZero(t, answertest.Usage([]byte(body)).Total)
}

// A refusal keeps its status and its words, for the one table that classifies them.
func (s subject) testRefusal(t *testing.T) {
	t.Helper()
	f := fixtures.Get(s.failure)
	for _, streaming := range []bool{false, true} {
		x := s.call(t.Context(), t, f, f.Body, streaming, false)
		require.NoError(t, x.err)
		defer x.resp.Close()
		require.Equal(t, f.Status, x.resp.Status)
		body, err := io.ReadAll(x.resp.Body)
		require.NoError(t, err)
		require.Equal(t, string(f.Body), string(body))
		v := classify.Of(classify.Answer{Provider: s.vendor, Status: x.resp.Status, Header: x.resp.Header, Body: body})
		require.NotEqual(t, classify.Success, v.Class)
	}
}

// who leaves takes the call along.
func (s subject) testLeaves(t *testing.T) {
	t.Helper()
	f := fixtures.Get(s.stream)
	ctx, leave := context.WithCancelCause(t.Context())
	x := s.call(ctx, t, f, f.Body[:len(f.Body)/3], true, true)
	require.NoError(t, x.err)
	defer x.resp.Close()
	leave(classify.ErrClientGone)
	_, err := answertest.Body(x.resp)
	require.ErrorIs(t, err, classify.ErrClientGone)
	select {
	case <-x.gone:
	case <-time.After(await.Limit):
		t.Fatal("the provider still works for nobody")
	}
}

// A page in the place of an answer is passed on for what it is, and is no answer.
func (s subject) testNoJSON(t *testing.T) {
	t.Helper()
	page := fixtures.Get("generic/cloudflare-522.html")
	page.Status = http.StatusOK
	x := s.call(t.Context(), t, page, page.Body, false, false)
	require.NoError(t, x.err)
	defer x.resp.Close()
	body, err := io.ReadAll(x.resp.Body)
	require.NoError(t, err)
	require.False(t, answertest.Answers(body))
	v := classify.Of(classify.Answer{Provider: s.vendor, Status: x.resp.Status, Header: x.resp.Header, Body: body})
	require.Equal(t, classify.Upstream, v.Class)
}

// collected reads a stream of chunks to the whole answer.
func collected(text string) ([]byte, error) {
	body, problem, err := answertest.Collect(answertest.Chat(strings.NewReader(text)), answertest.Options{Choices: 1})
	if problem != nil {
		return nil, classify.ErrTruncated
	}
	return body, err
}
