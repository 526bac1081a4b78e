package stream_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/stream"
)

// C-22, SSE-20: what is sound passes byte for byte.
func TestSoundStreamsPassUnchanged(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"text":          delta(`{"role":"assistant","content":"","refusal":null}`) + content("안녕 <b>&") + finish("stop") + doneEvent,
		"no space":      strings.ReplaceAll(content("Hi")+finish("stop")+doneEvent, "data: ", "data:"),
		"CRLF":          strings.ReplaceAll(content("Hi")+finish("stop")+doneEvent, "\n", "\r\n"),
		"comments":      ": OPENROUTER PROCESSING\n\n" + content("Hi") + ":\n\n\n" + finish("stop") + doneEvent,
		"CR":            strings.ReplaceAll(content("Hi")+finish("stop")+doneEvent, "\n", "\r"),
		"named events":  "event: x\nid: 1\n" + content("Hi") + finish("stop") + doneEvent,
		"empty deltas":  delta(`{}`) + delta(`{"content":""}`) + content("Hi") + finish("stop") + doneEvent,
		"two choices":   content("A") + strings.Replace(content("X"), `"index":0`, `"index":1`, 1) + finish("stop") + strings.Replace(finish("length"), `"index":0`, `"index":1`, 1) + doneEvent,
		"custom tool":   delta(`{"tool_calls":[{"index":0,"id":"a","type":"custom","custom":{"name":"sh","input":""}}]}`) + delta(`{"tool_calls":[{"index":0,"custom":{"input":"ls"}}]}`) + finish("tool_calls") + doneEvent,
		"old calls":     delta(`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`) + finish("function_call") + doneEvent,
		"empty answer":  delta(`{"role":"assistant","content":""}`) + finish("stop") + doneEvent,
		"thoughts":      delta(`{"reasoning_content":"Hm"}`) + finish("stop") + doneEvent,
		"text and stop": content("H") + strings.Replace(content("i"), "null}", `"stop"}`, 1) + doneEvent,
		"late comments": content("Hi") + finish("stop") + ": a\n\n:\n\n" + doneEvent,
		"late choice":   content("A") + second(content("X")) + finish("stop") + second(content("Y")) + second(content("Z")) + second(finish("length")) + doneEvent,
		"together":      content("A") + second(content("X")) + `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"},{"index":1,"delta":{"content":"Y"}}]}` + "\n\n" + second(finish("length")) + doneEvent,
		"last together": content("A") + second(content("X")) + `data: {"choices":[{"index":1,"delta":{"content":"Y"},"finish_reason":"stop"},{"index":0,"delta":{},"finish_reason":"length"}]}` + "\n\n" + doneEvent,
		"named tools":   calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}`) + ": x\n\n" + calls(`{"index":0,"function":{"arguments":"{}"}}`) + calls(`{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":""}}`, `{"index":2,"id":"c","type":"function","function":{"name":"h","arguments":""}}`) + calls(`{"index":1,"function":{"arguments":"{}"}}`) + calls(`{"index":2,"function":{"arguments":"{}"}}`) + finish("tool_calls") + doneEvent,
		"costs":         `data: {"choices":[],"prompt_filter_results":[]}` + "\n\n" + content("Hi") + finish("stop") + `data: {"choices":[],"cost":"0"}` + "\n\n" + doneEvent,
		"think tags":    content("<think>a</think>b") + finish("stop") + doneEvent,
		"tools":         delta(`{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}`) + delta(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\""}}]}`) + delta(`{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}`) + finish("tool_calls") + doneEvent,
		"running usage": `data: {"choices":[{"index":0,"delta":{"content":"A"},"finish_reason":null}],"usage":{"total_tokens":9007199254740993,"x_cost":1.0}}` + "\n\n" + finish("stop") + doneEvent,
		"other fields":  delta(`{"content":"","reasoning_details":[{"type":"reasoning.encrypted","data":"blob"}]}`) + content("Hi") + finish("stop") + doneEvent,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, problem, err := pass(text, options{})
			require.NoError(t, err)
			require.Nil(t, problem)
			require.Equal(t, text, out)
		})
	}
}

// Broken streams of every kind come out whole (C-22, and the edge cases SSE, STR and TOOL).
func TestRepairs(t *testing.T) {
	t.Parallel()
	const callA, callB = `"id":"a","type":"function","function":{"name":"f","arguments":"{\"q\":1}"}`, `"id":"b","type":"function","function":{"name":"g","arguments":"{\"q\":2}"}`
	a, b := tool{"a", "f", "function", `{"q":1}`}, tool{"b", "g", "function", `{"q":2}`}
	for name, tc := range map[string]struct {
		text, content, finish string
		tools                 []tool
	}{
		"STR-01 no [DONE]":                    {content("Hi") + finish("stop"), "Hi", "stop", nil},
		"SSE-10 no blank line at the end":     {content("Hi") + strings.TrimSuffix(finish("stop"), "\n\n"), "Hi", "stop", nil},
		"SSE-08 one value on several lines":   {"data: {\"choices\":[{\"index\":0,\ndata: \"delta\":{\"content\":\"Hi\"}}]}\n\n" + finish("stop") + doneEvent, "Hi", "stop", nil},
		"R-490 values on lines of one event":  {lines(content("H") + content("i") + finish("stop") + doneEvent), "Hi", "stop", nil},
		"R-490 the mark on a line of its own": {content("H") + lines(content("i")+finish("stop")) + "\n" + doneEvent, "Hi", "stop", nil},
		"byte order mark":                     {"\ufeff" + content("Hi") + finish("stop") + doneEvent, "Hi", "stop", nil},
		"byte order mark before a comment":    {"\ufeff: x\n\n" + content("Hi") + finish("stop") + doneEvent, "Hi", "stop", nil},
		"[DONE] between spaces":               {content("Hi") + finish("stop") + "data:  [DONE] \n\n", "Hi", "stop", nil},
		"choice without index":                {strings.Replace(content("Hi")+finish("stop"), `"index":0,`, "", 2) + doneEvent, "Hi", "stop", nil},
		"choice index in quotes":              {strings.Replace(content("Hi"), `"index":0`, `"index":"0"`, 1) + finish("stop") + strings.ReplaceAll(content("yo")+finish("stop"), `"index":0`, `"index":"1"`) + doneEvent, "Hi", "stop", nil},
		"SSE-04 comments":                     {": PROCESSING\n\n" + content("Hi") + ": x\n\n" + finish("stop") + doneEvent, "Hi", "stop", nil},
		"STR-06 choices null and absent":      {`data: {"choices":null}` + "\n\n" + content("Hi") + `data: {"choices":null,"usage":{"total_tokens":1}}` + "\n\n" + finish("stop") + doneEvent, "Hi", "stop", nil},
		"STR-09 two finish reasons":           {delta(`{"tool_calls":[{"index":0,`+callA+`}]}`) + finish("tool_calls") + finish("stop") + doneEvent, "", "tool_calls", []tool{a}},
		"STR-09 stop after a call":            {delta(`{"tool_calls":[{"index":0,`+callA+`}]}`) + finish("stop") + doneEvent, "", "tool_calls", []tool{a}},
		"finish reason is empty text":         {strings.Replace(content("Hi"), "null}", `""}`, 1) + finish("stop") + doneEvent, "Hi", "stop", nil},
		"text after the finish":               {content("Hi") + finish("stop") + content("more") + doneEvent, "Himore", "stop", nil},
		"error is null":                       {strings.Replace(content("Hi"), `"id"`, `"error":null,"id"`, 1) + finish("stop") + doneEvent, "Hi", "stop", nil},
		"TOOL-01 no index":                    {delta(`{"tool_calls":[{`+callA+`},{`+callB+`}]}`) + finish("tool_calls") + doneEvent, "", "tool_calls", []tool{a, b}},
		"TOOL-03 always index 0":              {delta(`{"tool_calls":[{"index":0,`+callA+`}]}`) + delta(`{"tool_calls":[{"index":0,`+callB+`}]}`) + finish("tool_calls") + doneEvent, "", "tool_calls", []tool{a, b}},
		"TOOL-04 empty id, null name":         {delta(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}`) + delta(`{"tool_calls":[{"index":0,"id":"","type":"","function":{"name":null,"arguments":"{\"q\":1}"}}]}`) + finish("tool_calls") + doneEvent, "", "tool_calls", []tool{a}},
		"TOOL-06 id and name come apart":      {delta(`{"tool_calls":[{"index":0,"id":"a"}]}`) + delta(`{"tool_calls":[{"index":0,"function":{"name":"f"}}]}`) + delta(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"q\":1}"}}]}`) + finish("tool_calls") + doneEvent, "", "tool_calls", []tool{a}},
		"TOOL-07 no arguments":                {delta(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f"}}]}`) + finish("tool_calls") + doneEvent, "", "tool_calls", []tool{{"a", "f", "function", "{}"}}},
		"index begins at 1":                   {delta(`{"tool_calls":[{"index":1,`+callA+`}]}`) + finish("tool_calls") + doneEvent, "", "tool_calls", []tool{a}},
		"continuation without index":          {delta(`{"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"q\""}}]}`) + delta(`{"tool_calls":[{"function":{"arguments":":1}"}}]}`) + finish("tool_calls") + doneEvent, "", "tool_calls", []tool{a}},
		"the next call without id, same slot": {delta(`{"tool_calls":[{"index":0,`+callA+`}]}`) + delta(`{"tool_calls":[{"index":0,"id":"b","type":"function","function":{"name":"g"}}]}`) + delta(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"q\":2}"}}]}`) + finish("tool_calls") + doneEvent, "", "tool_calls", []tool{a, b}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, think := range []stream.Think{stream.ThinkOff, stream.ThinkSplit} {
				out, problem, err := pass(tc.text, options{Think: think})
				require.NoError(t, err)
				require.Nil(t, problem)
				require.NotContains(t, out, "\ufeff")
				got := readStrictly(t, out)
				require.True(t, got.done)
				require.Equal(t, tc.content, got.content[0])
				require.Equal(t, tc.finish, got.finish[0])
				require.Equal(t, tc.tools, got.tools[0])
				require.Empty(t, got.usage)
			}
		})
	}
}

// second makes the events of the first choice those of the second.
func second(text string) string { return strings.ReplaceAll(text, `[{"index":0`, `[{"index":1`) }

// lines takes the blank lines out of a stream.
func lines(text string) string { return strings.ReplaceAll(text, "\n\n", "\n") + "\n" }

// STR-07: exactly one usage chunk when asked for, none otherwise, wherever the upstream puts it.
func TestUsageChunk(t *testing.T) {
	t.Parallel()
	groq := `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"x_groq":{"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}}` + "\n\n"
	for name, text := range map[string]string{
		"own chunk":               content("Hi") + finish("stop") + usageChunk + doneEvent,
		"before the finish":       content("Hi") + usageChunk + finish("stop") + doneEvent,
		"twice":                   content("Hi") + finish("stop") + usageChunk + usageChunk + doneEvent,
		"on the finish, as Groq":  content("Hi") + groq + doneEvent,
		"both":                    content("Hi") + groq + usageChunk + doneEvent,
		"alone in x_groq":         content("Hi") + finish("stop") + `data: {"choices":[],"x_groq":{"usage":{"total_tokens":5}}}` + "\n\n" + doneEvent,
		"without [DONE] after it": content("Hi") + finish("stop") + usageChunk,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, _, err := pass(text, options{IncludeUsage: true})
			require.NoError(t, err)
			got := readStrictly(t, out)
			require.Len(t, got.usage, 1)
			require.InDelta(t, 5, got.usage[0]["total_tokens"], 0)
			require.Equal(t, "stop", got.finish[0])

			out, _, err = pass(text, options{})
			require.NoError(t, err)
			require.Empty(t, readStrictly(t, out).usage)
		})
	}
}

// STR-15: running totals are not added up.
func TestUsageIsTheLastOne(t *testing.T) {
	t.Parallel()
	f := stream.NewFilter(stream.Options{})
	for _, text := range []string{`{"total_tokens":11}`, `{"total_tokens":12}`, `{"prompt_tokens":10,"completion_tokens":3,"total_tokens":13}`} {
		feed(t, f, `data: {"choices":[{"index":0,"delta":{"content":"A"}}],"usage":`+text+"}\n\n")
	}
	require.Equal(t, stream.Usage{Prompt: 10, Completion: 3, Total: 13}, f.Usage())
}

// counts that are known stay when a later usage says zero, or leaves them out.
func TestUsageThatFalls(t *testing.T) {
	t.Parallel()
	const first = `{"prompt_tokens":25,"completion_tokens":1,"total_tokens":26,"prompt_tokens_details":{"cached_tokens":7,"x":0},"cost":0.5}`
	for name, tc := range map[string]struct{ then, want string }{
		"zeros":      {`{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`, `{"prompt_tokens":25,"completion_tokens":1,"total_tokens":26}`},
		"one zero":   {`{"prompt_tokens":0,"completion_tokens":9,"total_tokens":9}`, `{"prompt_tokens":25,"completion_tokens":9,"total_tokens":34}`},
		"null":       {`{"prompt_tokens":null,"completion_tokens":9,"total_tokens":null}`, `{"prompt_tokens":25,"completion_tokens":9,"total_tokens":34}`},
		"missing":    {`{"completion_tokens":9}`, `{"completion_tokens":9,"prompt_tokens":25,"total_tokens":34}`},
		"details":    {`{"prompt_tokens":25,"completion_tokens":9,"total_tokens":34,"prompt_tokens_details":{"cached_tokens":0,"x":2},"cost":0}`, `{"prompt_tokens":25,"completion_tokens":9,"total_tokens":34,"prompt_tokens_details":{"cached_tokens":7,"x":2},"cost":0.5}`},
		"fewer":      {`{"prompt_tokens":24,"completion_tokens":9,"total_tokens":33}`, `{"prompt_tokens":24,"completion_tokens":9,"total_tokens":33}`}, // STR-15
		"own total":  {`{"prompt_tokens":0,"completion_tokens":9,"total_tokens":99}`, `{"prompt_tokens":25,"completion_tokens":9,"total_tokens":99}`},
		"no numbers": {`{"prompt_tokens":"25","completion_tokens":9,"total_tokens":{}}`, `{"prompt_tokens":"25","completion_tokens":9,"total_tokens":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			running := strings.Replace(content("Hi"), `}]}`, `}],"usage":`+first+`}`, 1)
			own := `data: {"id":"c1","created":1,"model":"m","choices":[],"usage":` + tc.then + `,"x_bill":1}` + "\n\n"
			out := passed(t, running+finish("stop")+own+doneEvent, options{IncludeUsage: true})
			require.Contains(t, out, `"choices":[],"usage":`+tc.want+`,"x_bill":1}`)
			// The same on the chunk of the finish, and in an answer that is put together.
			last := strings.Replace(finish("stop"), `}]}`, `}],"usage":`+tc.then+`}`, 1)
			out = passed(t, running+last+doneEvent, options{IncludeUsage: true})
			require.Contains(t, out, `"choices":[],"usage":`+tc.want+`}`)
			require.Contains(t, string(collect(t, running+last+doneEvent)), `"usage":`+tc.want+`}`)
		})
	}
}

// SSE-10c, STR-02, R-122: what breaks off is no answer.
func TestBrokenOff(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text string
		want error
	}{
		"nothing":             {"", classify.ErrEmptyAnswer},
		"only comments":       {": hello\n\n: hello\n\n" + doneEvent, classify.ErrEmptyAnswer},
		"only a role":         {delta(`{"role":"assistant"}`), classify.ErrEmptyAnswer},
		"text without finish": {content("Hi"), classify.ErrTruncated},
		// A terminal signal of a chat is the finish reason; proxies write [DONE] after an upstream that broke off, too.
		"[DONE] without finish": {content("Hi") + doneEvent, classify.ErrTruncated},
		"one of two choices":    {content("Hi") + finish("stop") + strings.Replace(content("X"), `"index":0`, `"index":1`, 1) + doneEvent, classify.ErrTruncated},
		"half a value":          {content("Hi") + `data: {"choices":[{"index":0,"delta":{},"finish_re`, classify.ErrTruncated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, problem, err := pass(tc.text, options{})
			require.Nil(t, problem)
			require.ErrorIs(t, err, tc.want)
		})
	}
}

// errors inside the stream are found in every form.
func TestProblems(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"object":         `data: {"error":{"message":"busy"}}` + "\n\n",
		"text":           `data: {"error":"out of memory"}` + "\n\n",
		"named event":    "event: error\ndata: {\"message\":\"x\"}\n\n",
		"with choices":   `data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}],"error":{"code":502}}` + "\n\n",
		"bare JSON":      `{"error":{"message":"busy"}}` + "\n\n",
		"array":          `data: [{"error":{"code":429}}]` + "\n\n",
		"no choices":     `data: {"base_resp":{"status_code":1002}}` + "\n\n",
		"Groq":           `data: {"choices":[],"x_groq":{"error":"over capacity"}}` + "\n\n",
		"broken JSON":    "data: {\"choices\":[}\n\n",
		"not JSON":       "data: boom\n\n",
		"after the text": content("Hi") + `data: {"error":{"message":"died"}}` + "\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, problem, err := pass(delta(`{"role":"assistant"}`)+text, options{})
			require.NoError(t, err)
			require.NotNil(t, problem)
		})
	}
}

// STR-14: two choices keep their indexes; a stream is finished when both are.
func TestTwoChoices(t *testing.T) {
	t.Parallel()
	f := stream.NewFilter(stream.Options{Choices: 2})
	feed(t, f, `data: {"choices":[{"index":1,"delta":{"content":"X"},"finish_reason":"length"}]}`+"\n\n")
	require.False(t, f.Finished())
	feed(t, f, `data: {"choices":[{"index":0,"delta":{"content":"A"},"finish_reason":"stop"}]}`+"\n\n")
	require.True(t, f.Finished())
}
