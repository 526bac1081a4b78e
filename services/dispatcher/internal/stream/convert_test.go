package stream_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/answer/answertest"
	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/shared/testkit/fixtures"
)

// whole wraps a message into an answer with a finish reason.
func whole(message, finish string) string {
	return `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":` + message + `,"logprobs":null,"finish_reason":` + finish + `}],"usage":{"total_tokens":3,"x_cost":1.50}}`
}

// A whole answer gets the repairs of a stream, and what is sound keeps its bytes (SSE-20b, TOOL-07, STR-09, R-230).
func TestCompletion(t *testing.T) {
	t.Parallel()
	split, strip := options{Think: stream.ThinkSplit}, options{Think: stream.ThinkStrip}
	const call = `{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}`
	cases := []struct {
		name, in, want string
		opts           options
	}{
		{"sound", whole(`{"role":"assistant","content":"안녕 <think>x</think>","refusal":null,"annotations":[]}`, `"stop"`), "", options{}},
		{"sound, split", whole(`{"role":"assistant","content":"a < b"}`, `"length"`), "", split},
		{"sound calls", whole(`{"role":"assistant","content":null,"tool_calls":[`+call+`]}`, `"tool_calls"`), "", split},
		{"split", whole(`{"role":"assistant","content":"<think>r\n</think>b"}`, `"stop"`), whole(`{"role":"assistant","content":"b","reasoning_content":"r\n"}`, `"stop"`), split},
		{"strip", whole(`{"role":"assistant","content":"<think>only</think>"}`, `"stop"`), whole(`{"role":"assistant","content":""}`, `"stop"`), strip},
		{"unclosed", whole(`{"content":"a<think>b</thi","role":"assistant"}`, `"length"`), whole(`{"content":"a","role":"assistant","reasoning_content":"b</thi"}`, `"length"`), split},
		{"stop with calls", whole(`{"role":"assistant","content":null,"tool_calls":[`+call+`]}`, `"stop"`), whole(`{"role":"assistant","content":null,"tool_calls":[`+call+`]}`, `"tool_calls"`), options{}},
		{
			"empty arguments", whole(`{"content":"","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":""}}]}`, `"tool_calls"`),
			whole(`{"content":"","tool_calls":[`+call+`]}`, `"tool_calls"`),
			options{},
		},
		{
			"no arguments, no type", whole(`{"content":"","tool_calls":[{"id":"a","function":{"name":"f"}}]}`, `"tool_calls"`),
			whole(`{"content":"","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"},"type":"function"}]}`, `"tool_calls"`),
			options{},
		},
		{
			"arguments are an object", whole(`{"content":"","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":{"x": "1"}}}]}`, `"tool_calls"`),
			whole(`{"content":"","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\": \"1\"}"}}]}`, `"tool_calls"`),
			options{},
		},
		{"no content", whole(`{"role":"assistant","tool_calls":[`+call+`]}`, `"tool_calls"`), whole(`{"role":"assistant","tool_calls":[`+call+`],"content":null}`, `"tool_calls"`), options{}},
		{"empty finish reason", whole(`{"content":"x"}`, `""`), whole(`{"content":"x"}`, `"stop"`), options{}},
		{"no finish reason", `{"choices":[{"index":0,"message":{"content":"x"}}]}`, `{"choices":[{"index":0,"message":{"content":"x"},"finish_reason":"stop"}]}`, options{}},
		{
			"no finish reason, a call", `{"choices":[{"index":0,"message":{"content":"","tool_calls":[` + call + `]}}]}`,
			`{"choices":[{"index":0,"message":{"content":"","tool_calls":[` + call + `]},"finish_reason":"tool_calls"}]}`,
			options{},
		},
		{"a number as finish reason", whole(`{"content":"x"}`, `1`), whole(`{"content":"x"}`, `"stop"`), options{}},
		{
			"no indexes", `{"choices":[{"message":{"content":"a"},"finish_reason":"stop"},{"index":null,"message":{"content":"b"},"finish_reason":"stop"}]}`,
			`{"choices":[{"message":{"content":"a"},"finish_reason":"stop","index":0},{"message":{"content":"b"},"finish_reason":"stop","index":1}]}`,
			options{},
		},
		{"R-495 digits", whole(`{"content":42 ,"reasoning":0}`, `"stop"`), whole(`{"content":"42" ,"reasoning":"0"}`, `"stop"`), options{}},
		{"error null", `{"error":null,"choices":[]}`, `{"choices":[]}`, options{}},
		{"model", whole(`{"content":"x"}`, `"stop"`), strings.Replace(whole(`{"content":"x"}`, `"stop"`), `"model":"m"`, `"model":"auto"`, 1), options{Model: "auto"}},
		{"white space before it", "\n\n" + whole(`{"content":"x"}`, `"stop"`) + "\n", whole(`{"content":"x"}`, `"stop"`), options{}},
		{"no answer", `{"choices":`, "", options{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.want == "" {
				c.want = c.in
			}
			require.Equal(t, c.want, string(answertest.Completion([]byte(c.in), c.opts)))
		})
	}
	got := answertest.Completion([]byte(whole(`{"content":"","tool_calls":[{"type":"function","function":{"name":"f","arguments":"{}"}}]}`, `"stop"`)), options{})
	require.Regexp(t, `"id":"call_[a-z2-7]{26}"`, string(got))
	// the first call keeps the id that two have.
	got = answertest.Completion([]byte(whole(`{"content":"","tool_calls":[`+call+`,`+call+`]}`, `"tool_calls"`)), options{})
	require.Regexp(t, `\[\{"id":"a",.*\{"id":"call_[a-z2-7]{26}"`, string(got))
	require.Equal(t, 1, strings.Count(string(got), `"id":"a"`))
}

// STR-10: the parts of a whole answer come in order, with the usage only when it was asked for.
func TestSynthesize(t *testing.T) {
	t.Parallel()
	body := whole(`{"role":"assistant","content":"<think>t</think>Hi","reasoning":"r","refusal":null,"annotations":[1],"tool_calls":[{"id":"a","type":"function","function":{"name":"f"}},{"function":{"name":"f","arguments":"{}"}}]}`, `"stop"`)
	out := synthesize(t, []byte(body), options{Think: stream.ThinkSplit})
	require.True(t, strings.HasPrefix(out, "data: "))
	got := readStrictly(t, out)
	require.Equal(t, "Hi", got.content[0])
	require.Equal(t, "rt", got.reasoning[0])
	require.Empty(t, got.usage)
	requireTools(t, []tool{{"a", "f", "function", "{}"}, {"*", "f", "function", "{}"}}, out)
	require.Less(t, strings.Index(out, `"r"`), strings.Index(out, `"Hi"`))
	require.Contains(t, out, `"annotations":[1]`)
	require.Contains(t, string(synthesize(t, []byte(body), options{IncludeUsage: true})), `"choices":[],"usage":{"total_tokens":3,"x_cost":1.50}`)

	out = synthesize(t, []byte(`{"choices":[{"message":{"content":"A"}},{"message":{"content":"B"},"finish_reason":"length"}]}`), options{})
	got = readStrictly(t, out)
	require.Equal(t, map[int]string{0: "A", 1: "B"}, got.content)
	require.Equal(t, map[int]string{0: "stop", 1: "length"}, got.finish)
	require.Regexp(t, `^data: {"id":"chatcmpl-[a-z2-7]{26}","object":"chat.completion.chunk","created":\d+,"model":"",`, out)

	require.Equal(t, "ok", readStrictly(t, string(synthesize(t, fixtures.Get("generic/stream-as-json.json").Body, options{}))).content[0])
	_, err := answertest.Synthesize([]byte(`{"choices":[{"text":"x"}]}`), options{})
	require.ErrorIs(t, err, classify.ErrEmptyAnswer)
}

// A whole answer inside an event stream is taken apart like one that came as JSON.
func TestWholeAnswerAsEvent(t *testing.T) {
	t.Parallel()
	out, problem, err := pass("data: "+whole(`{"role":"assistant","content":"Hi"}`, `"stop"`)+"\n\n"+doneEvent, options{})
	require.NoError(t, err)
	require.Nil(t, problem)
	got := readStrictly(t, out)
	require.Equal(t, "Hi", got.content[0])
	require.Equal(t, "stop", got.finish[0])
	require.Empty(t, got.usage)
}

// The reverse: all choices, calls, logprobs and the usage arrive in the answer.
func TestCollector(t *testing.T) {
	t.Parallel()
	text := `data: {"id":"c1","created":1,"model":"m","choices":[{"index":1,"delta":{"content":"X"},"logprobs":{"content":[{"token":"X"}]}},{"index":0,"delta":{"role":"assistant","content":"\ud83c"}}]}` + "\n\n" +
		`data: {"id":"c1","choices":[{"index":0,"delta":{"content":"\udf0d","reasoning":"r"}},{"index":1,"delta":{"content":"Y"},"logprobs":{"content":[{"token":"Y"}]},"finish_reason":"length"}]}` + "\n\n" +
		delta(`{"tool_calls":[{"index":0,"id":"a","type":"custom","custom":{"name":"sh","input":"l"}}]}`) + delta(`{"tool_calls":[{"index":0,"custom":{"input":"s"}}]}`) +
		delta(`{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":"{"},"extra_content":1}]}`) + delta(`{"tool_calls":[{"index":1,"function":{"arguments":"}"}}]}`) +
		finish("stop") + usageChunk + doneEvent
	require.Equal(t, `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[`+
		`{"index":0,"message":{"role":"assistant","content":"\ud83c\udf0d","reasoning_content":"r","tool_calls":[{"id":"a","type":"custom","custom":{"name":"sh","input":"ls"}},`+
		`{"id":"b","type":"function","function":{"name":"g","arguments":"{}"},"extra_content":1}]},"finish_reason":"tool_calls"},`+
		`{"index":1,"message":{"role":"assistant","content":"XY"},"logprobs":{"content":[{"token":"X"},{"token":"Y"}]},"finish_reason":"length"}],`+
		`"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`, string(collect(t, text)))

	_, problem, err := answertest.Collect(answertest.Chat(strings.NewReader(`data: {"error":"x"}`+"\n\n")), options{})
	require.NoError(t, err)
	require.JSONEq(t, `{"error":"x"}`, string(problem))
	_, _, err = answertest.Collect(answertest.Chat(strings.NewReader("")), options{})
	require.ErrorIs(t, err, classify.ErrEmptyAnswer)
	_, err = stream.NewCollector(stream.Options{}).Take(&answer.Chunk{Data: make([]byte, 65<<20)})
	require.ErrorIs(t, err, classify.ErrTooLarge)
}

// digits are text, also where an answer is put together or taken apart.
func TestDigits(t *testing.T) {
	t.Parallel()
	text := delta(`{"content":"$"}`) + delta(`{"content":0.5}`) + delta(`{"reasoning":6}`) + delta(`{"content":0}`) + finish("stop") + doneEvent
	message := gjson.GetBytes(collect(t, text), "choices.0.message")
	require.Equal(t, "$0.50", message.Get("content").Str)
	require.Equal(t, "6", message.Get("reasoning_content").Str)
	got := readStrictly(t, synthesize(t, []byte(whole(`{"content":0.50,"reasoning_content":6}`, `"stop"`)), options{}))
	require.Equal(t, "0.50", got.content[0])
	require.Equal(t, "6", got.reasoning[0])
}

// What a stream says in the old form of calls, or in members of its own, is in the collected answer too.
func TestCollectorKeepsOtherMembers(t *testing.T) {
	t.Parallel()
	text := delta(`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{\"a\""},"annotations":[],"x_note":"on"}`) +
		delta(`{"function_call":{"arguments":":1}"},"annotations":[{"n":1}],"x_note":"e","x_cost":{"a":1}}`) +
		delta(`{"annotations":[{"n":2},{"n":3}],"x_note":null,"x_cost":{"b":2}}`) + finish("stop") + doneEvent
	require.JSONEq(t, `{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{\"a\":1}"},`+
		`"annotations":[{"n":1},{"n":2},{"n":3}],"x_note":"one","x_cost":{"b":2}}`,
		gjson.GetBytes(collect(t, text), "choices.0.message").Raw)
}

func TestUsageOf(t *testing.T) {
	t.Parallel()
	require.Equal(t, stream.Usage{Total: 3}, answertest.Usage([]byte("\n"+whole(`{"content":"x"}`, `"stop"`))))
	require.Equal(t, stream.Usage{}, answertest.Usage([]byte(`{"usage":[]}`)))
}
