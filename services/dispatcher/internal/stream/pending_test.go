package stream_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/answer/answertest"
	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/stream"
)

// early puts a finish reason into the events of a text.
func early(text, reason string) string {
	return strings.ReplaceAll(text, `"finish_reason":null`, `"finish_reason":"`+reason+`"`)
}

// a finish reason is one when the stream is over, and none when output comes behind it.
func TestPrematureFinish(t *testing.T) {
	t.Parallel()
	role, stop := delta(`{"role":"assistant","content":""}`), finish("stop")
	thought := func(text string) string { return delta(`{"reasoning_content":"` + text + `"}`) }
	call := calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}`)
	args := calls(`{"index":0,"function":{"arguments":"{\"q\""}}`) + calls(`{"index":0,"function":{"arguments":":1}"}}`)
	type want struct {
		content, reasoning, finish string
		calls                      int
	}
	hello := want{content: "Hello you", finish: "stop"}
	for name, tc := range map[string]struct {
		text string
		want want
	}{
		"on the role":                      {early(role, "stop") + content("Hello") + content(" you") + stop, hello},
		"before the role":                  {stop + role + content("Hello") + content(" you") + stop, hello},
		"with two roles":                   {early(role+role, "stop") + content("Hello") + content(" you") + stop, hello},
		"again and again":                  {stop + stop + stop + content("Hello") + stop + stop + content(" you") + stop, hello},
		"on every piece":                   {early(role+content("Hello")+content(" you"), "stop"), hello},
		"on every piece but the last":      {early(role+content("Hello"), "stop") + content(" you") + stop, hello},
		"in other words":                   {early(role, "STOP") + early(content("Hello"), "end_turn") + content(" you") + finish("eos"), hello},
		"on every piece, unknown word":     {early(content("Hello")+content(" you"), "whatever"), hello},
		"on the role and never again":      {early(role, "stop") + content("Hello") + content(" you"), hello},
		"behind the text and never again":  {early(content("Hello"), "stop") + content(" you"), hello},
		"of another kind":                  {content("Hello") + finish("length") + content(" you") + stop, hello},
		"on thoughts":                      {role + early(thought("a")+thought("b"), "stop") + content("Hello") + content(" you") + stop, want{"Hello you", "ab", "stop", 0}},
		"on the first thought":             {early(thought("a"), "stop") + thought("b") + content("Hello") + content(" you") + stop, want{"Hello you", "ab", "stop", 0}},
		"on everything, then a limit":      {early(role+thought("a")+content("Hello")+content(" you"), "stop") + finish("length"), want{"Hello you", "a", "length", 0}},
		"a limit, then the usual stop":     {content("Hello") + content(" you") + finish("length") + stop, want{content: "Hello you", finish: "length"}},
		"before a call":                    {early(role, "stop") + call + args + finish("tool_calls"), want{finish: "tool_calls", calls: 1}},
		"on the text before a call":        {early(content("Hello you"), "stop") + call + args + stop, want{"Hello you", "", "tool_calls", 1}},
		"on every piece of a call":         {early(call+args, "tool_calls"), want{finish: "tool_calls", calls: 1}},
		"on every piece of a call, stop":   {early(call+args, "stop") + stop, want{finish: "tool_calls", calls: 1}},
		"within a call":                    {call + stop + args + stop, want{finish: "tool_calls", calls: 1}},
		"within a tag":                     {early(content("<thi")+content("nk>a</th")+content("ink>Hello")+content(" you"), "stop"), want{"Hello you", "a", "stop", 0}},
		"with usage on every piece":        {strings.ReplaceAll(early(role+content("Hello")+content(" you"), "stop"), `}]}`, `}],"usage":{"total_tokens":3}}`), hello},
		"usage before any text":            {early(role, "stop") + usageChunk + content("Hello") + content(" you") + stop, hello},
		"comments in between":              {early(role, "stop") + ": x\n\n" + early(content("Hello"), "stop") + ": y\n\n" + content(" you") + stop, hello},
		"empty pieces in between":          {early(role, "stop") + role + delta(`{}`) + early(content("Hello"), "stop") + delta(`{"content":""}`) + content(" you") + stop, hello},
		"a whole answer behind the pieces": {content("Hello") + content(" you") + stop + "data: " + whole(`{"content":"Hello you"}`, `"stop"`) + "\n\n", hello},
		"text behind the usage":            {content("Hello") + content(" you") + stop + usageChunk + content("!"), hello},
		"members that some clients know":   {content("Hello") + content(" you") + stop + delta(`{"content":"","annotations":[1]}`), hello},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := tc.text + doneEvent
			for _, opts := range []options{{Think: stream.ThinkSplit}, {Think: stream.ThinkSplit, Model: "auto", IncludeUsage: true}} {
				out, problem, err := pass(text, opts)
				require.NoError(t, err)
				require.Nil(t, problem)
				got := readStrictly(t, out)
				require.True(t, got.done)
				require.Equal(t, tc.want, want{got.content[0], got.reasoning[0], got.finish[0], len(got.tools[0])})
				require.LessOrEqual(t, strings.Count(out, `"role"`), 1)
				if tc.want.calls > 0 {
					require.Equal(t, tool{"a", "f", "function", `{"q":1}`}, got.tools[0][0])
				}
			}
			choice := gjson.GetBytes(collect(t, text), "choices.0")
			require.Equal(t, tc.want, want{
				choice.Get("message.content").Str, choice.Get("message.reasoning_content").Str, choice.Get("finish_reason").Str, int(choice.Get("message.tool_calls.#").Int()),
			})
		})
	}
}

// R-491, STR-14: each choice has its own end.
func TestPrematureFinishOfChoices(t *testing.T) {
	t.Parallel()
	role := delta(`{"role":"assistant","content":""}`)
	both := func(first, other string) string {
		return `data: {"id":"c1","choices":[{"index":0,` + first + `},{"index":1,` + other + `}]}` + "\n\n"
	}
	const text, none, stop, open = `"delta":{"content":"x"}`, `"delta":{}`, `,"finish_reason":"stop"`, `,"finish_reason":null`
	for name, tc := range map[string]struct{ text, first, other string }{
		"on both roles":              {early(role+second(role), "stop") + content("A") + second(content("X")) + content("B") + second(content("Y")) + finish("stop") + second(finish("stop")), "AB", "XY"},
		"on one role":                {early(role, "stop") + second(content("X")) + second(content("Y")) + second(finish("stop")) + content("A") + content("B") + finish("stop"), "AB", "XY"},
		"on every piece":             {early(content("A")+second(content("X"))+content("B")+second(content("Y")), "stop"), "AB", "XY"},
		"on the thoughts of one":     {early(delta(`{"reasoning":"r"}`), "stop") + second(content("XY")) + content("AB") + finish("stop") + second(finish("stop")), "AB", "XY"},
		"of both in one chunk":       {both(none+stop, none+stop) + both(text+stop, text+stop) + both(text+stop, text+stop), "xx", "xx"},
		"of one in a chunk of both":  {both(none+stop, text+open) + both(text+stop, text+stop) + both(text+stop, none+open), "xx", "xx"},
		"of both, then one by one":   {both(none+stop, none+stop) + content("A") + second(content("X")) + content("B") + finish("stop") + second(content("Y")) + second(finish("stop")), "AB", "XY"},
		"one goes on, the other not": {both(text+stop, text+stop) + content("B") + finish("stop"), "xB", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, problem, err := pass(tc.text+doneEvent, options{Choices: 2})
			require.NoError(t, err)
			require.Nil(t, problem)
			got := readStrictly(t, out)
			require.Equal(t, map[int]string{0: tc.first, 1: tc.other}, got.content)
			require.Equal(t, map[int]string{0: "stop", 1: "stop"}, got.finish)
			all := gjson.GetBytes(collect(t, tc.text+doneEvent), "choices")
			require.Equal(t, tc.first, all.Get("0.message.content").Str)
			require.Equal(t, tc.other, all.Get("1.message.content").Str)
		})
	}
}

// R-491, STR-02: what went on after a finish reason, and then broke off, is not complete, unless the upstream says so.
func TestBrokenOffAfterPrematureFinish(t *testing.T) {
	t.Parallel()
	role := delta(`{"role":"assistant","content":""}`)
	for name, tc := range map[string]struct {
		text, out string
		want      error
	}{
		"a stop on the role": {early(role, "stop") + content("Hi"), role + content("Hi"), classify.ErrTruncated},
		"on a thought":       {early(delta(`{"reasoning":"a"}`), "stop") + delta(`{"reasoning":"b"}`), delta(`{"reasoning":"a"}`) + delta(`{"reasoning":"b"}`), classify.ErrTruncated},
		"one of two":         {content("A") + early(content("B"), "stop") + second(content("X")), content("A") + early(content("B"), "stop") + second(content("X")), classify.ErrTruncated},
		"one of two, unsure": {early(delta(`{"reasoning":"a"}`), "stop") + ": x\n\n" + second(content("X")), ": x\n\n" + second(content("X")) + delta(`{"reasoning":"a"}`), classify.ErrTruncated},
		"behind a text":      {early(content("H"), "stop") + content("i"), content("H") + content("i"), nil},
		"alone":              {early(role, "stop"), early(role, "stop"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, problem, err := pass(tc.text, options{})
			require.Nil(t, problem)
			require.ErrorIs(t, err, tc.want)
			if tc.want != nil {
				require.Equal(t, tc.out, out)
			} else {
				require.True(t, strings.HasPrefix(out, tc.out), out)
				require.Equal(t, "stop", readStrictly(t, out).finish[0])
			}
		})
	}
}

// what is held back is no more than the end, and a stop before any output decides nothing.
func TestWhatWaits(t *testing.T) {
	t.Parallel()
	type step struct {
		in                         string
		out                        string // what the client gets; "same" for the event as it came
		decisive, settled, resumed bool
	}
	role, stop := delta(`{"role":"assistant","content":""}`), finish("stop")
	name := calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}`)
	args := calls(`{"index":0,"function":{"arguments":"{}"}}`)
	for _, tc := range [][]step{
		{{role, "same", false, false, false}, {content("A"), "same", true, false, false}, {stop, "", false, true, false}, {usageChunk, stop, false, true, false}},
		{{early(role, "stop"), "", false, false, false}, {stop, "", false, false, false}, {content("A"), role + content("A"), true, false, true}, {stop, "", false, true, false}},
		{{stop, "", false, false, false}, {": x\n\n", "same", false, false, false}, {usageChunk, "", false, false, false}, {content("A"), "same", true, false, true}},
		{{finish("length"), "", true, true, false}},
		{{finish("content_filter"), "", true, true, false}},
		{{early(delta(`{"reasoning":"r"}`), "stop"), "", true, false, false}, {": x\n\n", "same", false, false, false}, {finish("length"), "", true, true, false}},
		// Once it was wrong, pieces do not wait for the next.
		{{early(content("A"), "stop"), "", true, true, false}, {early(content("B"), "stop"), content("A") + content("B"), true, true, true}, {early(content("C"), "stop"), content("C"), true, true, true}, {usageChunk, "", false, true, false}},
		{{content("A"), "same", true, false, false}, {stop, "", false, true, false}, {": x\n\n", "", false, true, false}, {content("B"), ": x\n\n" + content("B"), true, false, true}},
		{{name, "", true, false, false}, {args, name + args, true, false, false}, {finish("tool_calls"), "", true, true, false}},
		{{name, "", true, false, false}, {": x\n\n", name + ": x\n\n", false, false, false}, {args, "same", true, false, false}},
		{{name, "", true, false, false}, {usageChunk, "", false, false, false}, {stop, name, false, true, false}},
	} {
		f := stream.NewFilter(stream.Options{})
		for i, s := range tc {
			want := s.out
			if want == "same" {
				want = s.in
			}
			got := feed(t, f, s.in)
			at := strconv.Itoa(i) + ": " + s.in
			require.Equal(t, want, answertest.Write(got.Chunks), at)
			require.Equal(t, s.decisive, got.Decisive, at)
			require.Equal(t, s.resumed, got.Resumed, at)
			require.Equal(t, s.settled, f.Settled(), at)
		}
	}
}

// What waits behind a finish reason is bounded.
func TestCommentsThatWait(t *testing.T) {
	t.Parallel()
	out, _, err := pass(content("Hi")+finish("stop")+strings.Repeat(": x\n\n", 1000)+doneEvent, options{})
	require.NoError(t, err)
	require.Equal(t, content("Hi")+finish("stop")+strings.Repeat(": x\n\n", 16)+doneEvent, out)
}
