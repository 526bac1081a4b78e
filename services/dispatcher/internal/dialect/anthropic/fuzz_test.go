package anthropic_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/answer/answertest"
	"hydrallm/services/dispatcher/internal/dialect/anthropic"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
	"hydrallm/shared/testkit/fixtures"
)

// Whatever a client sends is refused with a reason, or becomes a request that keeps the rules of the API.
func FuzzRequest(f *testing.F) {
	for _, members := range []string{
		messages(user, oneCall, `{"role":"tool","tool_call_id":"toolu_1","content":"12"}`), messages(twoCalls, user, `{"role":"assistant","content":"a "}`),
		messages(`{"role":"system","content":[{"type":"text","text":"A","cache_control":{}}]}`, `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}},{"type":"file","file":{"file_data":"JVBERi0"}}]}`),
		messages(user, `{"role":"assistant","content":"A","reasoning_details":[{"type":"reasoning.text","text":"r","signature":"s","format":"anthropic-claude-v1","index":0}]}`) + `,"reasoning_effort":"high"`,
		`"tools":[{"type":"function","function":{"name":"f","parameters":{}}}],"tool_choice":"required","parallel_tool_calls":false,"stop":["a"],"temperature":1.5,"top_p":0.1,"max_tokens":7,"user":"u","response_format":{"type":"json_schema","json_schema":{"schema":{}}}`,
	} {
		f.Add([]byte(asked("claude-sonnet-4-5", members)), true)
		f.Add([]byte(asked("claude-opus-5-5", members)), false)
	}
	f.Fuzz(func(t *testing.T, body []byte, streamed bool) {
		got, err := anthropic.Translator{}.Request(body, streamed)
		if err != nil {
			var refused *openai.RequestError
			require.ErrorAs(t, err, &refused)
			require.NotEmpty(t, refused.Message)
			return
		}
		require.True(t, rawjson.Valid(got.Body), "%s", got.Body)
		requireRules(t, gjson.ParseBytes(got.Body))
		again, err := anthropic.Translator{}.Request(body, streamed)
		require.NoError(t, err)
		require.Equal(t, got, again)
	})
}

// requireRules checks what the API refuses a request for.
func requireRules(t *testing.T, body gjson.Result) {
	t.Helper()
	made, open := map[string]bool{}, map[string]bool{} // calls
	for i, turn := range body.Get("messages").Array() {
		require.Equal(t, []string{"user", "assistant"}[i%2], turn.Get("role").Str)
		blocks := turn.Get("content").Array()
		require.NotEmpty(t, blocks)
		resultsOver := false
		for _, b := range blocks {
			kind := b.Get("type").Str
			require.False(t, kind == "text" && strings.TrimSpace(b.Get("text").Str) == "", "%s", b.Raw)
			require.False(t, kind == "tool_result" && resultsOver, "%s", turn.Raw)
			require.False(t, kind == "tool_use" && (!b.Get("input").IsObject() || !toolID.MatchString(b.Get("id").Str)), "%s", b.Raw)
			resultsOver = resultsOver || kind != "tool_result"
			switch kind {
			case "tool_use":
				id := b.Get("id").Str
				require.False(t, made[id], "%s", b.Raw)
				made[id], open[id] = true, true
			case "tool_result":
				delete(open, b.Get("tool_use_id").Str)
			}
		}
		require.True(t, i%2 == 1 || len(open) == 0, "%v", open)
		require.NotContains(t, []string{"thinking", "redacted_thinking"}, blocks[len(blocks)-1].Get("type").Str)
	}
	require.NotEmpty(t, body.Get("messages").Array())
	require.Empty(t, open)
	require.True(t, body.Get("max_tokens").Exists())
}

var toolID = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// Any message becomes an answer that needs no repair, anything else stays.
func FuzzCompletion(f *testing.F) {
	f.Add([]byte(nativeThinking))
	for _, x := range fixtures.Of("anthropic") {
		if x.Kind() == "json" {
			f.Add(x.Body)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got := completion(bytes.Clone(body))
		if bytes.Equal(got, body) {
			return
		}
		require.True(t, rawjson.Valid(got), "%s", got)
		require.True(t, answertest.Answers(got))
		for _, call := range gjson.GetBytes(got, "choices.0.message.tool_calls").Array() {
			require.True(t, gjson.Parse(call.Get("function.arguments").Str).IsObject(), "%s", call.Raw)
		}
	})
}

var ownID = regexp.MustCompile(`chatcmpl-[a-z2-7]{26}`)

// Whatever comes, the events that go out are sound, and the size of the reads makes no difference.
func FuzzEvents(f *testing.F) {
	f.Add([]byte(streamedThinking))
	f.Add([]byte(hello + ended("end_turn")))
	f.Add([]byte(head + started(0, `{"type":"tool_use","id":"a","name":"f","input":{"n":1}}`) + started(1, `{"type":"server_tool_use"}`) + ended("tool_use")))
	f.Add([]byte("event: error\ndata: x\n\n: ping\r\n\r\n[1]\n\n"))
	for _, x := range fixtures.Of("anthropic") {
		if x.Kind() == "sse" {
			f.Add(x.Body)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		out := translate(t, bytes.NewReader(text))
		require.Equal(t, plain(out), plain(translate(t, iotest.OneByteReader(bytes.NewReader(text)))))
		requireSound(t, out)
	})
}

// plain takes out of a stream what differs from one run to the next.
func plain(text string) string {
	return createdAt.ReplaceAllString(ownID.ReplaceAllString(text, "id"), "created")
}

var createdAt = regexp.MustCompile(`"created":\d+`)

// requireSound checks a stream as a strict client does, up to the first event that is none of ours.
func requireSound(t *testing.T, text string) {
	t.Helper()
	require.True(t, text == "" || strings.HasSuffix(text, "\n\n"), "%q", text)
	events := openai.NewReader(strings.NewReader(text), 0)
	calls, finishes, done := 0, 0, false
	for {
		e, err := events.Next()
		if err != nil {
			return
		}
		require.False(t, done, "something follows [DONE]: %q", text)
		require.LessOrEqual(t, e.Lines, 1)
		if e.Data == nil {
			continue
		}
		if done = string(e.Data) == "[DONE]"; done {
			require.Equal(t, 1, finishes)
			continue
		}
		chunk := gjson.ParseBytes(e.Data)
		if e.Name != nil || !json.Valid(e.Data) || chunk.Get("object").Str != "chat.completion.chunk" {
			return // passed on for the next reader to judge
		}
		if chunk.Get("choices.0.finish_reason").Str != "" {
			finishes++
		} else {
			require.True(t, finishes == 0 || chunk.Get("usage").Exists(), "something follows the finish reason: %s", e.Data)
		}
		for _, call := range chunk.Get("choices.0.delta.tool_calls").Array() {
			if call.Get("id").Exists() {
				calls++
			}
			require.EqualValues(t, calls-1, call.Get("index").Int())
		}
	}
}
