package stream_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/stream"
)

// passed runs a stream and gives what the client gets, without [DONE].
func passed(t *testing.T, text string, opts options) string {
	t.Helper()
	out, problem, err := pass(text, opts)
	require.NoError(t, err)
	require.Nil(t, problem)
	readStrictly(t, out)
	return strings.TrimSuffix(out, doneEvent)
}

// a rewritten chunk keeps the bytes and the order of everything that did not have to change.
func TestRewritingIsMinimal(t *testing.T) {
	t.Parallel()
	split := options{Think: stream.ThinkSplit}
	cases := []struct {
		name     string
		in, want string
		opts     options
	}{
		{
			"members around the content", `data: {"x":1.50, "choices": [ {"delta" : {"a":[ 1 ],"content":"<think>r</think>b", "z":2},"index":0 ,"finish_reason":null} ], "y":1e2}` + "\n\n",
			`data: {"x":1.50, "choices": [{"delta" : {"a":[ 1 ],"content":"b", "z":2,"reasoning_content":"r"},"index":0 ,"finish_reason":null}], "y":1e2}` + "\n\n", split,
		},
		{"reasoning keeps its place", delta(`{"reasoning_content":"r1","content":"<think>r2</think>b"}`), delta(`{"reasoning_content":"r1r2","content":"b"}`), split},
		{"text without tags stays raw", delta(`{"content":"a < b \u00e9 \/"}`), delta(`{"content":"a < b \u00e9 \/"}`), split},
		{"escapes in moved text survive", delta(`{"content":"<think>\u00e9\n\ud83c</think>\udf0d\/"}`), delta(`{"content":"\udf0d\/","reasoning_content":"\u00e9\n\ud83c"}`), split},
		{"escaped tags", delta(`{"content":"\u003cthink\u003Er\u003c\/think>b"}`), delta(`{"content":"b","reasoning_content":"r"}`), split},
		{"an escaped backslash is no escape", delta(`{"content":"\\u003cthink>x"}`), delta(`{"content":"\\u003cthink>x"}`), split},
		{"both names of a thought", delta(`{"reasoning":"r","reasoning_content":"r"}`), delta(`{"reasoning_content":"r"}`), split},
		{"the other name", delta(`{"reasoning":"r","reasoning_details":[{"a":1}]}`), delta(`{"reasoning_details":[{"a":1}],"reasoning_content":"r"}`), split},
		{"nothing but a block", delta(`{"content":"<think>r</think>"}`), "", options{Think: stream.ThinkStrip}},
		{"role stays with a block", delta(`{"role":"assistant","content":"<think>"}`), delta(`{"role":"assistant","content":""}`), options{Think: stream.ThinkStrip}},
		{"empty reasoning", delta(`{"reasoning_content":""}`), "", split},
		{"text that is no string", delta(`{"content":[{"type":"text","text":"<think>x</think>"}]}`), delta(`{"content":[{"type":"text","text":"<think>x</think>"}]}`), split},
		{
			"role once", delta(`{"role":"assistant","content":"A"}`) + delta(`{"role":"assistant","content":"B"}`) + delta(`{"role":"assistant","content":""}`),
			delta(`{"role":"assistant","content":"A"}`) + delta(`{"content":"B"}`),
			options{},
		},
		{
			"model and one id", delta(`{"content":"A"}`) + strings.ReplaceAll(delta(`{"content":"B"}`), `"c1"`, `"c2"`),
			strings.ReplaceAll(delta(`{"content":"A"}`)+delta(`{"content":"B"}`), `"model":"m"`, `"model":"auto"`),
			options{Model: "auto"},
		},
		{"R-495 digits", delta(`{"content":0.50 , "x":1}`) + delta(`{"content":-6e2}`) + delta(`{"content":7}`), delta(`{"content":"0.50" , "x":1}`) + delta(`{"content":"-6e2"}`) + delta(`{"content":"7"}`), options{}},
		{"R-495 digits, split", delta(`{"content":1}`) + delta(`{"content":"<think>"}`) + delta(`{"content":2}`) + delta(`{"content":"</think>"}`) + delta(`{"content":3}`), delta(`{"content":"1"}`) + delta(`{"reasoning_content":"2"}`) + delta(`{"content":"3"}`), split},
		{"R-495 digits of thoughts", delta(`{"reasoning":0}`) + delta(`{"reasoning_content":1}`), delta(`{"reasoning":"0"}`) + delta(`{"reasoning_content":"1"}`), options{}},
		{"R-495 digits of thoughts, routed", delta(`{"reasoning":0}`) + delta(`{"reasoning_content":1,"reasoning":1}`), delta(`{"reasoning_content":"0"}`) + delta(`{"reasoning_content":"1"}`), split},
		{"error without meaning", `data: {"error":null,"choices":[{"index":0,"delta":{"content":"A"}}]}` + "\n\n", `data: {"choices":[{"index":0,"delta":{"content":"A"}}]}` + "\n\n", options{}},
		{"several data lines", "data: {\"choices\":[{\"index\":0,\ndata: \"delta\":{\"content\":\"A\"}}]}\n\n", `data: {"choices":[{"index":0, "delta":{"content":"A"}}]}` + "\n\n", options{}},
		{
			"one of two choices is over", `data: {"choices":[{"index":1,"delta":{"content":"X"}}]}` + "\n\n" + `data: {"choices":[{"index":1,"delta":{},"finish_reason":"length"}]}` + "\n\n" + `data: {"choices":[ {"index":0,"delta":{"content":"A"}} , {"index":1,"delta":{}}],"n":1}` + "\n\n",
			`data: {"choices":[{"index":1,"delta":{"content":"X"}}]}` + "\n\n" + `data: {"choices":[{"index":1,"delta":{},"finish_reason":"length"}]}` + "\n\n" + `data: {"choices":[{"index":0,"delta":{"content":"A"}}],"n":1}` + "\n\n",
			options{},
		},
		{"text that is not UTF-8", delta("{\"content\":\"a\xffb\"}"), delta(`{"content":"a` + "\ufffd" + `b"}`), options{}},
		{"a comment taken for data", "data: : PROCESSING\n\n" + content("A"), content("A"), options{}}, // SSE-04
		{"empty data", "data:\n\nevent: ping\n\n" + content("A"), content("A"), options{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			end := finish("stop")
			got := passed(t, c.in+end, c.opts)
			if c.opts.Model != "" {
				end = strings.ReplaceAll(end, `"model":"m"`, `"model":"`+c.opts.Model+`"`)
			}
			require.Equal(t, c.want+end, got)
		})
	}
}

// STR-09: clients know five finish reasons.
func TestFinishReasons(t *testing.T) {
	t.Parallel()
	call := delta(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`)
	for _, c := range []struct{ before, reason, want string }{
		{content("x"), "stop", "stop"},
		{content("x"), "length", "length"},
		{content("x"), "content_filter", "content_filter"},
		{content("x"), "STOP", "stop"},
		{content("x"), "end_turn", "stop"},
		{content("x"), "eos", "stop"},
		{content("x"), "MAX_TOKENS", "length"},
		{content("x"), "model_length", "length"},
		{content("x"), "content_filter: SAFETY", "content_filter"},
		{content("x"), "whatever", "stop"},
		{"", "whatever", "content_filter"},
		{"", "stop", "stop"},
		{call, "stop", "tool_calls"},
		{call, "end_turn", "tool_calls"},
		{call, "tool_use", "tool_calls"},
		{call, "length", "length"},
		{delta(`{"function_call":{"name":"f","arguments":"{}"}}`), "stop", "function_call"},
	} {
		out, _, err := pass(c.before+finish(c.reason)+doneEvent, options{})
		require.NoError(t, err)
		require.Equal(t, c.want, readStrictly(t, out).finish[0], "%s after %s", c.reason, c.before)
	}
	number := `data: {"choices":[{"index":0,"delta":{},"finish_reason":1}]}` + "\n\n"
	out, _, err := pass(content("x")+number+doneEvent, options{})
	require.NoError(t, err)
	require.Equal(t, "stop", readStrictly(t, out).finish[0])
}

// an event called error is one, whatever it holds.
func TestNamedErrors(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		`{"error":{"message":"x"}}`: `{"error":{"message":"x"}}`,
		`{"foo":"bar"}`:             `{"error":{"foo":"bar"}}`,
		`boom`:                      `{"error":"boom"}`,
	} {
		_, problem, err := pass("event: error\ndata: "+data+"\n\n", options{})
		require.NoError(t, err)
		require.Equal(t, want, string(problem))
	}
	_, problem, err := pass(content("A")+`error: {"code":500,"message":"context shift failed"}`+"\n\n", options{})
	require.NoError(t, err)
	require.JSONEq(t, `{"code":500,"message":"context shift failed"}`, string(problem))
}
