package stream

import (
	"bytes"
	"slices"
	"strconv"

	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// Completion gives a JSON answer as the client gets it: think tags handled, and the same repairs as in a stream. A sound answer is
// returned as it is, without a copy; the body must be valid JSON.
func Completion(body []byte, opts Options) []byte {
	body = bytes.TrimSpace(body) // some upstreams send blank lines while they work
	f := NewFilter(opts)
	f.chunk.Parse(body)
	c := &f.chunk
	if !c.Valid {
		return body
	}
	changed := false
	for i := range c.Choices {
		p := f.rewriteMessage(i)
		f.parts = append(f.parts, p)
		changed = changed || !p.text.IsZero()
	}
	if !changed && !c.NullError && (opts.Model == "" || !c.HasChoices) {
		return f.disclose(body)
	}
	f.head.learn(c)
	return f.disclose(f.appendTop(nil, changed, true))
}

// IsAnswer says whether a JSON body holds an answer: a choice with a message. Anything else is of no use to a client, whatever its status.
func IsAnswer(body []byte) bool {
	var c openai.Chunk
	c.Parse(bytes.TrimSpace(body))
	return slices.ContainsFunc(c.Choices, func(ch openai.Choice) bool { return !ch.Delta.IsZero() })
}

// rewriteMessage repairs the choice of a whole answer that stands at a position.
func (f *Filter) rewriteMessage(position int) part {
	data, ch := f.chunk.Data, &f.chunk.Choices[position]
	var edit deltaEdit
	f.split.reset()
	if f.opts.Think != ThinkOff || f.uniform {
		var s splitter
		f.editText(&edit, &s, ch, true)
		edit.keepContent = true // a message always has a content
	}
	calls := ch.ToolCalls.Of(data)
	hasCalls := len(calls) > 0 && calls[0] == '[' && string(given(calls)) != "[]"
	if hasCalls {
		edit.calls = repairCalls(calls)
	}
	functionCall := given(ch.FunctionCall.Of(data)) != nil
	stated := ch.Finish.Of(data)
	finish := finishReason(stated, hasCalls, functionCall, ch.HasOutput(data))
	if finish == nil && !ch.Finish.IsZero() {
		finish = finishReason(finishStop, hasCalls, functionCall, true)
	}
	noContent := ch.Content.IsZero() && !ch.Delta.IsZero()
	if bytes.Equal(finish, stated) && !edit.changed() && !noContent && !ch.NoIndex {
		return part{}
	}
	start := len(f.text)
	raw := ch.Span.Of(data)
	c := rawjson.Copy(f.text, raw)
	for m := range rawjson.Members(raw) {
		name := string(m.Name())
		c.Member(m.Key.Start, m.Value.End, name != "index" || !ch.NoIndex)
		switch name {
		case "message":
			message := f.appendEdited(nil, m.Value.Of(raw), &edit)
			if noContent {
				message = rawjson.AppendSet(nil, message, "content", null)
			}
			replace(c.Edit(m.Value.Start, m.Value.End), message)
		case "finish_reason":
			replace(c.Edit(m.Value.Start, m.Value.End), finish)
		}
	}
	if ch.NoIndex {
		c.Add([]byte(`"index":`), strconv.AppendInt(nil, int64(max(position, ch.Index)), 10))
	}
	f.text = c.End()
	return part{text: rawjson.Span{Start: start, End: len(f.text)}}
}

// repairCalls gives the tool calls of a message as elements of an array: with ids, types, and arguments that are a JSON text in a string
// (TOOL-07). It is nil when all of them are sound.
func repairCalls(array []byte) []byte {
	var out []byte
	changed := false
	for span := range rawjson.Elements(array) {
		raw := span.Of(array)
		fixed := repairCall(raw)
		changed = changed || fixed != nil
		if fixed == nil {
			fixed = raw
		}
		if out != nil {
			out = append(out, ',')
		}
		out = append(out, fixed...)
	}
	if !changed {
		return nil
	}
	return out
}

// repairCall gives the repaired call, or nil when it is sound.
func repairCall(raw []byte) []byte {
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	e := readEntry(raw)
	var fixed []byte
	set := func(name string, value []byte) {
		if fixed == nil {
			fixed = raw
		}
		fixed = rawjson.AppendSet(nil, fixed, name, value)
	}
	if e.id == nil {
		set("id", newCallID())
	}
	if e.custom {
		return fixed
	}
	if e.typ == nil {
		set("type", functionType)
	}
	if function := e.function.Of(raw); function != nil && !isText(e.args) {
		args := e.argText()
		if len(args) == 0 {
			args = []byte("{}")
		}
		set("function", rawjson.AppendSet(nil, function, "arguments", quoted(args)))
	}
	return fixed
}
