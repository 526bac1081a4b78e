package anthropic_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/answer/answertest"
	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/shared/openai"
)

const nativeThinking = `{"id":"m","type":"message","role":"assistant","model":"x","content":[{"type":"thinking","thinking":"Look \"up\"\n\u00e9.","signature":"s1=="},` +
	`{"type":"redacted_thinking","data":"d1"},{"type":"thinking","thinking":"","signature":"s2"},{"type":"text","text":"Let me."},` +
	`{"type":"tool_use","id":"toolu_1","name":"f","input":{"n":1.50}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2}}`

// native gives an event as the API sends it.
func native(kind, members string) string {
	return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"" + members + "}\n\n"
}

func started(index int, block string) string {
	return native("content_block_start", fmt.Sprintf(`,"index":%d,"content_block":%s`, index, block))
}

func delta(index int, delta string) string {
	return native("content_block_delta", fmt.Sprintf(`,"index":%d,"delta":%s`, index, delta))
}

func stopped(index int) string {
	return native("content_block_stop", fmt.Sprintf(`,"index":%d`, index))
}

func ended(reason string) string {
	return native("message_delta", `,"delta":{"stop_reason":"`+reason+`","stop_sequence":null},"usage":{"output_tokens":2}`) + native("message_stop", "")
}

var (
	head  = native("message_start", `,"message":{"id":"m","type":"message","role":"assistant","model":"x","content":[],"usage":{"input_tokens":1,"output_tokens":1}}`)
	hello = started(0, `{"type":"text","text":""}`) + delta(0, `{"type":"text_delta","text":"Hello"}`) + stopped(0)

	streamedThinking = head + started(0, `{"type":"thinking","thinking":"","signature":""}`) + delta(0, `{"type":"thinking_delta","thinking":"Look \"up\""}`) + delta(0, `{"type":"thinking_delta","thinking":"\n\u00e9."}`) +
		delta(0, `{"type":"signature_delta","signature":"s1=="}`) + stopped(0) + started(1, `{"type":"redacted_thinking","data":"d1"}`) + stopped(1) +
		started(2, `{"type":"thinking","thinking":"","signature":"s2"}`) + stopped(2) +
		started(3, `{"type":"text","text":""}`) + delta(3, `{"type":"text_delta","text":"Let me."}`) + stopped(3) +
		started(4, `{"type":"tool_use","id":"toolu_1","name":"f","input":{}}`) + delta(4, `{"type":"input_json_delta","partial_json":"{\"n\":1.50}"}`) + stopped(4) + ended("tool_use")
)

// Streams that are sound, and those that other servers of the protocol send.
func TestEvents(t *testing.T) {
	t.Parallel()
	spent := openai.Usage{Prompt: 1, Completion: 2, Total: 3}
	cases := []struct {
		name, in string
		want     answered
	}{
		{"every way to end", head + hello + ended("end_turn"), answered{content: "Hello", finish: "stop", usage: spent}},
		{"stop sequence", head + hello + ended("stop_sequence"), answered{content: "Hello", finish: "stop", usage: spent}},
		{"pause", head + hello + ended("pause_turn"), answered{content: "Hello", finish: "stop", usage: spent}},
		{"limit", head + hello + ended("max_tokens"), answered{content: "Hello", finish: "length", usage: spent}},
		{"window", head + hello + ended("model_context_window_exceeded"), answered{content: "Hello", finish: "length", usage: spent}},
		{"refusal", head + hello + ended("refusal"), answered{content: "Hello", finish: "content_filter", usage: spent}},
		{"a reason of the future", head + hello + ended("bored"), answered{content: "Hello", finish: "stop", usage: spent}},
		{"an empty answer", head + ended("end_turn"), answered{finish: "stop", usage: spent}},
		{"text in the start of its block", head + started(0, `{"type":"text","text":"Hel"}`) + delta(0, `{"type":"text_delta","text":"lo"}`) + ended("end_turn"), answered{content: "Hello", finish: "stop", usage: spent}},
		{
			"input in the start of its block", head + started(0, `{"type":"tool_use","id":"a","name":"f","input":{"n" : 1.50}}`) + stopped(0) + ended("tool_use"),
			answered{finish: "tool_calls", names: []string{"f"}, args: []string{`{"n":1.50}`}, usage: spent},
		},
		{
			"calls without stops between them (TOOL-07)", head + started(0, `{"type":"tool_use","id":"a","name":"f","input":{}}`) + started(5, `{"type":"tool_use","id":"b","name":"g"}`) + delta(5, `{"type":"input_json_delta","partial_json":"{}"}`) + ended("tool_use"),
			answered{finish: "tool_calls", names: []string{"f", "g"}, args: []string{`{}`, `{}`}, usage: spent},
		},
		{"a call with the wrong reason (STR-09)", head + started(0, `{"type":"tool_use","id":"a","name":"f","input":{}}`) + ended("end_turn"), answered{finish: "tool_calls", names: []string{"f"}, args: []string{`{}`}, usage: spent}},
		{
			"the provider's own tools", head + started(0, `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`) + delta(0, `{"type":"input_json_delta","partial_json":"{}"}`) + stopped(0) +
				started(1, `{"type":"web_search_tool_result","tool_use_id":"s","content":[]}`) + stopped(1) + hello + delta(2, `{"type":"citations_delta","citation":{}}`) + delta(2, `{"type":"new_delta","text":"x"}`) + ended("end_turn"),
			answered{content: "Hello", finish: "stop", usage: spent},
		},
		{"unknown events", head + native("new_event", `,"x":1`) + hello + "event: x\n\n" + ended("end_turn"), answered{content: "Hello", finish: "stop", usage: spent}},
		{"no event names", strings.ReplaceAll(head+hello+ended("end_turn"), "event: ", "x: "), answered{content: "Hello", finish: "stop", usage: spent}},
		{"no types but event names", strings.ReplaceAll(head+hello+ended("end_turn"), `data: {"type":`, `data: {"typ":`), answered{content: "Hello", finish: "stop", usage: spent}},
		{"a null error", strings.ReplaceAll(head+hello+ended("end_turn"), `"index":0`, `"error":null`), answered{content: "Hello", finish: "stop", usage: spent}},
		{"usage only in the start", head + hello + native("message_delta", `,"delta":{"stop_reason":"end_turn"}`) + native("message_stop", ""), answered{content: "Hello", finish: "stop", usage: openai.Usage{Prompt: 1, Completion: 1, Total: 2}}},
		{"no reason", head + hello + native("message_delta", `,"delta":{"stop_reason":null},"usage":null`) + native("message_stop", ""), answered{content: "Hello", finish: "stop", usage: openai.Usage{Prompt: 1, Completion: 1, Total: 2}}},
		{"something after the end", head + hello + ended("end_turn") + "data: [DONE]\n\n" + head, answered{content: "Hello", finish: "stop", usage: spent}},
		{"usage that is nonsense", strings.ReplaceAll(head+hello+ended("end_turn"), `"output_tokens":`, `"cache_read_input_tokens":null,"cache_creation_input_tokens":-5,"output_tokens":1e99,"x":`), answered{content: "Hello", finish: "stop", usage: openai.Usage{Prompt: 1, Total: 1}}},
		{"thinking", streamedThinking, answered{content: "Let me.", reasoning: "Look \"up\"\né.", finish: "tool_calls", names: []string{"f"}, args: []string{`{"n":1.50}`}, usage: spent}},
		{"cut", head + hello, answered{err: classify.ErrTruncated}},
		{"cut before all", head, answered{err: classify.ErrEmptyAnswer}},
		{"cut within an event", head + hello + `data: {"type":"message_del`, answered{err: classify.ErrTruncated}},
		{"[DONE] is not theirs", head + hello + "data: [DONE]\n\n", answered{err: classify.ErrTruncated}},
		{"a message of nothing", head + native("message_stop", ""), answered{err: classify.ErrEmptyAnswer}},
		{"nothing", "", answered{err: classify.ErrEmptyAnswer}},
		{"an error without a name", head + hello + `data: {"type":"error","error":{"type":"api_error","message":"x"}}` + "\n\n" + hello, answered{problem: "api_error"}},
		{"an error of a proxy", `data: {"error":{"type":"bad_gateway","message":"x"}}` + "\n\n", answered{problem: "bad_gateway"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, filter(t, translate(t, iotest.OneByteReader(strings.NewReader(c.in)))))
		})
	}
}

// what comes behind a reason is not lost, and the last reason counts.
func TestPrematureReason(t *testing.T) {
	t.Parallel()
	stop := func(reason string) string {
		return native("message_delta", `,"delta":{"stop_reason":"`+reason+`"},"usage":{"output_tokens":1}`)
	}
	call := started(1, `{"type":"tool_use","id":"a","name":"f"}`) + delta(1, `{"type":"input_json_delta","partial_json":"{\"n\""}`)
	rest := delta(1, `{"type":"input_json_delta","partial_json":":1}"}`) + stopped(1)
	thought := started(0, `{"type":"thinking","thinking":"Hm"}`) + stopped(0)
	for name, c := range map[string]struct {
		in, content, reasoning, finish, args string
	}{
		"before all":         {head + stop("end_turn") + hello + ended("end_turn"), "Hello", "", "stop", ""},
		"between blocks":     {head + hello + stop("end_turn") + hello + call + rest + ended("max_tokens"), "HelloHello", "", "length", `{"n":1}`},
		"within a block":     {head + started(0, `{"type":"text","text":"Hel"}`) + stop("end_turn") + delta(0, `{"type":"text_delta","text":"lo"}`) + ended("end_turn"), "Hello", "", "stop", ""},
		"on thoughts":        {head + thought + stop("end_turn") + hello + ended("end_turn"), "Hello", "Hm", "stop", ""},
		"twice, and no more": {head + hello + stop("end_turn") + ended("end_turn"), "Hello", "", "stop", ""},
		"only the first one": {head + hello + stop("end_turn") + hello + native("message_stop", ""), "HelloHello", "", "stop", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, problem, err := answertest.Collect(events(strings.NewReader(c.in)), answertest.Options{})
			require.NoError(t, err)
			require.Nil(t, problem)
			choice := gjson.GetBytes(body, "choices.0")
			require.Equal(t, c.content, choice.Get("message.content").Str)
			require.Equal(t, c.reasoning, choice.Get("message.reasoning_content").Str)
			require.Equal(t, c.finish, choice.Get("finish_reason").Str)
			require.Equal(t, c.args, choice.Get("message.tool_calls.0.function.arguments").Str)
		})
	}
}

// known counts do not fall back to zero, and the usage is there whatever comes, or does not, after the reason.
func TestUsageOfStream(t *testing.T) {
	t.Parallel()
	start := func(usage string) string {
		return native("message_start", `,"message":{"id":"m","type":"message","role":"assistant","model":"x","content":[],"usage":`+usage+`}`) + hello
	}
	stop := func(usage string) string {
		return native("message_delta", `,"delta":{"stop_reason":"end_turn"},"usage":`+usage)
	}
	end := native("message_stop", "")
	for name, c := range map[string]struct {
		in   string
		want openai.Usage
	}{
		"zeros at the end":       {start(`{"input_tokens":18,"cache_read_input_tokens":7,"output_tokens":1}`) + stop(`{"input_tokens":0,"cache_read_input_tokens":0,"output_tokens":9}`) + end, openai.Usage{Prompt: 25, Completion: 9, Total: 34, Cached: 7}},
		"zeros at the beginning": {start(`{"input_tokens":0,"output_tokens":0}`) + stop(`{"input_tokens":41,"output_tokens":12}`) + end, openai.Usage{Prompt: 41, Completion: 12, Total: 53}},
		"zeros alone":            {start(`{"input_tokens":5,"output_tokens":1}`) + stop(`{"output_tokens":8}`) + stop(`{"input_tokens":0,"output_tokens":0}`) + end, openai.Usage{Prompt: 5, Completion: 8, Total: 13}},
		"more after the reason":  {start(`{"input_tokens":5,"output_tokens":1}`) + stop(`{"output_tokens":8}`) + native("message_delta", `,"delta":{},"usage":{"output_tokens":9}`) + end, openai.Usage{Prompt: 5, Completion: 9, Total: 14}},
		"no last event":          {start(`{"input_tokens":5,"output_tokens":1}`) + stop(`{"output_tokens":8}`), openai.Usage{Prompt: 5, Completion: 8, Total: 13}},
		"a cut last event":       {start(`{"input_tokens":5,"output_tokens":1}`) + stop(`{"output_tokens":8}`) + "event: message_st", openai.Usage{Prompt: 5, Completion: 8, Total: 13}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, problem, err := answertest.Relay(events(strings.NewReader(c.in)), answertest.Options{IncludeUsage: true})
			require.NoError(t, err)
			require.Nil(t, problem)
			require.Equal(t, 1, strings.Count(out, `"usage"`))
			require.True(t, strings.HasSuffix(out, openai.Done))
			for e := range chunks(t, out) {
				if u := gjson.GetBytes(e, "usage"); u.Exists() {
					require.Equal(t, c.want, openai.ParseUsage([]byte(u.Raw)))
				}
			}
		})
	}
}

// What is no event of the protocol goes to the next reader, which knows a failure when it sees one.
func TestUnreadableEvents(t *testing.T) {
	t.Parallel()
	cases := []struct{ in, want string }{
		{"event: error\ndata: overloaded\n\n" + hello, "data: {\"error\":\"overloaded\"}\n\n"},
		{"event: error\ndata: {\"message\":\"x\"}\n\n", "data: {\"message\":\"x\"}\n\n"},
		{"data: {\"type\":\"error\",\ndata: \"message\":\"x\"}\n\n" + hello, "data: {\"type\":\"error\", \"message\":\"x\"}\n\n"},
		{"data: <html>\n\n", "data: <html>\n\n"},
		{"data: [{\"error\":{\"message\":\"x\"}}]\n\n", "data: [{\"error\":{\"message\":\"x\"}}]\n\n"},
		{"data: \n\ndata:\n\ndata: [DONE]\n\ndata: {\"type\"", ""},
		{": waiting\n\n\n\nid: 7\n\n", ": ping\n\n"},
	}
	for _, c := range cases {
		require.Equal(t, c.want, translate(t, strings.NewReader(c.in)), "%q", c.in)
	}
}

// SSE-06, SSE-07: long pieces arrive whole, and bytes that are no text become one.
func TestTextOfAllKinds(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"안녕 🌍", `\ud83c\udf0d \/ \"\\ \u00e9`, strings.Repeat("x", 70_000), strings.Repeat("é", 1_100_000), "<think>a</think>"} {
		in := head + started(0, `{"type":"text","text":""}`) + delta(0, `{"type":"text_delta","text":"`+text+`"}`) + ended("end_turn")
		require.Equal(t, gjson.Parse(`"`+text+`"`).Str, filter(t, translate(t, strings.NewReader(in))).content)
	}
	in := head + delta(0, `{"type":"text_delta","text":"`+"a\xffb"+`"}`) + ended("end_turn")
	require.Equal(t, "a\ufffdb", filter(t, translate(t, strings.NewReader(in))).content)
}

// A stream without message_start gets an id of our own, the same in all chunks.
func TestStreamWithoutStart(t *testing.T) {
	t.Parallel()
	out := translate(t, strings.NewReader(hello+ended("end_turn")))
	ids := map[string]int{}
	for e := range chunks(t, out) {
		ids[gjson.GetBytes(e, "id").Str]++
	}
	require.Len(t, ids, 1)
	for id := range ids {
		require.Regexp(t, `^chatcmpl-[a-z2-7]{26}$`, id)
	}
	require.Equal(t, answered{content: "Hello", finish: "stop", usage: openai.Usage{Completion: 2, Total: 2}}, filter(t, out))
}

// The memory for thinking is bounded: of very much, the text arrives, but not the entry that would bring it back.
func TestVeryMuchThinking(t *testing.T) {
	t.Parallel()
	piece := delta(0, `{"type":"thinking_delta","thinking":"`+strings.Repeat("r", 1<<20)+`"}`)
	tail := delta(0, `{"type":"signature_delta","signature":"s"}`) + stopped(0) + hello + ended("end_turn")
	for n, want := range map[int]bool{2: true, 6: false} {
		out := translate(t, strings.NewReader(head+started(0, `{"type":"thinking","thinking":""}`)+strings.Repeat(piece, n)+tail))
		require.Equal(t, want, strings.Contains(out, "reasoning_details"))
		require.Len(t, filter(t, out).reasoning, n<<20)
	}
}

// endless gives the same byte for ever.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// The error of the source is that of the translation, after what came before it.
func TestErrorOfTheSource(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	out, err := answertest.Text(events(io.MultiReader(strings.NewReader(head+hello), iotest.ErrReader(broken))))
	require.ErrorIs(t, err, broken)
	require.Equal(t, 2, strings.Count(out, "data: "))
	out, err = answertest.Text(events(io.MultiReader(strings.NewReader("data: "), endless{})))
	require.ErrorIs(t, err, openai.ErrEventTooLarge)
	require.Empty(t, out)
}

// A chunk comes as soon as its event is there, not when more is.
func TestNothingIsHeldBack(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	src := events(r)
	for _, step := range []struct{ in, want string }{
		{head, ""}, {delta(0, `{"type":"text_delta","text":"A"}`), `"A"`}, {native("ping", ""), ": ping"}, {delta(0, `{"type":"text_delta","text":"B"}`), `"B"`},
	} {
		written := make(chan error, 1)
		go func() {
			_, err := io.WriteString(w, step.in)
			written <- err
		}()
		c, err := src.Next()
		require.NoError(t, err)
		if got := string(c.Raw); c.Kind == answer.Piece {
			got = string(c.Choices[0].Content)
			require.Contains(t, got, step.want)
		} else {
			require.Contains(t, got, step.want)
		}
		require.False(t, src.Buffered())
		require.NoError(t, <-written)
	}
	require.NoError(t, w.Close())
}

// The answers that have no fixture.
func TestCompletion(t *testing.T) {
	t.Parallel()
	whole := func(content, stop string) answered {
		return ofBody(completion([]byte(`{"id":"m","type":"message","model":"x","content":[` + content + `],"stop_reason":` + stop + `}`)))
	}
	require.Equal(t, answered{content: "ab", finish: "stop"}, whole(`{"type":"text","text":"a","citations":[{}]},{"type":"web_search_tool_result","content":[]},{"type":"text","text":"b"},7,null`, `"end_turn"`))
	require.Equal(t, answered{finish: "content_filter"}, whole(``, `"refusal"`))
	require.Equal(t, answered{finish: "stop"}, whole(``, `null`))
	require.Equal(t, answered{content: "a", reasoning: "r", finish: "stop"}, whole(`{"type":"thinking","thinking":"r"},{"type":"redacted_thinking"},{"type":"text","text":"a"}`, `"end_turn"`))
	require.Equal(t, answered{content: "a", finish: "length"}, whole(`{"type":"text","text":"a"}`, `"max_tokens"`))
	require.Equal(t, answered{finish: "tool_calls", names: []string{"f", ""}, args: []string{`{"a":"\n","n":12345678901234567890}`, `{}`}},
		whole(`{"type":"tool_use","id":"a","name":"f","input":{"a" : "\n",`+"\n"+`"n": 12345678901234567890}},{"type":"tool_use"}`, `"end_turn"`))

	body := completion([]byte(`{"type":"message","content":[{"type":"tool_use","id":"a","name":"f","input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"cache_creation_input_tokens":5,"cache_read_input_tokens":7,"output_tokens":11,"output_tokens_details":{"thinking_tokens":4}}}`))
	require.Equal(t, "null", gjson.GetBytes(body, "choices.0.message.content").Raw)
	require.Equal(t, `{"prompt_tokens":15,"completion_tokens":11,"total_tokens":26,"prompt_tokens_details":{"cached_tokens":7,"cache_write_tokens":5},"completion_tokens_details":{"reasoning_tokens":4}}`, gjson.GetBytes(body, "usage").Raw)
}
