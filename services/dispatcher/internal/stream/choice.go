package stream

import (
	"bytes"
	"strconv"

	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// choice is the state of one choice index (R-226, STR-14).
type choice struct {
	index        int
	think        splitter
	tools        toolCalls
	hasRole      bool // a delta with the role came
	functionCall bool // a call in the old form came
	output       bool // something that a client shows or runs came
	finished     bool
	broken       bool // it can't be made right, so it never finishes and nothing more of it is sent
}

func (f *Filter) choice(index int) *choice {
	for _, c := range f.choices {
		if c.index == index {
			return c
		}
	}
	c := &choice{index: index}
	f.choices = append(f.choices, c)
	return c
}

// part is what becomes of one choice of a chunk.
type part struct {
	gone bool
	text rawjson.Span // in Filter.text; zero when the choice stays as it is
}

// rewriteChoice repairs one choice of the chunk. What has to reach the client before the chunk is appended to before. A choice that can't be
// made right never finishes, so that the stream ends as a truncated one.
func (f *Filter) rewriteChoice(before *[]byte, ch *openai.Choice) part {
	st := f.choice(ch.Index)
	if st.finished || st.broken { // nothing may follow the finish reason (STR-09)
		return part{gone: true}
	}
	data := f.chunk.Data
	st.output = st.output || ch.HasOutput(data)
	st.functionCall = st.functionCall || ch.FunctionCall.End-ch.FunctionCall.Start > len("null")

	finishing := finishReason(ch.Finish.Of(data), false, false, true) != nil
	var edit deltaEdit
	if !f.editTools(&edit, st, ch, finishing) {
		st.broken = true
		return part{gone: true}
	}
	f.split.reset()
	if f.opts.Think != ThinkOff || f.uniform {
		f.editText(&edit, &st.think, ch, finishing)
	}
	if finishing {
		*before = f.appendHeld(*before, st)
		if edit.calls == nil && len(f.calls) > 0 {
			*before = f.appendDelta(*before, st.index, `"tool_calls":[`, string(f.calls), `]`)
		}
	}
	if given(ch.Role.Of(data)) != nil {
		edit.dropRole = st.hasRole // clients that join deltas would get "assistantassistant"
		st.hasRole = true
	}
	finish := finishReason(ch.Finish.Of(data), st.tools.sent > 0, st.functionCall, st.output)
	st.finished = finish != nil

	if !st.finished && (edit.changed() || f.opts.Think != ThinkOff || ch.Delta.IsZero()) && f.nothingLeft(&edit, ch) {
		return part{gone: true}
	}
	sameFinish := bytes.Equal(finish, ch.Finish.Of(data)) || finish == nil && (ch.Finish.IsZero() || string(ch.Finish.Of(data)) == "null")
	if sameFinish && !edit.changed() && !ch.Delta.IsZero() && !ch.NoIndex {
		return part{}
	}
	start := len(f.text)
	f.text = f.appendChoice(f.text, ch, &edit, finish)
	return part{text: rawjson.Span{Start: start, End: len(f.text)}}
}

// editTools repairs the tool calls of a delta. Afterwards f.calls holds the elements that remain: for the array of the delta if it has one,
// else for an event before the finish reason.
func (f *Filter) editTools(edit *deltaEdit, st *choice, ch *openai.Choice, finishing bool) (ok bool) {
	f.calls = f.calls[:0]
	raw := ch.ToolCalls.Of(f.chunk.Data)
	inDelta := len(raw) > 0 && raw[0] == '['
	changed := false
	if inDelta {
		f.calls, changed = st.tools.add(f.calls, raw)
	}
	if finishing {
		n := len(f.calls)
		if n > 0 {
			f.calls = append(f.calls, ',')
		}
		m := len(f.calls)
		if f.calls, ok = st.tools.close(f.calls); !ok {
			return false
		}
		if len(f.calls) == m {
			f.calls = f.calls[:n]
		}
		changed = changed || len(f.calls) > n
	}
	if inDelta && changed {
		edit.calls = f.calls
		edit.dropCalls = len(f.calls) == 0
	} else if inDelta {
		f.calls = f.calls[:0]
	}
	return true
}

// nothingLeft says whether the choice would bring the client nothing.
func (f *Filter) nothingLeft(edit *deltaEdit, ch *openai.Choice) bool {
	data := f.chunk.Data
	if !f.chunk.Usage.IsZero() && !f.chunk.UsageInside || ch.Extra || given(ch.Logprobs.Of(data)) != nil {
		return false
	}
	if given(ch.Role.Of(data)) != nil && !edit.dropRole || given(ch.Refusal.Of(data)) != nil || given(ch.FunctionCall.Of(data)) != nil {
		return false
	}
	if raw := given(ch.ToolCalls.Of(data)); raw != nil && !edit.dropCalls && string(raw) != "[]" {
		return false
	}
	content, reasoning := given(ch.Content.Of(data)), given(ch.ReasoningContent.Of(data))
	if edit.setContent {
		content = f.split.content
	}
	if edit.setReasoning {
		reasoning = edit.reasoning
	}
	alias := given(ch.Reasoning.Of(data))
	return len(content) == 0 && len(reasoning) == 0 && (len(alias) == 0 || edit.dropAlias)
}

// appendHeld appends an event with the text that a choice holds back.
func (f *Filter) appendHeld(dst []byte, st *choice) []byte {
	var held split
	st.think.flush(&held)
	if len(held.reasoning) > 0 && f.opts.Think == ThinkSplit {
		dst = f.appendDelta(dst, st.index, `"reasoning_content":"`, string(held.reasoning), `"`)
	}
	if len(held.content) > 0 {
		dst = f.appendDelta(dst, st.index, `"content":"`, string(held.content), `"`)
	}
	return dst
}

// appendChoice appends a choice with its new delta and finish reason. Everything else in it stays.
func (f *Filter) appendChoice(dst []byte, ch *openai.Choice, edit *deltaEdit, finish []byte) []byte {
	raw := ch.Span.Of(f.chunk.Data)
	c := rawjson.Copy(dst, raw)
	hasDelta := false
	for m := range rawjson.Members(raw) {
		name := string(m.Name())
		c.Member(m.Key.Start, m.Value.End, name != "index" || !ch.NoIndex)
		switch name {
		case "delta":
			hasDelta = true
			out := c.Edit(m.Value.Start, m.Value.End)
			*out = f.appendEdited(*out, m.Value.Of(raw), edit)
		case "finish_reason":
			out := c.Edit(m.Value.Start, m.Value.End)
			if finish == nil {
				finish = null
			}
			*out = append(*out, finish...)
		}
	}
	if !hasDelta {
		c.Add([]byte(`"delta":{}`))
	}
	if ch.NoIndex {
		c.Add([]byte(`"index":`), strconv.AppendInt(nil, int64(ch.Index), 10))
	}
	return c.End()
}

var null = []byte("null")
