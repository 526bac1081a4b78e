package responses_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/services/dispatcher/internal/surface"
	"hydrallm/services/dispatcher/internal/surface/responses"
	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
	"hydrallm/shared/testkit/goldentest"
)

var received = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

const tools = `"tools":[{"type":"function","name":"f"},{"type":"custom","name":"p"},{"type":"namespace","name":"crew","tools":[{"type":"function","name":"hire"}]}]`

func piece(index, id, name, args string) string {
	out := `{"tool_calls":[{"index":` + index
	if id != "" {
		out += `,"id":"` + id + `","type":"function"`
	}
	out += `,"function":{`
	if name != "" {
		out += `"name":"` + name + `",`
	}
	return out + `"arguments":"` + args + `"}}]}`
}

// the whole sequence of events, with everything that an answer can hold.
func TestEvents(t *testing.T) {
	t.Parallel()
	usage := `data: {"id":"c","choices":[],"usage":{"prompt_tokens":20,"completion_tokens":10,"total_tokens":30,"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":4}}}`
	text := data(`{"role":"assistant","content":""}`, ": ping", `{"reasoning_content":"be"}`, `{"reasoning_content":"cause"}`, `{"content":"H\u00e9"}`, `{"content":"llo"}`,
		piece("0", "call_a", "f", ""), piece("0", "", "", `{\"x\"`), piece("0", "", "", `:1}`), piece("1", "call_b", "p", `{\"inp`), piece("1", "", "", `ut\":\"a\\nb\"}`),
		piece("2", "call_c", "crew__hire", `{}`), piece("3", "call_d", "unknown", ``), "f:tool_calls", usage, done)
	synctest.Test(t, func(t *testing.T) {
		r := read(t, `{"model":"m","input":"hi","stream":true,"metadata":{"k":"v"},"include":["reasoning.encrypted_content"],`+tools+`}`)
		out, broken := relay(r, surface.Disclosure{}, text)
		require.False(t, broken)
		final := readStrictly(t, out)
		require.Equal(t, "resp_0a1b", final.Get("id").String())
		goldentest.Compare(t, "events.sse", []byte(out))
		again, _ := relay(r, surface.Disclosure{}, text)
		require.Equal(t, out, again, "a stream can be taken up again")
	})
}

// a text alone.
func TestText(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out, _ := relay(read(t, `{"model":"m","input":"hi","stream":true}`), surface.Disclosure{}, data(`{"content":"Hi"}`, "f:stop", done))
		readStrictly(t, out)
		goldentest.Compare(t, "text.sse", []byte(out))
	})
}

// how an answer ends is the status of the response. A call that is not whole is never closed: clients run it as soon as it is.
func TestEnds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		deltas           []string
		status, reason   string
		itemStatus, done string
		closed           int
	}{
		"stop":                    {[]string{`{"content":"a"}`, "f:stop"}, "completed", "", "completed", "event: response.output_item.done", 1},
		"length":                  {[]string{`{"content":"a"}`, "f:length"}, "incomplete", "max_output_tokens", "incomplete", "event: response.output_item.done", 1},
		"filter":                  {[]string{`{"content":"a"}`, "f:content_filter"}, "incomplete", "content_filter", "incomplete", "event: response.output_item.done", 1},
		"length in a call":        {[]string{piece("0", "c", "f", `{\"a`), "f:length"}, "incomplete", "max_output_tokens", "incomplete", "event: response.output_item.done", 0},
		"length behind a call":    {[]string{piece("0", "c", "f", `{}`), `{"content":"a"}`, "f:length"}, "incomplete", "max_output_tokens", "completed", "event: response.output_item.done", 2},
		"cut":                     {[]string{`{"content":"a"}`}, "failed", "", "incomplete", "event: response.output_item.done", 0},
		"cut in a call":           {[]string{piece("0", "c", "f", `{}`)}, "failed", "", "incomplete", "event: response.output_item.done", 0},
		"cut in a custom call":    {[]string{piece("0", "c", "p", `{\"input`)}, "failed", "", "incomplete", "event: response.output_item.done", 0},
		"refusal":                 {[]string{`{"refusal":"n"}`, `{"refusal":"o"}`, "f:stop"}, "completed", "", "completed", "event: response.refusal.done", 1},
		"text and refusal":        {[]string{`{"content":"a"}`, `{"refusal":"n"}`, "f:stop"}, "completed", "", "completed", "event: response.output_item.done", 1},
		"arguments are nothing":   {[]string{piece("0", "c", "f", ``), "f:tool_calls"}, "completed", "", "completed", `"arguments":"{}"`, 3},
		"text between two calls":  {[]string{piece("0", "c", "f", `{\"a\"`), `{"content":"a"}`, piece("0", "", "", `:1}`), "f:tool_calls"}, "completed", "", "completed", "event: response.output_item.done", 2},
		"input that is no JSON":   {[]string{piece("0", "c", "p", `ls -l`), "f:tool_calls"}, "completed", "", "completed", `"input":"ls -l"`, 3},
		"input that is no text":   {[]string{piece("0", "c", "p", `{\"input\":[1]}`), "f:tool_calls"}, "completed", "", "completed", `"input":"[1]"`, 3},
		"another member of input": {[]string{piece("0", "c", "p", `{\"cmd\":1}`), "f:tool_calls"}, "completed", "", "completed", `"input":"{\"cmd\":1}"`, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, broken := relay(read(t, `{"model":"m","input":"hi",`+tools+`}`), surface.Disclosure{}, data(tt.deltas...)+map[bool]string{true: data(done)}[tt.status != "failed"])
			require.Equal(t, tt.status == "failed", broken)
			if name == "cut in a custom call" { // what it says can't be told
				require.Contains(t, out, `"input":""`)
			}
			final := readStrictly(t, out)
			require.Equal(t, tt.status, final.Get("status").String())
			require.Equal(t, tt.reason, final.Get("incomplete_details.reason").String())
			require.Equal(t, tt.itemStatus, final.Get("output.0.status").String())
			require.Equal(t, tt.closed, strings.Count(out, tt.done))
			if broken {
				require.Equal(t, "server_error", final.Get("error.code").String())
				require.Equal(t, "it broke", final.Get("error.message").String())
			}
		})
	}
}

// a whole answer is the response that a stream ends with.
func TestWhole(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		body := `{"id":"c","created":1,"model":"real","choices":[{"index":0,"message":{"role":"assistant","reasoning_content":"why","content":"Hi","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"p","arguments":"{\"input\":\"t\"}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":4}}`
		var c answer.Chunk
		c.Parse([]byte(body))
		stream.Repair(&c, stream.Options{Uniform: true})
		r := read(t, `{"model":"m","input":"hi","instructions":"i",`+tools+`}`)
		whole := r.Answer(surface.Disclosure{}).Whole(&c)
		goldentest.Compare(t, "whole.json", whole)

		out, _ := relay(r, surface.Disclosure{}, data(`{"reasoning_content":"why"}`, `{"content":"Hi"}`, piece("0", "a", "f", "{}"), piece("1", "b", "p", `{\"input\":\"t\"}`), "f:tool_calls",
			`data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}`, done))
		require.JSONEq(t, readStrictly(t, out).Raw, string(whole))
	})
}

// C-07: a routed answer tells who gave it.
func TestDisclosure(t *testing.T) {
	t.Parallel()
	told := surface.Disclosure{Model: "auto", Usage: []surface.Member{{Name: "gateway_provider", Value: []byte(`"p"`)}}, Parts: []byte(`[1]`), Session: "s"}
	out, _ := relay(read(t, `{"input":"hi"}`), told, data(`{"content":"Hi"}`, "f:stop", done))
	final := readStrictly(t, out)
	require.Equal(t, "auto", final.Get("model").String())
	require.Equal(t, "p", final.Get("usage.gateway_provider").String())
	require.Equal(t, int64(0), final.Get("usage.input_tokens_details.cached_tokens").Int())
	require.Equal(t, "s", final.Get("session_id").String())
	require.Equal(t, "[1]", final.Get("parts").Raw)
	out, _ = relay(read(t, `{"model":"m","input":"hi"}`), surface.Disclosure{}, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n"+data(done))
	require.Equal(t, "m", readStrictly(t, out).Get("model").String(), "what the client asked for stands in for a name")
}

// probabilities of tokens go along.
func TestLogprobs(t *testing.T) {
	t.Parallel()
	chunk := func(text string) string {
		return `data: {"choices":[{"index":0,"delta":{"content":"` + text + `"},"logprobs":{"content":[{"token":"` + text + `","logprob":-1}]},"finish_reason":null}]}`
	}
	out, _ := relay(read(t, `{"input":"hi","top_logprobs":1}`), surface.Disclosure{}, data(chunk("a"), chunk("b"), "f:stop", done))
	final := readStrictly(t, out)
	require.JSONEq(t, `[{"token":"a","logprob":-1},{"token":"b","logprob":-1}]`, final.Get("output.0.content.0.logprobs").Raw)
	require.Contains(t, out, `"delta":"b","logprobs":[{"token":"b","logprob":-1}]`)
}

// The surface as the executor sees it.
func TestSurface(t *testing.T) {
	t.Parallel()
	s := responses.Surface{}
	for _, body := range []string{`{"input":5}`, `{"input":[{"type":"item_reference","id":"i"}]}`, `{"input":""}`} {
		_, err := s.Read(envelope(), []byte(body))
		require.ErrorAs(t, err, new(*openai.RequestError), body)
	}
	r := read(t, `{"input":"hi","stream":true}`)
	hub, err := r.Chat()
	require.NoError(t, err)
	require.True(t, hub.Stream)
	out := r.Answer(surface.Disclosure{})
	require.Contains(t, out.ContentType(), "text/event-stream")
	require.Equal(t, ": hi\n\n", string(out.Append(nil, &answer.Chunk{Kind: answer.Comment, Raw: []byte(": hi\n\n")})), "a comment is no beginning")
	require.NotNil(t, s.Errors())
}

// what may be stored is what the client got, with the items of its own request.
func TestStored(t *testing.T) {
	t.Parallel()
	stored := func(env *contract.Request, body string) *contract.StoredResponse {
		r, err := responses.Surface{}.Read(env, []byte(body))
		require.NoError(t, err)
		a, ok := r.Answer(surface.Disclosure{}).(*responses.Answer)
		require.True(t, ok)
		require.Nil(t, a.Stored(), "it has not ended")
		var c answer.Chunk
		c.Parse([]byte(`{"choices":[{"index":0,"message":{"content":"Hi"},"finish_reason":"stop"}]}`))
		whole := a.Whole(&c)
		s := a.Stored()
		if s != nil {
			require.JSONEq(t, string(whole), string(s.Response))
		}
		return s
	}
	env := envelope()
	require.Nil(t, stored(env, `{"input":"hi"}`))
	env.Store = true
	s := stored(env, `{"input":"hi","previous_response_id":"resp_x"}`)
	require.Equal(t, []any{"resp_0a1b", "resp_x", "k:1", received}, []any{s.ID, s.Previous, s.Owner, s.At})
	require.JSONEq(t, `[{"type":"message","role":"user","content":"hi"}]`, string(s.Input))
	require.True(t, gjson.GetBytes(s.Response, "store").Bool())
	env.Inherited = 2
	s = stored(env, `{"input":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}, {"role":"user","content":"d"}]}`)
	require.Equal(t, `[{"role":"user","content":"c"},{"role":"user","content":"d"}]`, string(s.Input))
	s = stored(env, `{"input":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"system","name":"web_context","content":"w"},{"role":"user","content":"c"}]}`)
	require.Equal(t, `[{"role":"user","content":"c"}]`, string(s.Input), "R-283")
}

var fuzzed = []string{
	`{"role":"assistant","content":""}`, `{"content":"a"}`, `{"content":"\ud83d"}`, `{"content":[{"type":"text","text":"p"}]}`, `{"reasoning":"r"}`, `{"reasoning_content":"s"}`, `{"refusal":"no"}`,
	`{"content":"<think>t</think>u"}`, piece("0", "a", "f", ""), piece("0", "", "", `{\"q\"`), piece("0", "", "", `:1}`), piece("1", "b", "p", `{\"input\":`), piece("1", "", "", `\"x\"}`),
	piece("2", "c", "crew__hire", "{}"), piece("0", "d", "g", "[]"), `{"tool_calls":[{"function":{"name":"h","arguments":{"o":1}}}]}`, `{"function_call":{"name":"f","arguments":""}}`, ": ping",
	"f:stop", "f:length", "f:tool_calls", "f:content_filter", `data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}`, done,
}

// Whatever a provider streams, a strict client can read what is made of it.
func FuzzEvents(f *testing.F) {
	f.Add([]byte{0, 5, 1, 8, 9, 10, 11, 12, 13, 20, 22, 23})
	f.Add([]byte{1, 6, 1, 4, 17, 19, 23})
	f.Add([]byte{8, 11, 9, 12, 1, 10, 20, 23})
	f.Fuzz(func(t *testing.T, plan []byte) {
		deltas := make([]string, 0, len(plan))
		for _, b := range plan[:min(len(plan), 60)] {
			deltas = append(deltas, fuzzed[int(b)%len(fuzzed)])
		}
		out, broken := relay(read(t, `{"model":"m","input":"hi",`+tools+`}`), surface.Disclosure{}, data(deltas...))
		final := readStrictly(t, out)
		require.Equal(t, broken, final.Get("status").String() == "failed")
	})
}
