package reply_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/agent/reply"
	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/answer/answertest"
	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/openai"
)

var sample = reply.Answer{
	Head: reply.Head{ID: "chatcmpl-1", Model: "vendor/<xi>", Created: 1790000000},
	Text: "The \"lamp\" is\n<green> \xff& 緑.", Reasoning: "Look.", Finish: "length",
	Usage: reply.Usage{Prompt: 30, Completion: 8, Cached: 5, Reasoning: 2},
}

const usage = `{"prompt_tokens":30,"completion_tokens":8,"total_tokens":38,"prompt_tokens_details":{"cached_tokens":5},"completion_tokens_details":{"reasoning_tokens":2}}`

// text stays UTF-8, and what is none is replaced.
const content = `"The \"lamp\" is\n<green> ` + "\ufffd" + `& 緑."`

// whole is the sample as a client gets it.
func whole(t *testing.T, stream bool) string {
	t.Helper()
	text, err := answertest.Body(sample.Response(&upstream.Response{Status: 200, Body: http.NoBody}, stream))
	require.NoError(t, err)
	return text
}

func TestWhole(t *testing.T) {
	t.Parallel()
	require.Equal(t, `{"id":"chatcmpl-1","object":"chat.completion","created":1790000000,"model":"vendor/<xi>","choices":[{"index":0,"message":`+
		`{"role":"assistant","content":`+content+`,"refusal":null,"reasoning_content":"Look."},"logprobs":null,"finish_reason":"length"}],"usage":`+
		usage+`}`, whole(t, false))
}

func TestStream(t *testing.T) {
	t.Parallel()
	head := `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1790000000,"model":"vendor/<xi>","choices":`
	chunk := func(delta, finish string) string {
		return head + `[{"index":0,"delta":` + delta + `,"logprobs":null,"finish_reason":` + finish + "}]}\n\n"
	}
	require.Equal(t, chunk(`{"role":"assistant","content":""}`, "null")+chunk(`{"reasoning_content":"Look."}`, "null")+
		chunk(`{"content":`+content+`}`, "null")+chunk(`{}`, `"length"`)+head+`[],"usage":`+usage+"}\n\n"+openai.Done, whole(t, true))
}

// The dispatcher makes the same answer of a stream.
func TestStreamAndWholeAgree(t *testing.T) {
	t.Parallel()
	got, problem, err := answertest.Collect(sample.Events(), answertest.Options{Choices: 1})
	require.NoError(t, err)
	require.Nil(t, problem)
	for _, path := range []string{
		"id", "model", "created", "usage", "choices.0.finish_reason", "choices.0.message.content", "choices.0.message.reasoning_content",
	} {
		require.Equal(t, gjson.Get(whole(t, false), path).Raw, gjson.GetBytes(got, path).Raw, path)
	}
}

func TestErrorEvent(t *testing.T) {
	t.Parallel()
	var q answer.Queue
	reply.Failed(&q, 429, "APIError", `slow "down"`)
	c, err := q.Next()
	require.NoError(t, err)
	require.Equal(t, answer.Problem, c.Kind)
	require.Equal(t, `{"error":{"message":"slow \"down\"","type":"APIError","param":null,"code":429}}`, string(c.Data))
	require.Equal(t, classify.Rate, classify.Of(classify.Answer{Status: 200, Event: true, Body: c.Data}).Class)
}
