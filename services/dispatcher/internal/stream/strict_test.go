package stream_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/answer/answertest"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// client reads a stream as a strict client does and fails on what would confuse one.
type client struct {
	content, reasoning, finish map[int]string
	tools                      map[int][]tool
	usage                      []map[string]any
	done                       bool
	events                     int
}

type tool struct{ id, name, typ, args string }

type wireChunk struct {
	Choices *[]struct {
		Index *int
		Delta struct {
			Role             string
			Content          any
			ReasoningContent string `json:"reasoning_content"`
			Reasoning        string
			ToolCalls        []struct {
				Index    *int
				ID       string
				Type     string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		FinishReason *string `json:"finish_reason"`
	}
	Usage map[string]any
	Error *json.RawMessage
}

func readStrictly(tb testing.TB, text string) client {
	tb.Helper()
	c := client{content: map[int]string{}, reasoning: map[int]string{}, finish: map[int]string{}, tools: map[int][]tool{}}
	if text != "" {
		require.True(tb, strings.HasSuffix(text, "\n\n") || strings.HasSuffix(text, "\r\n\r\n"), "the last event is not ended: %q", text)
	}
	events := openai.NewReader(strings.NewReader(text), 0)
	for {
		e, err := events.Next()
		if errors.Is(err, io.EOF) {
			return c
		}
		require.NoError(tb, err)
		if e.Data == nil {
			continue
		}
		require.False(tb, c.done, "something follows [DONE]")
		c.events++
		if string(e.Data) == "[DONE]" {
			c.done = true
			continue
		}
		c.read(tb, e.Data)
	}
}

func (c *client) read(tb testing.TB, data []byte) {
	tb.Helper()
	var ch wireChunk
	require.NoError(tb, json.Unmarshal(data, &ch), "%s", data)
	require.Nil(tb, ch.Error, "%s", data)
	require.NotNil(tb, ch.Choices, "%s", data)
	if len(*ch.Choices) == 0 && ch.Usage != nil {
		c.usage = append(c.usage, ch.Usage)
	}
	for _, choice := range *ch.Choices {
		require.NotNil(tb, choice.Index, "%s", data)
		i := *choice.Index
		require.Empty(tb, c.finish[i], "something follows the finish reason: %s", data)
		if text, ok := choice.Delta.Content.(string); ok {
			c.content[i] += text
		}
		if choice.Delta.ReasoningContent != "" {
			c.reasoning[i] += choice.Delta.ReasoningContent
		} else {
			c.reasoning[i] += choice.Delta.Reasoning
		}
		for _, call := range choice.Delta.ToolCalls {
			require.NotNil(tb, call.Index, "%s", data)
			n := *call.Index
			require.LessOrEqual(tb, n, len(c.tools[i]), "%s", data)
			if n == len(c.tools[i]) {
				require.NotEmpty(tb, call.ID, "%s", data)
				require.NotEmpty(tb, call.Function.Name, "%s", data)
				require.Equal(tb, "function", call.Type, "%s", data)
				c.tools[i] = append(c.tools[i], tool{id: call.ID, name: call.Function.Name, typ: call.Type})
			}
			c.tools[i][n].args += call.Function.Arguments
		}
		if choice.FinishReason != nil {
			require.NotEmpty(tb, *choice.FinishReason, "%s", data)
			c.finish[i] = *choice.FinishReason
		}
	}
}

type options = answertest.Options

// pass passes the events of a text on as the relay does.
func pass(text string, opts options) (out string, problem []byte, err error) {
	return answertest.Relay(answertest.Chat(strings.NewReader(text)), opts)
}

// synthesize gives a whole answer as a stream.
func synthesize(tb testing.TB, body []byte, opts options) string {
	tb.Helper()
	out, err := answertest.Synthesize(body, opts)
	require.NoError(tb, err)
	return out
}

func delta(d string) string {
	return `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` + d + `,"finish_reason":null}]}` + "\n\n"
}

func content(s string) string {
	return delta(`{"content":` + string(rawjson.AppendString(nil, s)) + `}`)
}

func finish(reason string) string {
	return `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}` + "\n\n"
}

const (
	doneEvent  = "data: [DONE]\n\n"
	usageChunk = `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}` + "\n\n"
)

func completion(text string) []byte {
	encoded, _ := json.Marshal(text)
	return fmt.Appendf(nil, `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":"stop"}]}`, encoded)
}
