package gemini_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/answer/answertest"
	"hydrallm/services/dispatcher/internal/dialect/gemini"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
	"hydrallm/shared/testkit/fixtures"
)

// Whatever a client asks: a JSON object for Google, or an error for the client.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}],"stop":["a"],"seed":-1}`))
	f.Add([]byte(`{"model":"a/b","messages":[{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":"[1]"}}]},{"role":"tool","tool_call_id":"c","content":"{\"a\":1}"}]}`))
	f.Add([]byte(`{"model":"gemini-2.5-pro","messages":[{"role":"system","content":"s"}],"tools":[{"googleSearch":{}}],"tool_choice":"auto","reasoning_effort":"low","extra_body":{"google":{"thinking_config":[]}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		n, err := gemini.Translator{}.Request(body, true)
		if err != nil {
			_, ok := errors.AsType[*openai.RequestError](err)
			require.True(t, ok, "%v", err)
			return
		}
		require.True(t, rawjson.Valid(n.Body), "%s", n.Body)
		require.NotEmpty(t, gjson.GetBytes(n.Body, "contents").Array())
		require.Regexp(t, `^/models/[^/?#:]+:streamGenerateContent\?alt=sse$`, n.Path)
	})
}

func addAnswers(f *testing.F) {
	f.Helper()
	for _, x := range fixtures.Of("gemini-native") {
		f.Add(bytes.ReplaceAll(bytes.ReplaceAll(x.Body, []byte("data: "), nil), []byte("\n\n"), []byte("\n")))
	}
	f.Add([]byte(`{"candidates":[{"content":{"parts":[{"text":"\ud83c"},{"text":"a","thought":true},{"functionCall":{"name":"f","args":{"a":[]}},"thoughtSignature":"x"},{"inlineData":{"mimeType":"image/png","data":"x"}}]},"groundingMetadata":` + grounding + `,"finishReason":"STOP"},{"finishReason":2}]}`))
	f.Add([]byte(`{"candidates":[{"finishReason":"OTHER"},{"index":7}],"promptFeedback":{"blockReason":"X"}}`))
}

// Whatever comes in place of an answer: it stays as it is, or becomes an answer that needs no repair.
func FuzzCompletion(f *testing.F) {
	addAnswers(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		got := filled(bytes.Clone(body))
		if bytes.Equal(got, body) {
			return
		}
		require.True(t, rawjson.Valid(got), "%s", got)
		require.True(t, answertest.Answers(got), "%s", got)
		require.Equal(t, got, answertest.Completion(got, answertest.Options{}))
		require.NotContains(t, string(got), `"error":`)
	})
}

// Whatever lines come as a stream: the pieces make no difference, an end mark means that a strict reader finds a whole answer, and one
// event says the same as the whole answer in it.
func FuzzEvents(f *testing.F) {
	addAnswers(f)
	f.Add([]byte(data(native(`{"text":"a"}`, ""), native(`{"functionCall":{"name":"f"}}`, "STOP"))))
	f.Fuzz(func(t *testing.T, lines []byte) {
		text := lines
		if !bytes.Contains(lines, []byte("data:")) {
			text = []byte("data: " + strings.ReplaceAll(string(lines), "\n", "\n\ndata: "))
		}
		out := events(t, bytes.NewReader(text))
		require.Equal(t, steady([]byte(out)), steady([]byte(events(t, iotest.OneByteReader(bytes.NewReader(text))))))
		if !strings.HasSuffix(out, openai.Done) || bytes.Contains(lines, []byte("[DONE]")) {
			return
		}
		r := relay(t, out)
		require.NoError(t, r.err)
		require.Empty(t, r.problem)
		whole := gjson.Parse(completion(strings.TrimPrefix(strings.TrimSpace(string(text)), "data: ")))
		if first := whole.Get("choices.0"); first.Exists() && len(whole.Get("choices").Array()) == 1 {
			for _, path := range []string{"message.content", "message.reasoning_content", "finish_reason"} {
				require.Equal(t, first.Get(path).String(), r.body.Get("choices.0."+path).String(), path)
			}
			require.Len(t, r.body.Get("choices.0.message.tool_calls").Array(), len(first.Get("message.tool_calls").Array()))
		}
	})
}
