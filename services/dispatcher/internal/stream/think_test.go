package stream_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/answer/answertest"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/shared/openai"
)

func feed(tb testing.TB, f *stream.Filter, text string) stream.Step {
	tb.Helper()
	c, err := answertest.Chat(strings.NewReader(text)).Next()
	require.NoError(tb, err)
	return f.Take(c)
}

// rows of the table of, scenario 26.
var rows = []struct{ name, text, content, reasoning string }{
	{"1", "<think>a</think>b", "b", "a"},
	{"3", "x<y", "x<y", ""},
	{"4", "<<think>a</think>", "<", "a"},
	{"5", "<thinking>z", "<thinking>z", ""},
	{"6", "<think>a", "", "a"},
	{"7", "a<thin", "a<thin", ""},
	{"8", "p<think>q</think>r", "pr", "q"},
	{"9", "<think>a</think>b<think>c</think>d", "bd", "ac"},
	{"10", "<think></think>b", "b", ""},
	{"11", "</think>b", "</think>b", ""},
	{"12", "<think>a<think>b</think>c", "c", "a<think>b"},
	{"13", "<think>a</thin", "", "a</thin"},
	{"14", "한🌍<think>생각🤔</think>답🎉", "한🌍답🎉", "생각🤔"},
	{"mixed", "x<y <think>a</think>b<think>c</think>d<thin", "x<y bd<thin", "ac"},
	{"nested", "<think>a<think>b</think>c</think>d", "c</think>d", "a<think>b"},
}

// cuts gives every way to cut text at one or two rune boundaries, and into single characters.
func cuts(text string) [][]string {
	r := []rune(text)
	all := [][]string{{text}}
	for i := 1; i < len(r); i++ {
		all = append(all, []string{string(r[:i]), string(r[i:])})
		for j := i + 1; j < len(r); j++ {
			all = append(all, []string{string(r[:i]), string(r[i:j]), string(r[j:])})
		}
	}
	single := make([]string, len(r))
	for i := range r {
		single[i] = string(r[i])
	}
	return append(all, single)
}

func streamed(pieces []string) string {
	var b strings.Builder
	b.WriteString(delta(`{"role":"assistant","content":""}`))
	for _, p := range pieces {
		b.WriteString(content(p))
	}
	return b.String() + finish("stop") + doneEvent
}

// every row at every cut, streamed and whole, split and stripped; no part of a tag is ever sent as one.
func TestThinkTable(t *testing.T) {
	t.Parallel()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			for _, pieces := range cuts(row.text) {
				out, _, err := pass(streamed(pieces), options{Think: stream.ThinkSplit})
				require.NoError(t, err)
				got := readStrictly(t, out)
				require.Equal(t, row.content, got.content[0], "%q", pieces)
				require.Equal(t, row.reasoning, got.reasoning[0], "%q", pieces)
				require.True(t, got.done)

				out, _, err = pass(streamed(pieces), options{Think: stream.ThinkStrip})
				require.NoError(t, err)
				got = readStrictly(t, out)
				require.Equal(t, row.content, got.content[0], "%q", pieces)
				require.Empty(t, got.reasoning[0], "%q", pieces)
			}
			whole := answertest.Completion(completion(row.text), options{Think: stream.ThinkSplit})
			require.Equal(t, row.content, gjson.GetBytes(whole, "choices.0.message.content").Str)
			require.Equal(t, row.reasoning, gjson.GetBytes(whole, "choices.0.message.reasoning_content").Str)
			whole = answertest.Completion(completion(row.text), options{Think: stream.ThinkStrip})
			require.Equal(t, row.content, gjson.GetBytes(whole, "choices.0.message.content").Str)
			require.False(t, gjson.GetBytes(whole, "choices.0.message.reasoning_content").Exists())
		})
	}
}

// THK-03: a block that is never closed is reasoning, before the finish or the error.
func TestUnclosedBlock(t *testing.T) {
	t.Parallel()
	out, _, err := pass(content("<think>half")+finish("length")+doneEvent, options{Think: stream.ThinkSplit})
	require.NoError(t, err)
	got := readStrictly(t, out)
	require.Equal(t, "half", got.reasoning[0])
	require.Equal(t, "length", got.finish[0])

	out, _, err = pass(content("<think>half a thought</th"), options{Think: stream.ThinkSplit})
	require.Error(t, err)
	require.Equal(t, "half a thought</th", readStrictly(t, out).reasoning[0])
}

// THK-08: a bracket that can't open a tag is not held.
func TestBracketIsSentAtOnce(t *testing.T) {
	t.Parallel()
	f := stream.NewFilter(stream.Options{Think: stream.ThinkSplit})
	require.Equal(t, `"if a < b "`, string(feed(t, f, content("if a < b ")).Chunks[0].Choices[0].Content))
}

// R-225, THK-07: only text content is split; arrays and tool arguments stay byte for byte.
func TestOnlyTextIsSplit(t *testing.T) {
	t.Parallel()
	body := []byte(`{"choices":[{"index":0,"message":{"role":"assistant","content":[{"type":"text","text":"<think>x</think>y"}]},"finish_reason":"stop"}]}`)
	require.Equal(t, string(body), string(answertest.Completion(body, options{Think: stream.ThinkSplit})))
	text := delta(`{"content":null,"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"code\":\"<thi"}}]}`) +
		delta(`{"tool_calls":[{"index":0,"function":{"arguments":"nk>\"}"}}]}`) + finish("tool_calls") + doneEvent
	out, _, err := pass(text, options{Think: stream.ThinkSplit})
	require.NoError(t, err)
	require.Equal(t, text, out)
}

// THK-10, R-228: one reasoning field, each thought once.
func TestReasoningFields(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, reasoning string }{
		"other name":     {delta(`{"reasoning":"r1"}`), "r1"},
		"both names":     {delta(`{"reasoning":"r2","reasoning_content":"r2"}`), "r2"},
		"empty":          {delta(`{"reasoning_content":""}`), ""},
		"field and tags": {delta(`{"reasoning_content":"r1"}`) + content("<think>t1</think>"), "r1t1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, _, err := pass(tc.text+content("Hi")+finish("stop")+doneEvent, options{Think: stream.ThinkSplit})
			require.NoError(t, err)
			got := readStrictly(t, out)
			require.Equal(t, "Hi", got.content[0])
			require.Equal(t, tc.reasoning, got.reasoning[0])
		})
	}
}

// STR-10 and its reverse: JSON becomes events, events become JSON, and nothing is lost on the way.
func TestConversions(t *testing.T) {
	t.Parallel()
	body := []byte(`{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi","reasoning_content":"r",` +
		`"tool_calls":[{"id":"t1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`)
	events := synthesize(t, body, options{IncludeUsage: true})
	got := readStrictly(t, events)
	require.Equal(t, "Hi", got.content[0])
	require.Equal(t, "r", got.reasoning[0])
	require.Equal(t, []tool{{"t1", "f", "function", `{"x":1}`}}, got.tools[0])
	require.Equal(t, "tool_calls", got.finish[0])
	require.Len(t, got.usage, 1)
	require.True(t, got.done)

	back, problem, err := answertest.Collect(answertest.Chat(strings.NewReader(events)), options{})
	require.NoError(t, err)
	require.Nil(t, problem)
	require.JSONEq(t, string(body), string(back))
	require.Equal(t, int64(3), answertest.Usage(back).Total)
}

// Whatever the cuts, the streamed answer is the whole one, and the stream is well-formed.
func FuzzThink(f *testing.F) {
	for _, row := range rows {
		f.Add(row.text, uint64(0x5555))
	}
	f.Fuzz(func(t *testing.T, text string, where uint64) {
		if text = strings.ToValidUTF8(text, ""); text == "" || len(text) > 200 {
			return
		}
		var pieces []string
		last := 0
		for i := range text {
			if i > 0 && where>>(i%64)&1 == 1 {
				pieces = append(pieces, text[last:i])
				last = i
			}
		}
		out, _, err := pass(streamed(append(pieces, text[last:])), options{Think: stream.ThinkSplit})
		require.NoError(t, err)
		got := readStrictly(t, out)
		whole := answertest.Completion(completion(text), options{Think: stream.ThinkSplit})
		require.Equal(t, gjson.GetBytes(whole, "choices.0.message.content").Str, got.content[0])
		require.Equal(t, gjson.GetBytes(whole, "choices.0.message.reasoning_content").Str, got.reasoning[0])
	})
}

// Whatever an upstream sends, the filter neither panics nor lets an event out that is not JSON.
func FuzzFilter(f *testing.F) {
	f.Add(delta(`{"tool_calls":[{"index":0,"id":"a"}]}`) + finish("stop") + doneEvent)
	f.Add(usageChunk + `data: {"choices":[{"delta":{"tool_calls":[{"index":-1,"function":{"arguments":5}}]}}]}` + "\n\n")
	f.Add("data: [1]\n\ndata: {\"choices\":[null,1,\"x\"]}\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, opts := range []options{{}, {Think: stream.ThinkSplit, IncludeUsage: true}} {
			out, _, _ := pass(text, opts)
			events := openai.NewReader(strings.NewReader(out), 0)
			for {
				e, err := events.Next()
				if err != nil {
					break
				}
				if e.Data != nil && string(e.Data) != "[DONE]" && !gjson.ValidBytes(e.Data) {
					t.Fatalf("not JSON: %q", e.Data)
				}
			}
		}
	})
}
