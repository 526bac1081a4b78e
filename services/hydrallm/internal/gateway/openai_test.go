package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/fakellm"
)

// sdk gives the official client, which changes nothing but its base URL.
func (x running) sdk(t *testing.T) openai.Client {
	t.Helper()
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return openai.NewClient(option.WithBaseURL(x.url+"/v1"), option.WithAPIKey("of-the-client"), option.WithMaxRetries(0),
		option.WithHTTPClient(&http.Client{Transport: tr}))
}

func question(model string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")},
	}
}

func TestOpenAISDKChat(t *testing.T) {
	t.Parallel()
	x := start(t)
	x.a.Queue(fakellm.Chat("Hello world"))
	c := x.sdk(t)
	got, err := c.Chat.Completions.New(t.Context(), question("m"))
	require.NoError(t, err)
	require.Equal(t, "Hello world", got.Choices[0].Message.Content)
	require.Equal(t, "stop", got.Choices[0].FinishReason)
	require.Equal(t, int64(5), got.Usage.TotalTokens)

	seen := x.a.Requests()
	require.Len(t, seen, 1)
	require.Equal(t, "/v1/chat/completions", seen[0].Path)
	require.Equal(t, "real-a", seen[0].Model())
	require.Equal(t, "key-of-provider-a", seen[0].Key(), "the key of the client never reaches an upstream")
}

func TestOpenAISDKStream(t *testing.T) {
	t.Parallel()
	x := start(t)
	x.a.Queue(fakellm.Stream("Hel", "lo ", "wor", "ld"))
	c := x.sdk(t)
	stream := c.Chat.Completions.NewStreaming(t.Context(), question("m"))
	defer func() { require.NoError(t, stream.Close()) }()
	var acc openai.ChatCompletionAccumulator
	chunks := 0
	for stream.Next() {
		chunks++
		require.True(t, acc.AddChunk(stream.Current()))
	}
	require.NoError(t, stream.Err())
	require.Equal(t, "Hello world", acc.Choices[0].Message.Content)
	require.Equal(t, "stop", acc.Choices[0].FinishReason)
	require.GreaterOrEqual(t, chunks, 6)
}

func TestOpenAISDKModels(t *testing.T) {
	t.Parallel()
	x := start(t)
	c := x.sdk(t)
	var names []string
	pages := c.Models.ListAutoPaging(t.Context())
	for pages.Next() {
		names = append(names, pages.Current().ID)
	}
	require.NoError(t, pages.Err())
	require.Subset(t, names, []string{"m", "ab"})
	require.Empty(t, x.a.Requests(), "R-046: no upstream is asked")
}

// The first upstream fails, the second one answers; the client sees nothing of it.
func TestOpenAISDKFailover(t *testing.T) {
	t.Parallel()
	x := start(t)
	x.a.Queue(fakellm.Error(http.StatusInternalServerError, "boom"))
	x.b.Queue(fakellm.Stream("from ", "b"))
	c := x.sdk(t)
	stream := c.Chat.Completions.NewStreaming(t.Context(), question("ab"))
	defer func() { require.NoError(t, stream.Close()) }()
	var acc openai.ChatCompletionAccumulator
	for stream.Next() {
		acc.AddChunk(stream.Current())
	}
	require.NoError(t, stream.Err())
	require.Equal(t, "from b", acc.Choices[0].Message.Content)
}

// the SDK finds status, type, code and message of every error where it looks for them.
func TestOpenAISDKErrors(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		model   string
		answer  fakellm.Answer
		status  int
		code    string
		message string
	}{
		"unknown model":   {model: "none", status: http.StatusNotFound, code: "model_not_found", message: "none"},
		"upstream fails":  {model: "m", answer: fakellm.Error(http.StatusBadGateway, "secret detail"), status: http.StatusServiceUnavailable, code: "all_upstreams_failed", message: "all upstreams failed"},
		"request refused": {model: "m", answer: fakellm.JSON(http.StatusBadRequest, `{"error":{"message":"bad value","type":"invalid_request_error","param":"temperature","code":"bad"}}`), status: http.StatusBadRequest, code: "bad", message: "bad value"},
	}
	for name, tt := range tests {
		for _, stream := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " stream", false: ""}[stream], func(t *testing.T) {
				t.Parallel()
				x := start(t)
				x.a.Queue(tt.answer)
				c := x.sdk(t)
				var err error
				if stream {
					s := c.Chat.Completions.NewStreaming(t.Context(), question(tt.model))
					require.False(t, s.Next())
					err = s.Err()
				} else {
					_, err = c.Chat.Completions.New(t.Context(), question(tt.model))
				}
				var failure *openai.Error
				require.ErrorAs(t, err, &failure)
				require.Equal(t, tt.status, failure.StatusCode)
				require.Equal(t, tt.code, failure.Code)
				require.Contains(t, strings.ToLower(failure.Message), tt.message)
				require.NotContains(t, failure.RawJSON(), "secret detail", "R-042")
			})
		}
	}
}
