package chat_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/services/dispatcher/internal/surface"
	"hydrallm/services/dispatcher/internal/surface/chat"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
	shared "hydrallm/shared/surface"
)

// made is a chunk as translators make them, or a whole answer.
func made(fill func(c *answer.Chunk)) *answer.Chunk {
	c := &answer.Chunk{}
	c.Reset(answer.Piece)
	c.ID, c.Created, c.Model = []byte(`"c1"`), []byte("1"), []byte(`"m"`)
	fill(c)
	return c
}

func raw(text string) []byte { return []byte(text) }

// Chunks that were made here have the documented members, in the same order each time.
func TestMadeChunks(t *testing.T) {
	t.Parallel()
	const head = `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[`
	for name, tc := range map[string]struct {
		fill func(ch *answer.Choice)
		want string
	}{
		"nothing": {func(*answer.Choice) {}, `{"index":1,"delta":{},"finish_reason":null}`},
		"text": {
			func(ch *answer.Choice) {
				ch.Role, ch.Content, ch.Logprobs = raw(`"assistant"`), raw(`"a\u00e9"`), raw("null")
			},
			`{"index":1,"delta":{"role":"assistant","content":"a\u00e9"},"logprobs":null,"finish_reason":null}`,
		},
		"others": {
			func(ch *answer.Choice) {
				ch.ReasoningContent, ch.Delta = raw(`"r"`), raw(`{"reasoning_details":[1], "x" : {}}`)
			},
			`{"index":1,"delta":{"reasoning_content":"r","reasoning_details":[1],"x" : {}},"finish_reason":null}`,
		},
		"the end": {func(ch *answer.Choice) { ch.Finish = raw(`"stop"`) }, `{"index":1,"delta":{},"finish_reason":"stop"}`},
		"calls": {
			func(ch *answer.Choice) {
				ch.Calls = []answer.Call{
					{ID: raw(`"a"`), Type: raw(`"function"`), Name: raw(`"f"`), Args: raw(`""`), Others: raw(`,"x":1`), ToolOthers: raw(`,"y":2`)},
					{Index: 1, Args: raw(`"{}"`)},
					{Index: 2, Custom: true, Name: raw(`"sh"`), Args: raw(`"ls"`)},
					{Raw: raw(`{ "as":"it came" }`)},
					{Index: 3},
					{Index: -1, ID: raw(`"b"`)},
				}
			},
			`{"index":1,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"","y":2},"x":1},` +
				`{"index":1,"function":{"arguments":"{}"}},{"index":2,"custom":{"name":"sh","input":"ls"}},{ "as":"it came" },` +
				`{"index":3,"function":{}},{"id":"b","function":{}}]},"finish_reason":null}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := made(func(c *answer.Chunk) { tc.fill(c.Choose(1)) })
			got := string(chat.NewAnswer(surface.Disclosure{}, false).Append([]byte("x"), c))
			require.Equal(t, "x"+head+tc.want+"]}\n\n", got)
		})
	}
}

// A whole answer that was made tells what a routed one has to (R-033, R-034, C-07).
func TestMadeWhole(t *testing.T) {
	t.Parallel()
	whole := made(func(c *answer.Chunk) {
		c.Plain, c.Usage = true, raw(`{"total_tokens":3}`)
		ch := c.Choose(0)
		ch.Role, ch.Content, ch.Refusal, ch.Finish = raw(`"assistant"`), raw("null"), raw("null"), raw(`"tool_calls"`)
		ch.Calls = []answer.Call{{Index: -1, ID: raw(`"a"`), Type: raw(`"function"`), Name: raw(`"f"`), Args: raw(`"{}"`)}}
		ch.FunctionCall = raw(`{"name":"g"}`)
	})
	told := surface.Disclosure{Model: "auto", Usage: []surface.Member{{Name: "gateway_provider", Value: raw(`"p"`)}}, Parts: raw(`[1]`)}
	require.Equal(t, `{"id":"c1","object":"chat.completion","created":1,"model":"auto","choices":[{"index":0,"message":{"role":"assistant","content":null,`+
		`"refusal":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}],"function_call":{"name":"g"},"parts":[1]},`+
		`"finish_reason":"tool_calls"}],"usage":{"total_tokens":3,"gateway_provider":"p"}}`, string(chat.NewAnswer(told, false).Whole(whole)))
}

// the parts go into the first message, wherever and however it came.
func TestParts(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"choices":[{"index":0,"message":{"content":"a"}},{"message":{"content":"b"}}]}`: `{"choices":[{"index":0,"message":{"content":"a","parts":[1]}},{"message":{"content":"b"}}]}`,
		`{"choices":[ {"index":0,"message": {"parts":"x","content":"a"}, "n":1.0} ]}`:     `{"choices":[{"index":0,"message": {"parts":[1],"content":"a"}, "n":1.0}]}`,
		`{"choices":[{"message":null}]}`:                                                  `{"choices":[{"message":null}]}`,
		`{"choices":[{"message":"no object"},{"message":{"content":"second"}}]}`:          `{"choices":[{"message":"no object"},{"message":{"content":"second"}}]}`,
	} {
		var c answer.Chunk
		c.Parse([]byte(body))
		require.Equal(t, want, string(chat.NewAnswer(surface.Disclosure{Parts: raw(`[1]`)}, false).Whole(&c)))
	}
}

// STR-07: the usage is told once, to whom asked for it.
func TestEnd(t *testing.T) {
	t.Parallel()
	used := made(func(c *answer.Chunk) { c.Usage = raw(`{"total_tokens":3}`) })
	const chunk = `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"total_tokens":3}}` + "\n\n"
	end := func(e stream.End, ask bool) string {
		return string(chat.NewAnswer(surface.Disclosure{}, ask).End(nil, e))
	}
	require.Equal(t, chunk+openai.Done, end(stream.End{Usage: used}, true))
	require.Equal(t, openai.Done, end(stream.End{Usage: used}, false))
	require.Equal(t, openai.Done, end(stream.End{}, true))
	require.Equal(t, "data:[DONE]\r\n\r\n", end(stream.End{Raw: raw("data:[DONE]\r\n\r\n")}, true))
}

// The surface as the executor sees it.
func TestSurface(t *testing.T) {
	t.Parallel()
	s := chat.Surface{}
	_, err := s.Read(&contract.Request{}, []byte(`{"messages":5}`))
	require.ErrorAs(t, err, new(*openai.RequestError))
	req, err := s.Read(&contract.Request{}, []byte(`{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`))
	require.NoError(t, err)
	hub, err := req.Chat()
	require.NoError(t, err)
	require.True(t, hub.Stream)
	out := req.Answer(surface.Disclosure{})
	require.Contains(t, out.ContentType(), "text/event-stream")
	require.Equal(t, ": hi\n\n", string(out.Append(nil, &answer.Chunk{Kind: answer.Comment, Raw: raw(": hi\n\n")})))
	f := fault.New(fault.Failed, "no")
	require.Equal(t, shared.ErrorsOf(contract.SurfaceChat).AppendEvent(nil, f), out.Fail(nil, f))
	require.Equal(t, shared.ErrorsOf("").AppendBody(nil, f, ""), s.Errors().AppendBody(nil, f, ""))
}
