package execute

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/stream"
)

// of a long answer the beginning is kept, of whole characters; half a call is recognised as such.
func TestLongAnswersAreCut(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("한글", maxKept/4)
	short := shortened([]byte(`{"role":"assistant","content":"` + text + `","reasoning_content":"x"}`))
	require.True(t, json.Valid(short))
	got := gjson.GetBytes(short, "content").Str
	require.True(t, strings.HasPrefix(text, got))
	require.InDelta(t, maxKept, len(got), 3)
	require.False(t, gjson.GetBytes(short, "tool_calls").Exists())
	require.True(t, gjson.GetBytes(shortened([]byte(`{"role":"assistant","content":null,"tool_calls":[{"id":"c"}]}`)), "tool_calls").Exists())

	kept := transcript{said: &stream.Transcript{}}
	for range 2 * maxKept / 1000 {
		var c answer.Chunk
		c.Parse([]byte(`{"choices":[{"index":0,"delta":{"content":"` + strings.Repeat("a", 1000) + `"}}]}`))
		kept.take([]*answer.Chunk{&c})
	}
	require.True(t, kept.truncated)
	message := hubMessage(kept.said.Whole())
	require.Greater(t, len(message), maxKept/2)
	require.LessOrEqual(t, len(message), maxKept)
	require.Nil(t, hubMessage(&answer.Chunk{}))
}

// what is kept of an answer is the assistant's, whatever its server calls it, and has the text that came in parts.
func TestKeptMessages(t *testing.T) {
	t.Parallel()
	parse := func(text string) *answer.Chunk {
		c := &answer.Chunk{}
		c.Parse([]byte(text))
		return c
	}
	for _, role := range []string{``, `"role":null,`, `"role":"",`, `"role":"model",`, `"role":"user",`, `"role":"assistant",`} {
		whole := parse(`{"choices":[{"index":0,"message":{` + role + `"content":"a"},"finish_reason":"stop"}]}`)
		message := hubMessage(whole)
		require.JSONEq(t, `{"role":"assistant","content":"a"}`, string(message), role)
	}
	kept := transcript{said: &stream.Transcript{}}
	for _, content := range []string{`""`, `[{"type":"thinking","thinking":[{"type":"text","text":"t"}]}]`, `[{"type":"text","text":"a"}]`, `"b"`} {
		kept.take([]*answer.Chunk{parse(`{"choices":[{"index":0,"delta":{"content":` + content + `}}]}`)})
	}
	require.JSONEq(t, `{"role":"assistant","content":"ab","reasoning_content":"t"}`, string(hubMessage(kept.said.Whole())))
}
