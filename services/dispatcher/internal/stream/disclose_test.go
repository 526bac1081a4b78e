package stream_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/answer/answertest"
	"hydrallm/services/dispatcher/internal/surface"
)

var disclosing = options{
	Model: "auto", IncludeUsage: true, Parts: []byte(`[{"type":"retry"}]`),
	Usage: []surface.Member{{Name: "gateway_provider", Value: []byte(`"groq"`)}, {Name: "gateway_key_index", Value: []byte("2")}},
}

// C-07: a whole answer tells who gave it, whatever the upstream says of itself.
func TestWholeAnswerDiscloses(t *testing.T) {
	t.Parallel()
	for name, usage := range map[string]string{
		"with a usage":                   `,"usage":{"prompt_tokens":1,"total_tokens":3}`,
		"without one":                    ``,
		"with none":                      `,"usage":null`,
		"with that of a gateway upwards": `,"usage":{"prompt_tokens":1,"gateway_provider":"other","total_tokens":3}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := `{"id":"c1","created":7,"model":"real","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]` + usage + `}`
			got := gjson.ParseBytes(answertest.Completion([]byte(body), disclosing))
			require.Equal(t, "auto", got.Get("model").Str)
			require.Equal(t, "groq", got.Get("usage.gateway_provider").Str)
			require.EqualValues(t, 2, got.Get("usage.gateway_key_index").Int())
			require.True(t, got.Get("usage.prompt_tokens").Exists())
			require.Equal(t, `[{"type":"retry"}]`, got.Get("choices.0.message.parts").Raw)
			require.Equal(t, "hi", got.Get("choices.0.message.content").Str)
		})
	}
}

// a stream has one id, time and model, and one usage chunk with the facts at its end.
func TestStreamDiscloses(t *testing.T) {
	t.Parallel()
	var in strings.Builder
	for _, data := range []string{
		`{"id":"c1","created":7,"model":"real","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}],"usage":null}`,
		`{"id":"c2","created":8,"model":"other","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`,
		`{"id":"c3","created":9,"model":"real","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`,
	} {
		in.WriteString("data: " + data + "\n\n")
	}
	out, problem, err := pass(in.String(), disclosing)
	require.NoError(t, err)
	require.Nil(t, problem)
	require.Equal(t, `data: {"id":"c1","created":7,"model":"auto","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}]}

data: {"id":"c1","created":7,"model":"auto","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: {"id":"c1","object":"chat.completion.chunk","created":7,"model":"auto","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"gateway_provider":"groq","gateway_key_index":2}}

data: [DONE]

`, out)
}
