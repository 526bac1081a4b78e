package ollama_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/answer/answertest"
	"hydrallm/services/dispatcher/internal/dialect/ollama"
	"hydrallm/shared/testkit/fixtures"
	"hydrallm/shared/testkit/goldentest"
)

// events translates a native stream.
func events(tb testing.TB, r io.Reader) string {
	tb.Helper()
	out, err := answertest.Text(ollama.Events(r, "fx"))
	require.NoError(tb, err)
	return out
}

// completion translates a whole answer; what is none stays as it is.
func completion(body []byte) []byte {
	return answertest.Filled(func(out *answer.Chunk, body []byte) bool { return ollama.Completion(out, body, "fx") }, body)
}

// Every recorded stream, however it is cut into reads.
func TestRecordedStreams(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"native-chat", "native-tools", "native-error"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := string(fixtures.Get("ollama/" + name + ".ndjson").Body)
			got := events(t, strings.NewReader(text))
			goldentest.Compare(t, name+".sse", []byte(got))
			require.Equal(t, got, events(t, iotest.OneByteReader(strings.NewReader(text))))
			for i := range len(text) {
				require.Equal(t, got, events(t, io.MultiReader(strings.NewReader(text[:i]), strings.NewReader(text[i:]))), "split at %d", i)
			}
			require.Equal(t, got, events(t, strings.NewReader(strings.ReplaceAll(text, "\n", "\r\n\r\n"))))
		})
	}
}

// A stream that breaks off has no end, wherever it does: what came is a beginning of the whole.
func TestCutStreams(t *testing.T) {
	t.Parallel()
	text := string(fixtures.Get("ollama/native-chat.ndjson").Body)
	whole := events(t, strings.NewReader(text))
	for i := range len(text) - 1 {
		got := events(t, strings.NewReader(text[:i]))
		require.True(t, strings.HasPrefix(whole, got))
		require.NotContains(t, got, "[DONE]")
		broken := errors.New("reset")
		out, err := answertest.Text(ollama.Events(io.MultiReader(strings.NewReader(text[:i]), iotest.ErrReader(broken)), "fx"))
		require.ErrorIs(t, err, broken)
		require.Equal(t, got, out)
	}
}

// The rest of the dispatcher reads what comes out as it reads any provider's stream.
func TestStreamsAreSound(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"native-chat": `{"id":"chatcmpl-fx","object":"chat.completion","created":1796032800,"model":"kappa:8b","choices":[{"index":0,"message":` +
			`{"role":"assistant","content":"The lamp is green.","reasoning_content":"Look."},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":6,"total_tokens":15}}`,
		"native-tools": `{"id":"chatcmpl-fx","object":"chat.completion","created":1796032800,"model":"kappa:8b","choices":[{"index":0,"message":` +
			`{"role":"assistant","content":null,"tool_calls":[{"id":"call_fx_0","type":"function","function":{"name":"get_time","arguments":"{\"city\":\"Oslo\"}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":20,"completion_tokens":12,"total_tokens":32}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			native := string(fixtures.Get("ollama/" + name + ".ndjson").Body)
			got, problem, err := answertest.Collect(ollama.Events(strings.NewReader(native), "fx"), answertest.Options{})
			require.NoError(t, err)
			require.Nil(t, problem)
			require.JSONEq(t, want, string(got))
		})
	}
}

// Lines that the samples don't have.
func TestStreamLines(t *testing.T) {
	t.Parallel()
	head := `data: {"id":"chatcmpl-fx","object":"chat.completion.chunk","created":0,"model":"m","choices":[`
	finishPiece := func(reason string) string {
		return head + `{"index":0,"delta":{},"finish_reason":"` + reason + "\"}]}\n\n"
	}
	finish := func(reason string) string { return finishPiece(reason) + "data: [DONE]\n\n" }
	first := head + `{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n"
	for name, tt := range map[string]struct{ in, want string }{
		"nothing":              {"", ""},
		"an empty answer":      {`{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}`, first + finish("stop")},
		"loaded":               {`{"model":"m","message":{"content":""},"done":true,"done_reason":"load"}`, first + finish("stop")},
		"too long":             {`{"model":"m","message":{"content":""},"done":true,"done_reason":"length"}`, first + finish("length")},
		"an error at once":     {`{"error":"model 'x' not found"}` + "\n" + `{"done":true}`, `data: {"error":"model 'x' not found"}` + "\n\n"},
		"no error":             {`{"model":"m","error":null,"message":{"content":""},"done":true}`, first + finish("stop")},
		"rubbish":              {"<html>\n" + `{"model":"m","message":{"content":"x"},"done":true}`, ""},
		"a list":               {`[1]`, ""},
		"a message in a text":  {`{"model":"m","message":"{\"content\":\"x\"}","done":true}`, head + `{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]}` + "\n\n" + finish("stop")},
		"more after the end":   {`{"model":"m","message":{"content":"x"},"done":true}` + "\n" + `{"message":{"content":"y"}}` + "\n", head + `{"index":0,"delta":{"role":"assistant","content":"x"},"finish_reason":null}]}` + "\n\n" + finish("stop")},
		"an end before all":    {`{"model":"m","message":{"content":""},"done":true}` + "\n" + `{"message":{"content":"x"}}` + "\n" + `{"done":true}`, first + finishPiece("stop") + head + `{"index":0,"delta":{"content":"x"},"finish_reason":null}]}` + "\n\n" + finish("stop")}, // R-491
		"an end before a cut":  {`{"model":"m","message":{"content":""},"done":true}` + "\n" + `{"message":{"content":"x"}}` + "\n", first + finishPiece("stop") + head + `{"index":0,"delta":{"content":"x"},"finish_reason":null}]}` + "\n\n"},
		"an answer in one":     {`{"model":"m","message":{"content":"\u00e9"},"done":true}`, head + `{"index":0,"delta":{"role":"assistant","content":"\u00e9"},"finish_reason":null}]}` + "\n\n" + finish("stop")},
		"probabilities":        {`{"model":"m","message":{"content":"a"},"logprobs":[{"token":"a","logprob":-0.10}]}`, head + `{"index":0,"delta":{"role":"assistant","content":"a"},"logprobs":{"content":[{"token":"a","logprob":-0.10}],"refusal":null},"finish_reason":null}]}` + "\n\n"},
		"calls with ids":       {`{"model":"m","message":{"content":"","tool_calls":[{"id":"x","function":{"name":"f","arguments":{"n":1.0}}},{"function":{"name":"g"}},{"function":3}]}}`, head + `{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"x","type":"function","function":{"name":"f","arguments":"{\"n\":1.0}"}},{"index":1,"id":"call_fx_1","type":"function","function":{"name":"g","arguments":"{}"}}]},"finish_reason":null}]}` + "\n\n"},
		"length despite calls": {`{"model":"m","message":{"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]},"done":true,"done_reason":"length"}`, head + `{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"call_fx_0","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":null}]}` + "\n\n" + finish("length")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, events(t, strings.NewReader(tt.in)))
		})
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ in, want string }{
		"text": {
			`{"model":"m","created_at":"2026-11-30T10:00:00Z","message":{"role":"assistant","content":"\u00e9","thinking":"Hm."},"done":true,"done_reason":"stop","prompt_eval_count":3,"eval_count":2}`,
			`{"id":"chatcmpl-fx","object":"chat.completion","created":1796032800,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"\u00e9","reasoning_content":"Hm."},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`,
		},
		"calls": {
			`{"model":"m","message":{"content":"","tool_calls":[{"function":{"name":"f","arguments":{"a":[1]}}}]},"done":true}`,
			`{"id":"chatcmpl-fx","object":"chat.completion","created":0,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_fx_0","type":"function","function":{"name":"f","arguments":"{\"a\":[1]}"}}]},"finish_reason":"tool_calls"}]}`,
		},
		"an error":       {`{"error":"out of memory"}`, `{"error":"out of memory"}`},
		"no answer":      {`{"status":"ok"}`, `{"status":"ok"}`},
		"no json":        {`<html>`, `<html>`},
		"nothing":        {``, ``},
		"a text":         {`"{\"message\":{}}"`, `"{\"message\":{}}"`},
		"of this format": {`{"choices":[]}`, `{"choices":[]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, string(completion([]byte(tt.in))))
		})
	}
}
