package stream_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/stream"
)

// calls makes a delta with these tool-call entries.
func calls(entries ...string) string {
	return delta(`{"tool_calls":[` + strings.Join(entries, ",") + `]}`)
}

// TOOL-01 to TOOL-07 and their relatives: what a client puts together from a repaired stream. An id of "*" stands for one that was made up.
func TestToolCalls(t *testing.T) {
	t.Parallel()
	const full = `"function":{"name":"f","arguments":"{\"q\":1}"}`
	q1 := tool{"a", "f", "function", `{"q":1}`}
	cases := []struct {
		name string
		in   string
		want []tool
	}{
		{
			"no ids, index 0 twice, as Gemini", calls(`{"index":0,"id":"a","type":"function",`+full+`}`) + calls(`{"index":0,"id":"","type":"function",`+full+`}`),
			[]tool{q1, {"*", "f", "function", `{"q":1}`}},
		},
		{"no ids and no index", calls(`{` + full + `},{` + full + `}`), []tool{{"*", "f", "function", `{"q":1}`}, {"*", "f", "function", `{"q":1}`}}},
		{
			"one id for two calls", calls(`{"index":0,"id":"a","type":"function",`+full+`}`, `{"index":1,"id":"a","type":"function",`+full+`}`),
			[]tool{q1, {"*", "f", "function", `{"q":1}`}},
		},
		{"a new id with every piece", calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}`) +
			calls(`{"index":0,"id":"b","function":{"arguments":"{\"q\""}}`) + calls(`{"index":0,"id":"c","function":{"arguments":":1}"}}`) +
			calls(`{"index":0,"id":"d","function":{"arguments":""}}`), []tool{q1}},
		{"id and name with every piece", calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"q\""}}`) +
			calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":":1}"}}`), []tool{q1}},
		{
			"name with every piece, no ids", calls(`{"index":0,"function":{"name":"f","arguments":"{\"q\""}}`) + calls(`{"index":0,"function":{"name":"f","arguments":":1}"}}`),
			[]tool{{"*", "f", "function", `{"q":1}`}},
		},
		{"name first, then id", calls(`{"index":0,"function":{"name":"f"}}`) + calls(`{"index":0,"id":"a"}`) + calls(`{"index":0,"function":{"arguments":"{\"q\":1}"}}`), []tool{q1}},
		{"name first, then id, no index", calls(`{"function":{"name":"f"}}`) + calls(`{"id":"a"}`) + calls(`{"function":{"arguments":"{\"q\":1}"}}`), []tool{q1}},
		{"arguments before the name", calls(`{"index":0,"id":"a"}`) + calls(`{"index":0,"function":{"arguments":"{\"q\""}}`) + calls(`{"index":0,"function":{"name":"f","arguments":":1}"}}`), []tool{q1}},
		{"a name in pieces", calls(`{"index":0,"id":"a","type":"function","function":{"name":"fun","arguments":""}}`) + calls(`{"index":0,"function":{"name":"cti","arguments":""}}`) + calls(`{"index":0,"function":{"name":"on"}}`) + calls(`{"index":0,"function":{"arguments":"{}"}}`), []tool{{"a", "function", "function", "{}"}}}, // R-492
		{"a name in pieces, arguments with the last", calls(`{"index":0,"id":"a","type":"function","function":{"name":"fun"}}`) + calls(`{"index":0,"id":"","type":"function","function":{"name":"ction","arguments":"{}"}}`), []tool{{"a", "function", "function", "{}"}}},
		{"a name in pieces, no id", calls(`{"index":0,"function":{"name":"fun"}}`) + calls(`{"index":0,"function":{"name":"ction"}}`) + calls(`{"index":0,"function":{"arguments":"{}"}}`), []tool{{"*", "function", "function", "{}"}}},
		{"a name in pieces, the id before it", calls(`{"index":0,"id":"a"}`) + calls(`{"index":0,"function":{"name":"fun"}}`) + calls(`{"index":0,"function":{"name":"ction"}}`) + calls(`{"index":0,"function":{"arguments":"{}"}}`), []tool{{"a", "function", "function", "{}"}}},
		{"a name in pieces, the id with each", calls(`{"index":0,"id":"a","function":{"name":"fun"}}`) + calls(`{"index":0,"id":"a","function":{"name":"ction"}}`) + calls(`{"index":0,"function":{"arguments":"{}"}}`), []tool{{"a", "function", "function", "{}"}}},
		{"a name that grows", calls(`{"index":0,"id":"a","function":{"name":"fun"}}`) + calls(`{"index":0,"function":{"name":"function"}}`) + calls(`{"index":0,"function":{"arguments":"{}"}}`), []tool{{"a", "function", "function", "{}"}}},
		{"a name twice", calls(`{"index":0,"id":"a","function":{"name":"f"}}`) + calls(`{"index":0,"function":{"name":"f"}}`) + calls(`{"index":0,"function":{"arguments":"{\"q\":1}"}}`), []tool{q1}},
		{"a name in pieces, and no arguments", calls(`{"index":0,"id":"a","function":{"name":"fun"}}`) + calls(`{"index":0,"function":{"name":"ction"}}`), []tool{{"a", "function", "function", "{}"}}},
		{"names of two calls in pieces", calls(`{"index":0,"id":"a","function":{"name":"f"}}`, `{"index":1,"id":"b","function":{"name":"g"}}`) + calls(`{"index":1,"function":{"name":"2"}}`, `{"index":0,"function":{"name":"1"}}`) + calls(`{"index":0,"function":{"arguments":"{}"}}`, `{"index":1,"function":{"arguments":"{}"}}`), []tool{{"a", "f1", "function", "{}"}, {"b", "g2", "function", "{}"}}},
		{"the name of the second in pieces", calls(`{"index":0,"id":"a","type":"function",`+full+`}`) + calls(`{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":""}}`) + calls(`{"index":1,"function":{"name":"2"}}`) + calls(`{"index":1,"function":{"arguments":"{}"}}`), []tool{q1, {"b", "g2", "function", "{}"}}},
		{"another call with an id is no piece", calls(`{"index":0,"id":"a","function":{"name":"f"}}`) + calls(`{"index":0,"id":"b","function":{"name":"g"}}`) + calls(`{"index":0,"function":{"arguments":"{}"}}`), []tool{{"a", "f", "function", "{}"}, {"b", "g", "function", "{}"}}},
		{"a name behind arguments is no piece", calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"q\":1}"}}`) + calls(`{"index":0,"function":{"name":"g"}}`), []tool{q1, {"*", "g", "function", "{}"}}},
		{"arguments are an object", calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":{"q":1}}}`), []tool{q1}},
		{"arguments null", calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":null}}`), []tool{{"a", "f", "function", "{}"}}},
		{"only a name, ever", calls(`{"index":0,"function":{"name":"f"}}`), []tool{{"*", "f", "function", "{}"}}},
		{"only an id, ever", calls(`{"index":0,"id":"a","type":"function",`+full+`}`) + calls(`{"index":1,"id":"b"}`), []tool{q1}},
		{"index in quotes", calls(`{"index":"0","id":"a","type":"function",` + full + `}`), []tool{q1}},
		{"index negative", calls(`{"index":-1,"id":"a","type":"function",` + full + `}`), []tool{q1}},
		{"index huge", calls(`{"index":99999999,"id":"a","type":"function",` + full + `}`), []tool{q1}},
		{"no type", calls(`{"index":0,"id":"a",` + full + `}`), []tool{q1}},
		{"type with every piece", calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"q\""}}`) + calls(`{"index":0,"type":"function","function":{"arguments":":1}"}}`), []tool{q1}},
		{"gaps in the index", calls(`{"index":1,"id":"a","type":"function",`+full+`}`) + calls(`{"index":3,"id":"b","type":"function",`+full+`}`), []tool{q1, {"b", "f", "function", `{"q":1}`}}},
		{"interleaved", calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}`, `{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":""}}`) +
			calls(`{"index":0,"function":{"arguments":"{\"q\""}}`, `{"index":1,"function":{"arguments":"{}"}}`) + calls(`{"index":0,"function":{"arguments":":1}"}}`), []tool{q1, {"b", "g", "function", "{}"}}},
		{"second without arguments", calls(`{"index":0,"id":"a","type":"function",`+full+`}`) + calls(`{"index":0,"id":"b","type":"function","function":{"name":"g"}}`), []tool{q1, {"b", "g", "function", "{}"}}},
		{"with null instead of entries", delta(`{"content":"","tool_calls":null}`) + calls(`{"index":0,"id":"a","type":"function",`+full+`}`) + delta(`{"tool_calls":[]}`), []tool{q1}},
		{
			"quotes and braces in arguments", calls(`{"index":0,"function":{"name":"f","arguments":"{\"a\":\"}{\\\"\"}"}}`) + calls(`{"index":0,"function":{"name":"f","arguments":"{}"}}`),
			[]tool{{"*", "f", "function", `{"a":"}{\""}`}, {"*", "f", "function", `{}`}},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, reason := range []string{"stop", "tool_calls"} {
				out, _, err := pass(c.in+finish(reason)+doneEvent, options{Think: stream.ThinkSplit})
				require.NoError(t, err)
				requireTools(t, c.want, out)
			}
			// The finish reason in the chunk of the last entry, as Mistral sends it.
			last := strings.LastIndex(c.in, `"finish_reason":null`)
			out, _, err := pass(c.in[:last]+`"finish_reason":"tool_calls"`+c.in[last+len(`"finish_reason":null`):]+doneEvent, options{})
			require.NoError(t, err)
			requireTools(t, c.want, out)
		})
	}
}

func requireTools(t *testing.T, want []tool, out string) {
	t.Helper()
	got := readStrictly(t, out)
	require.Equal(t, "tool_calls", got.finish[0])
	ids := map[string]bool{}
	for i := range got.tools[0] {
		id := &got.tools[0][i].id
		require.False(t, ids[*id], "id %s twice", *id)
		ids[*id] = true
		if i < len(want) && want[i].id == "*" {
			require.Regexp(t, "^call_[a-z2-7]{26}$", *id)
			*id = "*"
		}
	}
	require.Equal(t, want, got.tools[0])
}

// A call that never gets a name can't be run: the stream is not a good one.
func TestCallWithoutName(t *testing.T) {
	t.Parallel()
	_, _, err := pass(calls(`{"index":0,"id":"a","function":{"arguments":"{}"}}`)+finish("tool_calls")+doneEvent, options{})
	require.Error(t, err)
}

// TOOL-06: members that only one provider knows survive the repair; Gemini needs its signature back.
func TestExtraMembersOfCalls(t *testing.T) {
	t.Parallel()
	const signature = `"extra_content":{"google":{"thought_signature":"U0lH"}}`
	for name, in := range map[string]string{
		"on the first delta": calls(`{` + signature + `,"function":{"name":"f","arguments":"{}"}}`),
		"on one that waits":  calls(`{"index":0,"id":"a",`+signature+`}`) + calls(`{"index":0,"function":{"name":"f","arguments":"{}"}}`),
		"on a later one":     calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}`) + calls(`{"index":0,"id":"",`+signature+`}`),
		"nothing to repair":  calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"},` + signature + `}`),
	} {
		out, _, err := pass(in+finish("stop")+doneEvent, options{})
		require.NoError(t, err, name)
		readStrictly(t, out)
		require.Equal(t, 1, strings.Count(out, signature), "%s: %s", name, out)
	}
}

// what comes with the pieces of a name is kept, and the first delta is the only one with a name.
func TestNameInPieces(t *testing.T) {
	t.Parallel()
	text := `data: {"id":"c1","choices":[{"index":0,"delta":{"role":"assistant","content":"x","tool_calls":[{"index":0,"id":"a","type":"function","x":1,"function":{"name":"r\u00e9","arguments":"","y":2}}]},"finish_reason":null}],"z":3}` + "\n\n" +
		calls(`{"index":0,"function":{"name":"ad","w":4}}`) + delta(`{"content":"y","tool_calls":[{"index":0,"v":5,"function":{"name":"_it"}}]}`) +
		calls(`{"index":0,"function":{"arguments":"{}"}}`)
	out := passed(t, text+finish("tool_calls")+doneEvent, options{})
	require.Equal(t, `data: {"id":"c1","choices":[{"index":0,"delta":{"role":"assistant","content":"x","tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"r\u00e9ad_it","arguments":"","y":2,"w":4},"x":1,"v":5}]},"finish_reason":null}],"z":3}`+"\n\n"+
		delta(`{"content":"y"}`)+calls(`{"index":0,"function":{"arguments":"{}"}}`)+finish("tool_calls"), out)

	custom := calls(`{"index":0,"id":"a","type":"custom","custom":{"name":"s"}}`) + calls(`{"index":0,"custom":{"name":"h"}}`) + calls(`{"index":0,"custom":{"input":"ls"}}`)
	require.JSONEq(t, `[{"id":"a","type":"custom","custom":{"name":"sh","input":"ls"}}]`,
		gjson.GetBytes(collect(t, custom+finish("stop")+doneEvent), "choices.0.message.tool_calls").Raw)

	out, _, err := pass(calls(`{"index":0,"id":"a","type":"function","function":{"name":"f"}}`), options{})
	require.ErrorIs(t, err, classify.ErrTruncated)
	require.Contains(t, out, `"name":"f"`, "what was held is sent before the error")
}

// A call of a custom tool that comes before its name keeps what came of its input.
func TestCustomCallThatWaits(t *testing.T) {
	t.Parallel()
	text := calls(`{"index":0,"id":"a","type":"custom","custom":{"input":"l","x":1}}`) + calls(`{"index":0,"custom":{"name":"sh","input":"s"}}`) +
		finish("stop") + doneEvent
	require.JSONEq(t, `[{"id":"a","type":"custom","custom":{"name":"sh","input":"ls","x":1}}]`,
		gjson.GetBytes(collect(t, text), "choices.0.message.tool_calls").Raw)
}
