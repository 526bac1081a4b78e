package messages_test

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/answer/answertest"
	"hydrallm/services/dispatcher/internal/dialect/anthropic"
	"hydrallm/services/dispatcher/internal/surface"
	"hydrallm/services/dispatcher/internal/surface/messages"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/testkit/fixtures"
)

const question = `{"model":"m","max_tokens":64,"stream":true,"messages":[{"role":"user","content":"hi there"}]}`

func options(tb testing.TB) answertest.Options {
	tb.Helper()
	r, err := messages.Surface{}.Read(&contract.Request{}, []byte(question))
	require.NoError(tb, err)
	hub, err := r.Chat()
	require.NoError(tb, err)
	require.True(tb, hub.Stream)
	return answertest.Options{To: r.Answer, IncludeUsage: true}
}

// message is what a client of Messages makes of a stream. It holds to the order that its SDKs check.
type message struct {
	types  []string
	blocks []gjson.Result // as they begin
	said   []string       // what the deltas of each join to
	stop   gjson.Result
	usage  gjson.Result
	err    string
}

// read reads a stream as strictly as the SDKs do: one message, blocks in order that never overlap, the usage once.
func read(tb testing.TB, text string) message {
	tb.Helper()
	return readFrom(tb, text, 2)
}

// readFrom is read for a stream that begins with this number of tokens, at least.
func readFrom(tb testing.TB, text string, tokens int64) (m message) {
	tb.Helper()
	open := false
	for event := range strings.SplitSeq(strings.TrimSuffix(text, "\n\n"), "\n\n") {
		if event == "" {
			continue
		}
		if strings.HasPrefix(event, ":") {
			require.Empty(tb, m.types)
			continue
		}
		name, data, ok := strings.Cut(event, "\ndata: ")
		require.True(tb, ok, event)
		require.True(tb, json.Valid([]byte(data)), data)
		e := gjson.Parse(data)
		kind := e.Get("type").Str
		require.Equal(tb, "event: "+kind, name)
		require.Empty(tb, m.err, "nothing comes after an error")
		require.NotContains(tb, m.types, "message_stop")
		switch kind {
		case "ping":
			continue
		case "message_start":
			require.Empty(tb, m.types)
			require.Equal(tb, "[]", e.Get("message.content").Raw)
			require.Equal(tb, "null", e.Get("message.stop_reason").Raw)
			require.Equal(tb, "null", e.Get("message.stop_sequence").Raw)
			require.GreaterOrEqual(tb, e.Get("message.usage.input_tokens").Int(), tokens, "the estimate")
			require.NotEmpty(tb, e.Get("message.id").Str)
		case "content_block_start":
			require.NotEmpty(tb, m.types)
			require.False(tb, open)
			require.Equal(tb, int64(len(m.blocks)), e.Get("index").Int())
			open = true
			m.blocks, m.said = append(m.blocks, e.Get("content_block")), append(m.said, "")
		case "content_block_delta":
			require.True(tb, open)
			require.Equal(tb, int64(len(m.blocks)-1), e.Get("index").Int())
			d := e.Get("delta")
			for _, member := range []string{"text", "thinking", "partial_json"} {
				m.said[len(m.said)-1] += d.Get(member).Str
			}
			if s := d.Get("signature"); s.Exists() {
				m.said[len(m.said)-1] += " signed " + s.Str
			}
		case "content_block_stop":
			require.True(tb, open)
			require.Equal(tb, int64(len(m.blocks)-1), e.Get("index").Int())
			open = false
		case "message_delta":
			require.False(tb, open)
			m.stop, m.usage = e.Get("delta"), e.Get("usage")
			require.True(tb, m.stop.Get("stop_sequence").Exists())
			require.True(tb, m.usage.Get("output_tokens").Exists())
		case "message_stop":
			require.True(tb, m.stop.Exists())
		case "error":
			m.err = e.Get("error.type").Str
		}
		m.types = append(m.types, kind)
	}
	return m
}

// story is the blocks in short.
func (m message) story() string {
	var all []string
	for i, b := range m.blocks {
		word := b.Get("type").Str
		if name := b.Get("name").Str; name != "" {
			word += " " + name
		}
		all = append(all, word+"("+m.said[i]+")")
	}
	return strings.Join(all, " ") + " | " + m.stop.Get("stop_reason").Str
}

// an answer as a stream of Messages, whatever the provider sends.
func TestStream(t *testing.T) {
	t.Parallel()
	delta := func(d string) string {
		return `data: {"id":"c1","model":"real","choices":[{"index":0,"delta":` + d + `}]}` + "\n\n"
	}
	finish := func(reason string) string {
		return `data: {"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}` + "\n\n"
	}
	call := func(index, head, args string) string {
		return delta(`{"tool_calls":[{"index":` + index + `,` + head + `"function":{` + args + `}}]}`)
	}
	const (
		first  = `"id":"a","type":"function",`
		second = `"id":"b","type":"function",`
		done   = "data: [DONE]\n\n"
	)
	tests := map[string]struct{ in, want string }{
		"text":                           {delta(`{"role":"assistant","content":""}`) + delta(`{"content":"He"}`) + ": wait\n\n" + delta(`{"content":"llo"}`) + finish("stop") + done, "text(Hello) | end_turn"},
		"length":                         {delta(`{"content":"cut"}`) + finish("length") + done, "text(cut) | max_tokens"},
		"refusal":                        {delta(`{"refusal":"no"}`) + finish("content_filter") + done, "text(no) | refusal"},
		"thinking":                       {delta(`{"reasoning":"be"}`) + delta(`{"reasoning":"cause"}`) + delta(`{"content":"Hi"}`) + finish("stop") + done, "thinking(because) text(Hi) | end_turn"},
		"thinking between texts":         {delta(`{"content":"a"}`) + delta(`{"reasoning_content":"b"}`) + delta(`{"content":"c"}`) + finish("stop") + done, "text(a) thinking(b) text(c) | end_turn"},
		"a call":                         {call("0", first, `"name":"f","arguments":""`) + call("0", "", `"arguments":"{\"x\":"`) + call("0", "", `"arguments":"\"}\\\"\"}"`) + finish("tool_calls") + done, `tool_use f({"x":"}\""}) | tool_use`},
		"a call that ends with stop":     {call("0", first, `"name":"f","arguments":""`) + finish("stop") + done, "tool_use f({}) | tool_use"},
		"calls one after the other":      {delta(`{"content":"x"}`) + call("0", first, `"name":"f","arguments":"{}"`) + call("1", second, `"name":"g","arguments":"{\"y\":1}"`) + finish("tool_calls") + done, `text(x) tool_use f({}) tool_use g({"y":1}) | tool_use`},
		"calls in turns":                 {call("0", first, `"name":"f","arguments":"{\"x\""`) + call("1", second, `"name":"g","arguments":"{\"y\""`) + call("0", "", `"arguments":":[1]}"`) + call("1", "", `"arguments":":2}"`) + finish("tool_calls") + done, `tool_use f({"x":[1]}) tool_use g({"y":2}) | tool_use`},
		"text within a call":             {call("0", first, `"name":"f","arguments":"{\"x\""`) + delta(`{"content":"by"}`) + delta(`{"content":"e"}`) + call("0", "", `"arguments":":1}"`) + finish("tool_calls") + done, `tool_use f({"x":1}) text(bye) | tool_use`},
		"text behind calls":              {call("0", first, `"name":"f","arguments":"{}"`) + delta(`{"content":"bye"}`) + finish("tool_calls") + done, `tool_use f({}) text(bye) | tool_use`},
		"arguments that are cut":         {call("0", first, `"name":"f","arguments":"{\"x\""`) + finish("length") + done, `tool_use f({"x") | max_tokens`},
		"another maker's signature":      {delta(`{"reasoning_content":"t","reasoning_details":[{"type":"reasoning.text","text":"t","signature":"s","format":"other"}]}`) + delta(`{"content":"x"}`) + finish("stop") + done, "thinking(t) text(x) | end_turn"},
		"a sequence that a server names": {delta(`{"content":"x"}`) + `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop","stop_reason":"END"}]}` + "\n\n" + done, "text(x) | stop_sequence"},
		"nothing":                        {delta(`{"role":"assistant","content":""}`) + finish("stop") + done, " | end_turn"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, size := range []int{1 << 20, 7} {
				out, problem, err := answertest.Relay(answertest.Chat(&pieces{tt.in, size}), options(t))
				require.NoError(t, err)
				require.Empty(t, problem)
				m := read(t, out)
				require.Equal(t, tt.want, m.story())
				require.Equal(t, "message_stop", m.types[len(m.types)-1])
			}
		})
	}
}

// pieces gives a text a few bytes at a time.
type pieces struct {
	text string
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	n := copy(b[:min(len(b), p.size)], p.text)
	p.text = p.text[n:]
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Anthropic's own events, through the hub and back: thinking keeps its signature. Streams of others end as they should.
func TestStreamOfFixtures(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, f := range fixtures.Of("anthropic") {
		if f.Kind() != "sse" || strings.Contains(f.File, "error") {
			continue
		}
		seen++
		out, problem, err := answertest.Relay(answertest.Translate(anthropic.Translator{}.Events(), bytes.NewReader(f.Body)), options(t))
		require.NoError(t, err, f.File)
		require.Empty(t, problem)
		m, sent := read(t, out), readFrom(t, string(f.Body), 0)
		require.Equal(t, strings.ReplaceAll(sent.story(), "rooms()", "rooms({})"), m.story(), f.File)
		for _, count := range []string{"input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"} {
			if want := sent.usage.Get(count); want.Exists() {
				require.Equal(t, want.Int(), m.usage.Get(count).Int(), "%s: %s", f.File, count)
			}
		}
	}
	require.Positive(t, seen)
	for _, f := range fixtures.All() {
		if f.Kind() != "sse" || f.Provider() == "anthropic" || f.Provider() == "gemini-native" || f.Provider() == "openai-responses" {
			continue
		}
		out, problem, err := answertest.Relay(answertest.Chat(bytes.NewReader(f.Body)), options(t))
		if m := read(t, out); err == nil && problem == nil {
			require.Equal(t, "message_stop", m.types[len(m.types)-1], f.File)
		} else {
			require.NotContains(t, m.types, "message_stop", f.File)
		}
	}
}

// a stream that breaks off ends with an error.
func TestStreamThatFails(t *testing.T) {
	t.Parallel()
	r, err := messages.Surface{}.Read(&contract.Request{}, []byte(question))
	require.NoError(t, err)
	a := r.Answer(surface.Disclosure{})
	var c answer.Chunk
	c.Parse([]byte(`{"choices":[{"index":0,"delta":{"content":"Half"}}]}`))
	m := read(t, string(a.Fail(a.Append(nil, &c), fault.New(fault.Internal, "x"))))
	require.Equal(t, "api_error", m.err)
	require.Equal(t, "text(Half) | ", m.story())
	require.Equal(t, "text/event-stream; charset=utf-8", a.ContentType())
}

// a whole answer as a message.
func TestWhole(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"id":"c","model":"r","choices":[{"index":0,"message":{"role":"assistant","reasoning_content":"b","content":"Hi","tool_calls":[{"id":"t","type":"function","function":{"name":"f","arguments":"{\"n\": 1.50}"}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":5}}}`: `{"id":"c","type":"message","role":"assistant","model":"r","content":[{"type":"thinking","thinking":"b","signature":""},{"type":"text","text":"Hi"},{"type":"tool_use","id":"t","name":"f","input":{"n": 1.50}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":4,"cache_creation_input_tokens":0,"cache_read_input_tokens":5,"output_tokens":4}}`,
		`{"id":"c","model":"r","choices":[{"index":0,"message":{"role":"assistant","content":null},"finish_reason":"content_filter"}]}`:                                                                                           `{"id":"c","type":"message","role":"assistant","model":"r","content":[],"stop_reason":"refusal","stop_sequence":null,"usage":{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}`,
		`{"id":"c","model":"r","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"t","type":"function","function":{"name":"f","arguments":"{\"n"}}]},"finish_reason":"length"}],"usage":{}}`: `{"id":"c","type":"message","role":"assistant","model":"r","content":[{"type":"tool_use","id":"t","name":"f","input":{"arguments":"{\"n"}}],"stop_reason":"max_tokens","stop_sequence":null,"usage":{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}`,
	} {
		require.Equal(t, want, string(answertest.Completion([]byte(in), options(t))))
	}
}

// Anthropic's whole answers come out as they were, as far as the hub has words for them.
func TestWholeOfFixtures(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"anthropic/message-text.json", "anthropic/message-tools.json"} {
		f := fixtures.Get(file)
		var c answer.Chunk
		c.Reset(answer.Piece)
		c.Plain = true
		require.True(t, anthropic.Translator{}.Completion(&c, f.Body))
		out := gjson.ParseBytes(options(t).Answer().Whole(&c))
		want := gjson.ParseBytes(f.Body)
		for _, member := range []string{"id", "type", "role", "model", "stop_reason", "stop_sequence", "usage.input_tokens", "usage.output_tokens"} {
			require.Equal(t, want.Get(member).Raw, out.Get(member).Raw, "%s: %s", file, member)
		}
		require.JSONEq(t, want.Get("content").Raw, out.Get("content").Raw)
	}
}

// A stream that was asked for and came whole, and the other way round.
func TestOtherWay(t *testing.T) {
	t.Parallel()
	out, err := answertest.Synthesize([]byte(`{"id":"c","model":"r","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`), options(t))
	require.NoError(t, err)
	m := read(t, out)
	require.Equal(t, "text(Hi) | end_turn", m.story())
	require.Equal(t, int64(2), m.usage.Get("output_tokens").Int())

	f := fixtures.Get("anthropic/stream-thinking.sse")
	body, problem, err := answertest.Collect(answertest.Translate(anthropic.Translator{}.Events(), bytes.NewReader(f.Body)), options(t))
	require.NoError(t, err)
	require.Empty(t, problem)
	require.JSONEq(t, `[{"type":"thinking","thinking":"Look at the lamp.","signature":"c2lnLWZ4"},{"type":"text","text":"Green."}]`, gjson.GetBytes(body, "content").Raw)
}

// a routed answer tells who gave it, and has the name that was asked for.
func TestDisclosure(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Model, o.Usage = "auto", []surface.Member{{Name: "gateway_model", Value: []byte(`"real"`)}}
	out := gjson.ParseBytes(answertest.Completion([]byte(`{"id":"c","model":"real","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}`), o))
	require.Equal(t, "auto", out.Get("model").Str)
	require.Equal(t, "real", out.Get("usage.gateway_model").Str)
}

func FuzzStream(f *testing.F) {
	for _, fixture := range fixtures.All() {
		if fixture.Kind() == "sse" && len(fixture.Body) < 4<<10 {
			f.Add(string(fixture.Body), 64)
		}
	}
	f.Fuzz(func(t *testing.T, text string, size int) {
		out, _, _ := answertest.Relay(answertest.Chat(&pieces{text, max(size, 1)}), options(t))
		read(t, out)
	})
}

// a provider that names no model leaves the one that was asked for.
func TestModelThatNobodyNames(t *testing.T) {
	t.Parallel()
	r, err := messages.Surface{}.Read(&contract.Request{}, []byte(question))
	require.NoError(t, err)
	var c answer.Chunk
	c.Parse([]byte(`{"choices":[{"index":0,"delta":{"content":"a"}}]}`))
	require.Contains(t, string(r.Answer(surface.Disclosure{}).Append(nil, &c)), `"model":"m"`)
	require.Contains(t, string(r.Answer(surface.Disclosure{Model: "auto"}).Append(nil, &c)), `"model":"auto"`)
}
