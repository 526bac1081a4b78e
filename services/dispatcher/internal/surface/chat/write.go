package chat

import (
	"strconv"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/shared/openai/rawjson"
)

// writer writes one chunk, or a whole answer, as JSON.
type writer struct {
	answer *Answer
	chunk  *answer.Chunk

	usage     []byte // takes the place of the chunk's; nil leaves that
	dropUsage bool   // a routed stream has its usage once, at its end
	parts     []byte // goes into the first message; nil for none
}

func (w *writer) append(dst []byte) []byte {
	if w.chunk.Data == nil {
		return w.appendMade(dst)
	}
	return w.appendRead(dst)
}

// appendMade appends a chunk that was made here.
func (w *writer) appendMade(dst []byte) []byte {
	head := &w.answer.head
	head.Complete(w.answer.told.Model)
	object := `,"object":"chat.completion.chunk","created":`
	if w.chunk.Plain {
		object = `,"object":"chat.completion","created":`
	}
	dst = append(append(dst, `{"id":`...), head.ID...)
	dst = append(append(dst, object...), head.Created...)
	dst = append(append(dst, `,"model":`...), head.Model...)
	dst = w.appendChoices(append(dst, `,"choices":`...))
	usage := w.usage
	if usage == nil && !w.dropUsage {
		usage = w.chunk.Usage
	}
	if usage != nil {
		dst = append(append(dst, `,"usage":`...), usage...)
	}
	return append(dst, '}')
}

// appendRead appends a chunk that was read: with the choices as they are now, without an "error" that is none, and with the model's name if
// one is set.
func (w *writer) appendRead(dst []byte) []byte {
	chunk, head := w.chunk, &w.answer.head
	rename := w.answer.told.Model != ""
	if rename {
		head.Complete(w.answer.told.Model)
	}
	c := rawjson.Copy(dst, chunk.Data)
	hasID, hasCreated, hasModel, hasChoices, hasUsage := !rename, !rename, !rename, false, false
	for m := range rawjson.Members(chunk.Data) {
		name := string(m.Name())
		c.Member(m.Key.Start, m.Value.End, (name != "error" || !chunk.NullError) && (!rename || !private(name)) && (!w.dropUsage || name != "usage"))
		switch name {
		case "choices":
			if hasChoices = true; chunk.Edited || !chunk.HasChoices || w.parts != nil {
				out := c.Edit(m.Value.Start, m.Value.End)
				*out = w.appendChoices(*out)
			}
		case "usage":
			if hasUsage = true; w.usage != nil {
				replace(&c, m, w.usage)
			}
		case "id":
			if hasID = true; rename {
				replace(&c, m, head.ID)
			}
		case "created":
			if hasCreated = true; rename {
				replace(&c, m, head.Created)
			}
		case "model":
			if hasModel = true; rename {
				replace(&c, m, head.Model)
			}
		}
	}
	if !hasChoices {
		c.Add([]byte(`"choices":[]`))
	}
	if !hasID {
		c.Add([]byte(`"id":`), head.ID)
	}
	if !hasCreated {
		c.Add([]byte(`"created":`), head.Created)
	}
	if !hasModel {
		c.Add([]byte(`"model":`), head.Model)
	}
	if !hasUsage && w.usage != nil {
		c.Add([]byte(`"usage":`), w.usage)
	}
	return c.End()
}

func replace(c *rawjson.Copier, m rawjson.Member, value []byte) {
	out := c.Edit(m.Value.Start, m.Value.End)
	*out = append(*out, value...)
}

// private says whether vendors report on themselves in a member. A routed answer has no such one: what they say of tokens is in its usage.
func private(name string) bool {
	switch name {
	case "x_groq", "time_info", "base_resp":
		return true
	}
	return false
}

func (w *writer) appendChoices(dst []byte) []byte {
	dst = append(dst, '[')
	for i := range w.chunk.Choices {
		if i > 0 {
			dst = append(dst, ',')
		}
		ch, parts := &w.chunk.Choices[i], w.parts
		if i > 0 {
			parts = nil
		}
		switch {
		case ch.Raw == nil:
			dst = w.appendMadeChoice(dst, ch, parts)
		case ch.Edited || parts != nil && ch.Delta != nil:
			dst = appendChoice(dst, ch, parts)
		default:
			dst = append(dst, ch.Raw...)
		}
	}
	return append(dst, ']')
}

func (w *writer) appendMadeChoice(dst []byte, ch *answer.Choice, parts []byte) []byte {
	dst = strconv.AppendInt(append(dst, `{"index":`...), int64(ch.Index), 10)
	if w.chunk.Plain {
		dst = append(dst, `,"message":`...)
	} else {
		dst = append(dst, `,"delta":`...)
	}
	dst = appendMadeDelta(dst, ch, parts)
	if ch.Logprobs != nil {
		dst = append(append(dst, `,"logprobs":`...), ch.Logprobs...)
	}
	dst = append(dst, `,"finish_reason":`...)
	return append(orNull(dst, ch.Finish), '}')
}

func orNull(dst, value []byte) []byte {
	if value == nil {
		return append(dst, "null"...)
	}
	return append(dst, value...)
}

// appendChoice appends a choice that was read, as it is now. Everything that has no field keeps its bytes.
func appendChoice(dst []byte, ch *answer.Choice, parts []byte) []byte {
	c := rawjson.Copy(dst, ch.Raw)
	hasDelta, hasFinish := false, false
	for m := range rawjson.Members(ch.Raw) {
		name := string(m.Name())
		c.Member(m.Key.Start, m.Value.End, name != "index" || !ch.NoIndex)
		switch name {
		case "delta", "message":
			hasDelta = true
			out := c.Edit(m.Value.Start, m.Value.End)
			*out = appendDelta(*out, m.Value.Of(ch.Raw), ch, parts)
		case "finish_reason":
			hasFinish = true
			out := c.Edit(m.Value.Start, m.Value.End)
			*out = orNull(*out, ch.Finish)
		}
	}
	if !hasDelta {
		c.Add([]byte(`"delta":{}`))
	}
	if !hasFinish && ch.Finish != nil {
		c.Add([]byte(`"finish_reason":`), ch.Finish)
	}
	if ch.NoIndex {
		c.Add([]byte(`"index":`), strconv.AppendInt(nil, int64(ch.Index), 10))
	}
	return c.End()
}

// appendDelta appends a delta or message that was read, as it is now.
func appendDelta(dst, delta []byte, ch *answer.Choice, parts []byte) []byte {
	if len(delta) == 0 || delta[0] != '{' {
		return append(dst, "{}"...)
	}
	calls := ch.ToolCalls
	if calls == nil && len(ch.Calls) > 0 {
		calls = appendCalls(nil, ch.Calls)
	}
	hasContent, hasReasoning, hasParts := false, false, false
	c := rawjson.Copy(dst, delta)
	for m := range rawjson.Members(delta) {
		read := m.Value.Of(delta)
		value := read
		switch string(m.Name()) {
		case "role":
			value = ch.Role
		case "content":
			value, hasContent = ch.Content, true
		case "reasoning_content":
			value, hasReasoning = ch.ReasoningContent, true
		case "reasoning":
			value = ch.Reasoning
		case "tool_calls":
			value = calls
		case "parts":
			if hasParts = true; parts != nil {
				value = parts
			}
		}
		if c.Member(m.Key.Start, m.Value.End, value != nil); value != nil && &value[0] != &read[0] {
			replace(&c, m, value)
		}
	}
	if !hasReasoning && ch.ReasoningContent != nil {
		c.Add([]byte(`"reasoning_content":`), ch.ReasoningContent)
	}
	if !hasContent && ch.Content != nil {
		c.Add([]byte(`"content":`), ch.Content)
	}
	if !hasParts && parts != nil {
		c.Add([]byte(`"parts":`), parts)
	}
	return c.End()
}

// appendMadeDelta appends a delta or message that was made here.
func appendMadeDelta(dst []byte, ch *answer.Choice, parts []byte) []byte {
	start := len(dst)
	member := func(name string, value []byte) {
		if value != nil {
			dst = append(append(append(append(dst, `,"`...), name...), `":`...), value...)
		}
	}
	member("role", ch.Role)
	member("content", ch.Content)
	member("refusal", ch.Refusal)
	member("reasoning_content", ch.ReasoningContent)
	member("reasoning", ch.Reasoning)
	if len(ch.Calls) > 0 {
		dst = appendCalls(append(dst, `,"tool_calls":`...), ch.Calls)
	}
	member("function_call", ch.FunctionCall)
	member("parts", parts)
	dst = answer.AppendOthers(dst, ch.Delta, "refusal", "function_call")
	if len(dst) == start {
		return append(dst, "{}"...)
	}
	dst[start] = '{' // the comma before the first
	return append(dst, '}')
}

func appendCalls(dst []byte, calls []answer.Call) []byte {
	dst = append(dst, '[')
	for i := range calls {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendCall(dst, &calls[i])
	}
	return append(dst, ']')
}

func appendCall(dst []byte, c *answer.Call) []byte {
	if c.Raw != nil {
		return append(dst, c.Raw...)
	}
	start := len(dst)
	if c.Index >= 0 {
		dst = strconv.AppendInt(append(dst, `,"index":`...), int64(c.Index), 10)
	}
	if c.ID != nil {
		dst = append(append(dst, `,"id":`...), c.ID...)
	}
	if c.Type != nil {
		dst = append(append(dst, `,"type":`...), c.Type...)
	}
	tool, args := `,"function":`, `,"arguments":`
	if c.Custom {
		tool, args = `,"custom":`, `,"input":`
	}
	dst = append(dst, tool...)
	inner := len(dst)
	if c.Name != nil {
		dst = append(append(dst, `,"name":`...), c.Name...)
	}
	if c.Args != nil {
		dst = append(append(dst, args...), c.Args...)
	}
	if dst = append(dst, c.ToolOthers...); len(dst) == inner {
		dst = append(dst, '{')
	}
	dst[inner], dst[start] = '{', '{' // the commas before the first members
	return append(append(append(dst, '}'), c.Others...), '}')
}
