package reply_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/agent/reply"
	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/stream"
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

func TestJSON(t *testing.T) {
	t.Parallel()
	require.Equal(t, `{"id":"chatcmpl-1","object":"chat.completion","created":1790000000,"model":"vendor/<xi>","choices":[{"index":0,"message":`+
		`{"role":"assistant","content":`+content+`,"reasoning_content":"Look.","refusal":null},"logprobs":null,"finish_reason":"length"}],"usage":`+
		usage+`}`, string(sample.JSON()))
	require.Equal(t, classify.Success, classify.Of(classify.Answer{Status: 200, Body: sample.JSON()}).Class)
}

func TestStream(t *testing.T) {
	t.Parallel()
	head := `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1790000000,"model":"vendor/<xi>","choices":`
	chunk := func(delta, finish string) string {
		return head + `[{"index":0,"delta":` + delta + `,"logprobs":null,"finish_reason":` + finish + "}]}\n\n"
	}
	require.Equal(t, chunk(`{"role":"assistant","content":""}`, "null")+chunk(`{"reasoning_content":"Look."}`, "null")+
		chunk(`{"content":`+content+`}`, "null")+chunk(`{}`, `"length"`)+head+`[],"usage":`+usage+"}\n\n"+openai.Done, string(sample.Stream()))
}

// The dispatcher makes the same answer of a stream.
func TestStreamAndJSONAgree(t *testing.T) {
	t.Parallel()
	c, events := stream.NewCollector(stream.Options{Choices: 1}), openai.NewReader(strings.NewReader(string(sample.Stream())), 0)
	for !c.Done() {
		e, err := events.Next()
		require.NoError(t, err)
		_, err = c.Add(e)
		require.NoError(t, err)
	}
	got, err := c.Completion()
	require.NoError(t, err)
	for _, path := range []string{
		"id", "model", "created", "usage", "choices.0.finish_reason", "choices.0.message.content", "choices.0.message.reasoning_content",
	} {
		require.Equal(t, gjson.GetBytes(sample.JSON(), path).Raw, gjson.GetBytes(got, path).Raw, path)
	}
}

func TestErrorEvent(t *testing.T) {
	t.Parallel()
	event := reply.AppendError(nil, 429, "APIError", `slow "down"`)
	require.Equal(t, `data: {"error":{"message":"slow \"down\"","type":"APIError","param":null,"code":429}}`+"\n\n", string(event))
	data := []byte(strings.TrimPrefix(strings.TrimSpace(string(event)), "data: "))
	require.Equal(t, classify.Rate, classify.Of(classify.Answer{Status: 200, Event: true, Body: data}).Class)
}
