package dialect_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
)

// fixed answers every call with a body.
type fixed string

func (f fixed) Do(ctx context.Context, _ upstream.Call) (*upstream.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	return upstream.NewResponse(ctx, cancel, http.StatusOK, http.Header{}, io.NopCloser(strings.NewReader(string(f)))), nil
}

func textCall(t *testing.T, body string) *dialect.Response {
	t.Helper()
	d := dialect.TextCompletions{Dialect: dialect.OpenAI{Client: fixed(body)}}
	require.Equal(t, contract.SurfaceCompletions, d.Surface())
	resp, err := d.Native(t.Context(), upstream.Call{URL: "http://h/v1", Header: http.Header{}})
	require.NoError(t, err)
	t.Cleanup(resp.Close)
	return resp
}

// what an answer says is known in the hub, and the answer itself comes with it.
func TestTextCompletions(t *testing.T) {
	t.Parallel()
	const whole = `{"id":"c","choices":[{"index":0,"text":"a","finish_reason":"stop"},{"index":1,"text":null}],"usage":{"total_tokens":3}}`
	var c answer.Chunk
	require.True(t, textCall(t, whole).Whole(&c, []byte(whole)))
	require.Equal(t, whole, string(c.Raw))
	require.Equal(t, contract.SurfaceCompletions, c.Of)
	require.Equal(t, []string{`"a"`, `"stop"`}, []string{string(c.Choices[0].Content), string(c.Choices[0].Finish)})
	require.Nil(t, c.Choices[1].Content)
	require.JSONEq(t, `{"total_tokens":3}`, string(c.Usage))
	for _, other := range []string{`{"error":{"message":"no"}}`, `{}`, `[]`, `<html>`, `{"detail":"x"}`} {
		require.False(t, textCall(t, other).Whole(&c, []byte(other)), other)
	}
	_, err := dialect.TextCompletions{}.CountTokens(t.Context(), upstream.Call{})
	require.ErrorIs(t, err, dialect.ErrUnsupported)
}

// Whatever comes, each event is given once, as it came, and what it means is JSON.
func FuzzTextEvents(f *testing.F) {
	f.Add("data: {\"choices\":[{\"index\":0,\"text\":\"a\"}]}\n\n: ping\n\ndata: {\"choices\":[{\"text\":5,\"finish_reason\":\"stop\"}],\"usage\":{\"total_tokens\":3}}\r\n\r\ndata: [DONE]\n\n")
	f.Add("event: error\ndata: {\"message\":\"x\"}\n\ndata: {\"choices\":[{\"text\":\"a")
	f.Fuzz(func(t *testing.T, text string) {
		resp := textCall(t, text)
		events := openai.NewReader(resp.Body, 1<<20)
		source := resp.Source(events, nil)
		for {
			c, err := source.Next()
			if err != nil {
				return
			}
			for i := range c.Choices {
				for _, raw := range [][]byte{c.Choices[i].Content, c.Choices[i].Finish} {
					require.True(t, raw == nil || json.Valid(raw), "%q", raw)
				}
			}
			require.True(t, c.Usage == nil || json.Valid(c.Usage))
			require.True(t, c.Raw == nil || c.Of == contract.SurfaceCompletions || c.Kind == answer.Comment)
		}
	})
}
