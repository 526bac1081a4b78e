package chat

import (
	"slices"
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
	var named [3]namedMember
	if rename {
		head.Complete(w.answer.told.Model)
		named = [3]namedMember{{"id", head.ID, false}, {"created", head.Created, false}, {"model", head.Model, false}}
	}
	c := rawjson.Copy(dst, chunk.Data)
	hasChoices, hasUsage := false, false
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
		}
		for i := range named {
			if rename && named[i].name == name {
				named[i].seen = true
				replace(&c, m, named[i].value)
			}
		}
	}
	if !hasChoices {
		c.Add([]byte(`"choices":[]`))
	}
	for _, m := range named {
		if rename && !m.seen {
			c.Add(rawjson.AppendString(nil, m.name), []byte(":"), m.value)
		}
	}
	if !hasUsage && w.usage != nil {
		c.Add([]byte(`"usage":`), w.usage)
	}
	return c.End()
}

// namedMember is a member that all chunks have in common.
type namedMember struct {
	name  string
	value []byte
	seen  bool
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
	hasDelta := false
	for m := range rawjson.Members(ch.Raw) {
		name := string(m.Name())
		c.Member(m.Key.Start, m.Value.End, name != "index" || !ch.NoIndex)
		switch name {
		case "delta", "message":
			hasDelta = true
			out := c.Edit(m.Value.Start, m.Value.End)
			*out = appendDelta(*out, m.Value.Of(ch.Raw), ch, parts)
		case "finish_reason":
			out := c.Edit(m.Value.Start, m.Value.End)
			*out = orNull(*out, ch.Finish)
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

// appendDelta appends a delta or message that was read, as it is now.
func appendDelta(dst, delta []byte, ch *answer.Choice, parts []byte) []byte {
	if len(delta) == 0 || delta[0] != '{' {
		return append(dst, "{}"...)
	}
	fields := [...]field{
		{keyRole, ch.Role, true},
		{keyReasoningContent, ch.ReasoningContent, false},
		{keyContent, ch.Content, false},
		{keyReasoning, ch.Reasoning, true},
		{keyToolCalls, ch.ToolCalls, true},
		{keyParts, parts, parts == nil},
	}
	if ch.ToolCalls == nil && len(ch.Calls) > 0 {
		fields[4].value = appendCalls(nil, ch.Calls)
	}
	known := fields[:len(fields)-1]
	if parts != nil {
		known = fields[:]
	}
	c := rawjson.Copy(dst, delta)
	for m := range rawjson.Members(delta) {
		i := slices.IndexFunc(known, func(f field) bool { return string(f.key[1:len(f.key)-2]) == string(m.Name()) })
		if i < 0 {
			c.Member(m.Key.Start, m.Value.End, true)
			continue
		}
		f := &known[i]
		f.seen = true
		if c.Member(m.Key.Start, m.Value.End, f.value != nil); f.value != nil {
			replace(&c, m, f.value)
		}
	}
	for i := range fields {
		if f := &fields[i]; !f.seen && f.value != nil {
			c.Add(f.key, f.value)
		}
	}
	return c.End()
}

// field is a member of a delta that may change.
type field struct {
	key   []byte
	value []byte // nil when the member is left out
	seen  bool   // it is there, or is not added if it is not
}

// Members of a delta, with the colon.
var (
	keyRole             = []byte(`"role":`)
	keyContent          = []byte(`"content":`)
	keyReasoningContent = []byte(`"reasoning_content":`)
	keyReasoning        = []byte(`"reasoning":`)
	keyToolCalls        = []byte(`"tool_calls":`)
	keyParts            = []byte(`"parts":`)
)

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
