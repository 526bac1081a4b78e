package compat_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/answer/answertest"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/dialect/compat"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/openai"
	"hydrallm/shared/testkit/fixtures"
)

// provider answers each call with the next fixture and keeps what it was sent.
type provider struct {
	answers []fixtures.Fixture
	calls   []upstream.Call
}

func (p *provider) Do(ctx context.Context, call upstream.Call) (*upstream.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	answer := p.answers[len(p.calls)]
	p.calls = append(p.calls, call)
	body := io.NopCloser(strings.NewReader(string(answer.Body)))
	return upstream.NewResponse(ctx, cancel, answer.Status, answer.Header, body), nil
}

// A client that drops signatures still has them on its next request, whether it streams or not; after an error too.
func TestDialectOfGemini(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"gemini/stream-tools.sse", "gemini/chat-tools.json"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			p := &provider{answers: []fixtures.Fixture{fixtures.Get("gemini/error-400-signature.json"), fixtures.Get(file), fixtures.Get(file)}}
			d := compat.Dialect{Dialect: dialect.OpenAI{Client: p}, Vendor: "gemini", Signatures: compat.NewSignatures()}
			chat := func(body string, status int) string {
				resp, err := d.Chat(t.Context(), upstream.Call{URL: "https://h/v1", Key: "k", Header: http.Header{}, Body: []byte(body)})
				require.NoError(t, err)
				defer resp.Close()
				require.Equal(t, status, resp.Status)
				got, err := answertest.Body(resp)
				require.NoError(t, err)
				require.Equal(t, string(p.answers[len(p.calls)-1].Body), got)
				return string(p.calls[len(p.calls)-1].Body)
			}
			history := hi + "," + step(call("function-call-1001", ""))
			require.Equal(t, gemini("gemini-3-flash", hi+","+step(call("function-call-1001", signedBy(bypass)))), chat(gemini("gemini-3-flash", history), 400))
			require.Equal(t, gemini("gemini-3-flash", hi), chat(`{"model":"gemini-3-flash","messages":[`+hi+`],"store":false}`, 200))
			require.Equal(t, gemini("gemini-3-flash", hi+","+step(call("function-call-1001", signedBy("U0lHLWZ4LTE=")))), chat(gemini("gemini-3-flash", history), 200))
			require.Equal(t, "https://h/v1/chat/completions", p.calls[0].URL)
		})
	}
}

func TestDialectOfOthers(t *testing.T) {
	t.Parallel()
	p := &provider{answers: fixtures.Of("openai")}
	d := compat.Dialect{
		Dialect: dialect.OpenAI{Client: p}, Vendor: "mistral", Signatures: compat.NewSignatures(),
		Keep: func(name string) bool { return name == "store" },
	}
	resp, err := d.Chat(t.Context(), upstream.Call{URL: "https://h", Header: http.Header{}, Body: []byte(request(hi, `,"seed":1,"user":"u","store":true`))})
	require.NoError(t, err)
	resp.Close()
	require.Equal(t, request(hi, `,"random_seed":1,"store":true`), string(p.calls[0].Body))

	_, err = d.Chat(t.Context(), upstream.Call{URL: "https://h", Header: http.Header{}, Body: []byte(`{`)})
	require.ErrorAs(t, err, new(*openai.RequestError))
	require.Len(t, p.calls, 1)

	vectors, err := d.Embed(t.Context(), upstream.Call{URL: "https://h", Header: http.Header{}, Body: []byte(`{"input":"a","user":"u"}`)})
	require.NoError(t, err)
	vectors.Close()
	require.Equal(t, `{"input":"a","user":"u"}`, string(p.calls[1].Body))
}
