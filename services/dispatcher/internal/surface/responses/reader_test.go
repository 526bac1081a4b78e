package responses_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/services/dispatcher/internal/surface"
	"hydrallm/services/dispatcher/internal/surface/responses"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
)

// read reads a request as the executor does.
func read(t *testing.T, body string) surface.Request {
	t.Helper()
	r, err := responses.Surface{}.Read(envelope(), []byte(body))
	require.NoError(t, err)
	return r
}

// relay passes a stream of Chat Completions on as the executor does. broken says that it was cut.
func relay(r surface.Request, d surface.Disclosure, text string) (out string, broken bool) {
	src := answer.NewReader(openai.NewReader(strings.NewReader(text), 0))
	f, to := stream.NewFilter(stream.Options{Uniform: true}), r.Answer(d)
	var all []byte
	take := func(chunks []*answer.Chunk) {
		for _, c := range chunks {
			all = to.Append(all, c)
		}
	}
	for {
		c, err := src.Next()
		if err != nil {
			break
		}
		step := f.Take(c)
		take(step.Chunks)
		if step.Done {
			break
		}
	}
	end, err := f.End()
	if err != nil {
		take(f.Abort())
		return string(to.Fail(all, fault.New(fault.Internal, "it broke"))), true
	}
	take(end.Chunks)
	return string(to.End(all, end)), false
}

// readItem is an item as its events tell it.
type readItem struct {
	id, kind, text string
	parts          []string // types
	open, done     bool
}

// readStrictly reads a stream as OpenAI's SDKs do, which throw when an event names an item or a part that was not announced, or is of another kind. It gives the
// response at the end.
func readStrictly(t *testing.T, text string) gjson.Result {
	t.Helper()
	var items []*readItem
	last, number := "", int64(0)
	var final gjson.Result
	for event := range strings.SplitSeq(strings.TrimSuffix(text, "\n\n"), "\n\n") {
		if strings.HasPrefix(event, ":") {
			continue
		}
		name, data, ok := strings.Cut(event, "\ndata: ")
		require.True(t, ok, event)
		name = strings.TrimPrefix(name, "event: ")
		require.True(t, json.Valid([]byte(data)), data)
		require.NotContains(t, data, "\n")
		e := gjson.Parse(data)
		require.Equal(t, name, e.Get("type").String())
		require.Equal(t, number, e.Get("sequence_number").Int())
		require.False(t, e.Get("error").Exists())
		require.False(t, final.Exists(), "something follows the end")
		var it *readItem
		if i := e.Get("output_index"); i.Exists() && name != "response.output_item.added" {
			require.Less(t, int(i.Int()), len(items), event)
			it = items[i.Int()]
			require.False(t, it.done, event)
			if id := e.Get("item_id"); id.Exists() {
				require.Equal(t, it.id, id.String())
			}
		}
		piece := func(kind, partType string) {
			require.Equal(t, kind, it.kind)
			if partType != "" {
				require.NotEmpty(t, it.parts, event)
				require.Equal(t, partType, it.parts[len(it.parts)-1])
				require.True(t, it.open, event)
				require.Equal(t, int64(len(it.parts)-1), e.Get("content_index").Int()+e.Get("summary_index").Int())
			}
			require.NotEmpty(t, e.Get("delta").String())
			it.text += e.Get("delta").String()
		}
		switch name {
		case "response.created":
			require.Zero(t, number)
		case "response.in_progress":
			require.Equal(t, "response.created", last)
		case "response.output_item.added":
			require.Equal(t, int64(len(items)), e.Get("output_index").Int())
			items = append(items, &readItem{id: e.Get("item.id").String(), kind: e.Get("item.type").String()})
		case "response.content_part.added", "response.reasoning_summary_part.added":
			it.parts, it.open = append(it.parts, e.Get("part.type").String()), true
		case "response.output_text.delta":
			piece("message", "output_text")
		case "response.refusal.delta":
			piece("message", "refusal")
		case "response.reasoning_summary_text.delta":
			piece("reasoning", "summary_text")
		case "response.function_call_arguments.delta":
			piece("function_call", "")
		case "response.custom_tool_call_input.delta":
			piece("custom_tool_call", "")
		case "response.output_text.done", "response.refusal.done", "response.reasoning_summary_text.done":
			require.True(t, strings.HasSuffix(it.text, e.Get("text").String()+e.Get("refusal").String()))
		case "response.content_part.done", "response.reasoning_summary_part.done":
			require.True(t, it.open)
			it.open = false
		case "response.function_call_arguments.done", "response.custom_tool_call_input.done":
			require.Equal(t, it.text, e.Get("arguments").String()+e.Get("input").String())
		case "response.output_item.done":
			require.False(t, it.open)
			it.done = true
			require.Equal(t, it.id, e.Get("item.id").String())
			require.Equal(t, it.text, textOf(e.Get("item")))
		case "response.completed", "response.incomplete", "response.failed":
			final = e.Get("response")
			require.Equal(t, strings.TrimPrefix(name, "response."), final.Get("status").String())
		default:
			require.Fail(t, "unknown event", name)
		}
		last = name
		number++
	}
	require.True(t, final.Exists(), "no end in %s", text)
	output := final.Get("output").Array()
	require.Len(t, output, len(items))
	for i, it := range items {
		require.Equal(t, it.id, output[i].Get("id").String())
		require.Equal(t, it.text, textOf(output[i]))
		if final.Get("status").String() == "completed" {
			require.True(t, it.done)
		}
	}
	return final
}

// textOf is what an item says.
func textOf(item gjson.Result) string {
	var b strings.Builder
	for _, part := range append(item.Get("summary").Array(), item.Get("content").Array()...) {
		b.WriteString(part.Get("text").String() + part.Get("refusal").String())
	}
	b.WriteString(item.Get("arguments").String())
	b.WriteString(item.Get("input").String())
	return b.String()
}

// data makes a stream of deltas; one that begins with "f" ends the answer for that reason.
func data(deltas ...string) string {
	var b bytes.Buffer
	for _, d := range deltas {
		if reason, ok := strings.CutPrefix(d, "f:"); ok {
			b.WriteString(`data: {"id":"c","created":1,"model":"real","choices":[{"index":0,"delta":{},"finish_reason":"` + reason + "\"}]}\n\n")
			continue
		}
		if strings.HasPrefix(d, "data:") || strings.HasPrefix(d, ":") {
			b.WriteString(d + "\n\n")
			continue
		}
		b.WriteString(`data: {"id":"c","created":1,"model":"real","choices":[{"index":0,"delta":` + d + ",\"finish_reason\":null}]}\n\n")
	}
	return b.String()
}

const done = "data: [DONE]"

func envelope() *contract.Request {
	return &contract.Request{ID: "0a1b", Principal: "k:1", Surface: contract.SurfaceResponses, ReceivedAt: received}
}
