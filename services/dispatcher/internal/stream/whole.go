package stream

import (
	"bytes"
	"strconv"

	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// Synthesize appends a JSON answer as the event stream that the client asked for (STR-10): reasoning, text, calls, finish reason, usage if it
// was asked for, and [DONE]. A body that is no answer gives an error event.
func Synthesize(dst, body []byte, opts Options) []byte {
	f := NewFilter(opts)
	step := f.Event(dst, openai.Event{Data: body, Lines: 1, Noncanonical: true})
	out, err := f.End(step.Out)
	if err != nil {
		return fault.New(fault.Failed, "The upstream's answer can't be read").AppendEvent(out)
	}
	return out
}

// whole takes a chunk that is a whole answer, as if it had come piece by piece, so that it gets the same repairs.
func (f *Filter) whole(step Step) Step {
	var c openai.Chunk
	c.Parse(bytes.Clone(f.chunk.Data))
	step.Decisive = c.Decisive()
	for i := range c.Choices {
		ch := &c.Choices[i]
		w := wholeChoice{filter: f, data: c.Data, choice: ch, index: ch.Index}
		if w.index == 0 {
			w.index = i
		}
		step.Out = w.append(step.Out)
	}
	return step
}

// wholeChoice is a choice of a whole answer that is taken apart.
type wholeChoice struct {
	filter *Filter
	data   []byte
	choice *openai.Choice
	index  int
}

func (w *wholeChoice) append(dst []byte) []byte {
	ch := w.choice
	dst = w.delta(dst, `"role":"assistant","content":""`, "")
	for _, m := range []struct {
		name  string
		value rawjson.Span
	}{{"reasoning_content", ch.ReasoningContent}, {"reasoning", ch.Reasoning}} {
		if raw := given(m.value.Of(w.data)); raw != nil {
			dst = w.delta(dst, `"`+m.name+`":`+string(raw), "")
			break
		}
	}
	if others := appendOthers(nil, ch.Delta.Of(w.data), "role", "content", "reasoning_content", "reasoning", "tool_calls"); len(others) > 0 && w.worth() {
		dst = w.delta(dst, string(others[1:]), "")
	}
	if raw := given(ch.Content.Of(w.data)); raw != nil {
		more := ""
		if logprobs := given(ch.Logprobs.Of(w.data)); logprobs != nil {
			more = `,"logprobs":` + string(logprobs)
		}
		dst = w.delta(dst, `"content":`+string(raw), more)
	}
	if raw := given(ch.ToolCalls.Of(w.data)); raw != nil {
		dst = w.delta(dst, `"tool_calls":`+indexed(raw), "")
	}
	finish := ch.Finish.Of(w.data)
	if finishReason(finish, false, false, true) == nil {
		finish = finishStop
	}
	return w.delta(dst, "", `,"finish_reason":`+string(finish))
}

// worth says whether the other members of the message are more than nulls.
func (w *wholeChoice) worth() bool {
	return w.choice.Extra || given(w.choice.Refusal.Of(w.data)) != nil || given(w.choice.FunctionCall.Of(w.data)) != nil
}

// delta passes one piece through the filter.
func (w *wholeChoice) delta(dst []byte, members, more string) []byte {
	if more == "" || more[:len(`,"logprobs"`)] == `,"logprobs"` {
		more += `,"finish_reason":null`
	}
	piece := bytes.Clone(w.filter.ownChunk(`"choices":[{"index":`, strconv.Itoa(w.index), `,"delta":{`, members, `}`, more, `}]`))
	return w.filter.Event(dst, openai.Event{Data: piece, Lines: 1, Noncanonical: true}).Out
}

// indexed gives each call of a whole answer its index.
func indexed(calls []byte) string {
	out := []byte{'['}
	i := 0
	for e := range rawjson.Elements(calls) {
		if i > 0 {
			out = append(out, ',')
		}
		out = rawjson.AppendSet(out, e.Of(calls), "index", strconv.AppendInt(nil, int64(i), 10))
		i++
	}
	return string(append(out, ']'))
}
