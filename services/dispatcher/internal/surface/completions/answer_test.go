package completions_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/services/dispatcher/internal/surface"
	"hydrallm/services/dispatcher/internal/surface/completions"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
)

const head = `"id":"c1","object":"text_completion","created":5,"model":"real","choices":`

func parsed(data string) *answer.Chunk {
	var c answer.Chunk
	c.Parse([]byte(`{"id":"c1","created":5,"model":"real",` + data + `}`))
	return &c
}

// chunks have the older shape; what it has no word for is left out.
func TestStream(t *testing.T) {
	t.Parallel()
	a := completions.NewAnswer(surface.Disclosure{}, true)
	for _, c := range []struct{ in, out string }{
		{`"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]`, ""},
		{`"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]`, ""},
		{`"choices":[{"index":1,"delta":{"content":"H\u00e9","x":1},"y":2}]`, `[{"text":"H\u00e9","index":1,"logprobs":null,"finish_reason":null}]`},
		{`"choices":[{"index":0,"delta":{"refusal":"no"}}]`, `[{"text":"no","index":0,"logprobs":null,"finish_reason":null}]`},
		{
			`"choices":[{"index":0,"delta":{"content":"한 a"},"logprobs":{"content":[{"token":"한 ","logprob":-0.50,"bytes":null,"top_logprobs":[{"token":"한 ","logprob":-0.50},{"token":"\"","logprob":-1}]},{"token":"a","logprob":0}]}}]`,
			`[{"text":"한 a","index":0,"logprobs":{"tokens":["한 ","a"],"token_logprobs":[-0.50,0],"top_logprobs":[{"한 ":-0.50,"\"":-1},{}],"text_offset":[0,2]},"finish_reason":null}]`,
		},
		{
			`"choices":[{"index":0,"delta":{"content":"b"},"logprobs":{"content":[{"token":"b","logprob":-1}]}}]`,
			`[{"text":"b","index":0,"logprobs":{"tokens":["b"],"token_logprobs":[-1],"top_logprobs":[{}],"text_offset":[3]},"finish_reason":null}]`,
		},
		{`"choices":[{"index":0,"delta":{},"finish_reason":"length"}]`, `[{"text":"","index":0,"logprobs":null,"finish_reason":"length"}]`},
		{`"choices":[{"index":1,"delta":{},"finish_reason":"tool_calls"}]`, `[{"text":"","index":1,"logprobs":null,"finish_reason":"stop"}]`},
	} {
		want := ""
		if c.out != "" {
			want = "data: {" + head + c.out + "}\n\n"
		}
		require.Equal(t, want, string(a.Append(nil, parsed(c.in))))
	}
	require.Equal(t, ": ping\n\n", string(a.Append(nil, &answer.Chunk{Kind: answer.Comment, Raw: []byte(": ping\n\n")})))
	used := parsed(`"choices":[],"usage":{"prompt_tokens":3,"total_tokens":3}`)
	require.Equal(t, "data: {"+head+`[],"usage":{"prompt_tokens":3,"total_tokens":3}}`+"\n\n"+openai.Done, string(a.End(nil, stream.End{Usage: used})))
	require.Equal(t, openai.Done, string(a.End(nil, stream.End{})))
	require.Equal(t, openai.Done, string(completions.NewAnswer(surface.Disclosure{}, false).End(nil, stream.End{Usage: used})))
	require.Contains(t, string(a.Fail(nil, fault.New(fault.Failed, "no"))), `data: {"error":{"message":"no"`)
}

// a whole answer, and what a routed one tells.
func TestWhole(t *testing.T) {
	t.Parallel()
	r, err := completions.Surface{}.Read(&contract.Request{}, []byte(`{"model":"m","prompt":"hi"}`))
	require.NoError(t, err)
	c := parsed(`"choices":[{"index":0,"message":{"role":"assistant","content":null,"reasoning_content":"hm"},"finish_reason":"stop"}],"usage":{"total_tokens":3}`)
	require.Equal(t, "{"+head+`[{"text":"","index":0,"logprobs":null,"finish_reason":"stop"}],"usage":{"total_tokens":3}}`, string(r.Answer(surface.Disclosure{}).Whole(c)))
	told := surface.Disclosure{Model: "auto", Session: "s", Usage: []surface.Member{{Name: "gateway_provider", Value: []byte(`"p"`)}}}
	c = parsed(`"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}]`)
	require.Equal(t, `{"id":"c1","object":"text_completion","created":5,"model":"auto","choices":[{"text":"a","index":0,"logprobs":null,"finish_reason":"stop"}],`+
		`"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0,"gateway_provider":"p"},"session_id":"s"}`, string(r.Answer(told).Whole(c)))
}

// a request with a demand has no form in the hub, and goes as it is.
func TestDemand(t *testing.T) {
	t.Parallel()
	s := completions.Surface{}
	for body, choices := range map[string]int{`{"prompt":["a","b"],"n":2,"stream":true}`: 4, `{"prompt":[1, 2],"stream":true}`: 1, `{"prompt":"a","suffix":"b","stream":true}`: 1} {
		r, err := s.Read(&contract.Request{}, []byte(body))
		require.NoError(t, err)
		_, err = r.Chat()
		require.ErrorAs(t, err, new(*openai.RequestError))
		counted, ok := r.(interface{ Choices() int })
		require.True(t, ok)
		require.Equal(t, choices, counted.Choices())
		native, ok := r.(surface.Native)
		require.True(t, ok)
		require.Equal(t, body, string(native.AppendNative(nil, openai.Rewrite{Front: []byte(`{"role":"system"}`)})))
	}
	r, err := s.Read(&contract.Request{}, []byte(`{"prompt":"a"}`))
	require.NoError(t, err)
	_, err = r.Chat()
	require.NoError(t, err)
	r, err = s.Read(&contract.Request{}, []byte(`{"messages":[{"role":"user","content":"a"}]}`))
	require.NoError(t, err)
	_, ok := r.(surface.Native)
	require.False(t, ok, "there is no place for a history")
	_, err = s.Read(&contract.Request{}, []byte(`{}`))
	require.ErrorAs(t, err, new(*openai.RequestError))
	require.NotNil(t, s.Errors())
}

// a provider's own events pass as they are, with an end in any case.
func TestNative(t *testing.T) {
	t.Parallel()
	r, err := completions.Surface{}.Read(&contract.Request{}, []byte(`{"prompt":"a"}`))
	require.NoError(t, err)
	event := &answer.Chunk{Kind: answer.Piece, Raw: []byte("data: {\"x\":1.0}\n\n"), Of: contract.SurfaceCompletions}
	a := r.Answer(surface.Disclosure{Native: true})
	require.Contains(t, a.ContentType(), "text/event-stream")
	require.Equal(t, "data: {\"x\":1.0}\n\n", string(a.Append(nil, event)))
	require.Empty(t, a.Append(nil, &answer.Chunk{}))
	require.Equal(t, openai.Done, string(a.End(nil, stream.End{})))
	require.Equal(t, "data: [DONE]\n\n", string(a.Append(nil, &answer.Chunk{Kind: answer.Done, Raw: []byte("data: [DONE]\n\n"), Of: contract.SurfaceCompletions})))
	require.Empty(t, a.End(nil, stream.End{}))
	require.Contains(t, string(a.Fail(nil, fault.New(fault.Failed, "no"))), `"error"`)
	a.Append(nil, &answer.Chunk{Kind: answer.Problem, Raw: []byte("data: {\"error\":1}\n\n"), Of: contract.SurfaceCompletions})
	require.Empty(t, a.Fail(nil, fault.New(fault.Failed, "no")))
	whole := &answer.Chunk{Raw: []byte(`{"choices":[ ]}`)}
	require.Equal(t, `{"choices":[ ]}`, string(a.Whole(whole)))
	require.Equal(t, `{"choices":[ ],"session_id":"s"}`, string(r.Answer(surface.Disclosure{Native: true, Session: "s"}).Whole(whole)))
}

// a provider that names no model leaves the one that was asked for.
func TestModelThatNobodyNames(t *testing.T) {
	t.Parallel()
	r, err := completions.Surface{}.Read(&contract.Request{}, []byte(`{"model":"m","prompt":"q"}`))
	require.NoError(t, err)
	var c answer.Chunk
	c.Parse([]byte(`{"choices":[{"index":0,"delta":{"content":"a"}}]}`))
	require.Contains(t, string(r.Answer(surface.Disclosure{}).Append(nil, &c)), `"model":"m"`)
	require.Contains(t, string(r.Answer(surface.Disclosure{Model: "auto"}).Append(nil, &c)), `"model":"auto"`)
}
