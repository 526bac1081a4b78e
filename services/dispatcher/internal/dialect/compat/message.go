package compat

import (
	"slices"

	"hydrallm/shared/openai/rawjson"
)

// roleOf gives the role that a raw JSON string names.
func roleOf(raw []byte) role {
	switch {
	case rawjson.Is(raw, "user"):
		return userRole
	case rawjson.Is(raw, "assistant"):
		return assistantRole
	case rawjson.Is(raw, "tool"):
		return toolRole
	case rawjson.Is(raw, "system"):
		return systemRole
	case rawjson.Is(raw, "developer"):
		return developerRole
	}
	return otherRole
}

// message is what was read of a message. Its members are in request.fields.
type message struct {
	start   int
	closing int // offset of its closing brace
	role    role
	content content
	calls   int  // of tools, also one in the old form that the vendor takes
	noCalls bool // tool_calls is there and empty
	toolID  []byte
	named   bool // has a name that is not empty
}

// messages reads the history.
func (r *request) messages() {
	if !r.s.Enter('[') {
		return
	}
	var c items
	for r.s.Element() {
		m := message{start: r.s.Pos(), content: content{kind: absent}}
		stays := true
		if r.s.Enter('{') {
			r.read(&m)
			if r.s.Failed() {
				return
			}
			if stays = !r.isEmpty(&m); stays {
				r.finish(&m)
			}
		}
		r.judge(&c, m.start, r.s.Pos(), stays)
	}
}

// read reads the members of a message.
func (r *request) read(m *message) {
	r.fields = r.fields[:0]
	oldCall := false // a call in the form that came before tool_calls
	for r.s.Member() {
		f := member{name: r.s.Key(), key: r.s.KeySpan()}
		start := r.s.Pos()
		switch string(f.name) {
		case "role":
			m.role = roleOf(r.s.Skip().Of(r.body))
		case "content":
			m.content = r.content()
		case "tool_calls":
			n, isArray := r.toolCalls()
			m.calls += n
			m.noCalls = n == 0 && isArray
		case "function_call":
			oldCall = r.s.Kind() == '{'
			r.s.Skip()
		case "tool_call_id":
			m.toolID = r.s.Skip().Of(r.body)
			r.rewriteID(start, m.toolID)
		case "name":
			name := r.s.Skip()
			m.named = name.End-name.Start > len(`""`) && r.body[name.Start] == '"'
		default:
			r.s.Skip()
		}
		f.value = rawjson.Span{Start: start, End: r.s.Pos()}
		r.fields = append(r.fields, f)
	}
	if oldCall && r.takesMember(m.role, "function_call") {
		m.calls++
	}
	if m.role != assistantRole {
		m.calls = 0 // only the assistant makes calls
	}
	m.closing = r.s.Pos() - 1
	r.hasCalls = r.hasCalls || m.calls > 0
}

// takesMember says whether a message of this role may have a member.
func (r *request) takesMember(in role, name string) bool {
	takes := r.inMessage[in]
	return takes == nil || slices.Contains(takes, name)
}

// isEmpty says whether a message says nothing and the vendor refuses that.
func (r *request) isEmpty(m *message) bool {
	return r.empty[m.role] && m.calls == 0 && m.content.empty()
}

// finish judges the members of a message that stays.
func (r *request) finish(m *message) {
	if r.bridge && m.role == userRole && r.lastRole == toolRole {
		r.edits.replace(m.start, m.start, `{"role":"assistant","content":"Done."},`)
	}
	var c items
	takes := r.inMessage[m.role]
	reasoning := r.reasoning(m)
	var prefix rawjson.Span
	for i := range r.fields {
		f := &r.fields[i]
		keep := true
		switch string(f.name) {
		case "role":
			if m.role == developerRole && r.noPrompt {
				r.edits.replace(f.value.Start, f.value.End, `"system"`)
			}
		case "content":
			r.finishContent(m, f)
		case "name":
			keep = takes == nil || f.value.Of(r.body)[0] == '"'
		case "tool_calls":
			keep = m.calls > 0 || !m.noCalls
		case "reasoning", "reasoning_content":
			if r.reasoned != "" && m.role == assistantRole {
				keep = r.reasoningStays(f, reasoning)
				r.judge(&c, f.key.Start, f.value.End, keep)
				continue
			}
		case "prefix":
			prefix = f.value
		}
		keep = keep && !contains(r.foreign, f.name) && (takes == nil || contains(takes, f.name))
		r.judge(&c, f.key.Start, f.value.End, keep)
	}
	if m.content.kind == absent && m.calls == 0 && m.role != otherRole {
		c.add(&r.edits, m.closing, `"content":""`)
	}
	if r.named && m.role == toolRole && !m.named {
		r.nameTool(m, &c)
	}
	if r.replays && m.role == assistantRole && reasoning.IsZero() {
		r.bare = append(r.bare, r.slotFor("reasoning_content", m, &c))
	}
	r.lastRole = m.role
	r.last = slot{value: prefix, closing: m.closing, comma: c.kept}
}

// slotFor gives the place of a member of the message.
func (r *request) slotFor(name string, m *message, c *items) slot {
	s := slot{closing: m.closing, comma: c.kept}
	for i := range r.fields {
		if string(r.fields[i].name) == name {
			s.value = r.fields[i].value
		}
	}
	return s
}

// nameTool says which tool a result comes from, as the call in the history does.
func (r *request) nameTool(m *message, c *items) {
	if m.toolID == nil {
		return
	}
	for _, made := range slices.Backward(r.calls) {
		if string(made.id) == string(m.toolID) {
			r.slotFor("name", m, c).put(&r.edits, "name", string(made.name))
			return
		}
	}
}

// reasoning finds the text of the reasoning in a message of the assistant, under either name. The vendor's own wins.
func (r *request) reasoning(m *message) rawjson.Span {
	var found rawjson.Span
	if r.reasoned == "" || m.role != assistantRole {
		return found
	}
	for i := range r.fields {
		f := &r.fields[i]
		if r.body[f.value.Start] != '"' {
			continue
		}
		if string(f.name) == r.reasoned {
			return f.value
		}
		if string(f.name) == "reasoning" || string(f.name) == "reasoning_content" {
			found = f.value
		}
	}
	return found
}

// reasoningStays gives the reasoning the name that the vendor knows. There is room for one.
func (r *request) reasoningStays(f *member, reasoning rawjson.Span) bool {
	own := string(f.name) == r.reasoned
	switch {
	case reasoning.IsZero():
		return own
	case f.value != reasoning:
		return false
	case !own:
		r.edits.replace(f.key.Start, f.key.End, `"`+r.reasoned+`"`)
	}
	return true
}

// finishHistory makes the changes to messages that depend on others.
func (r *request) finishHistory() {
	if r.hasCalls && !rawjson.Is(rawjson.Get(r.value("thinking"), "type"), "disabled") && r.effort != "none" {
		for _, s := range r.bare {
			s.put(&r.edits, "reasoning_content", `""`)
		}
	}
	if r.prefix && r.lastRole == assistantRole && string(r.last.value.Of(r.body)) != "true" {
		r.last.put(&r.edits, "prefix", "true")
	}
}

// toolCalls reads the tool calls of a message and counts them.
func (r *request) toolCalls() (n int, isArray bool) {
	if !r.s.Enter('[') {
		return 0, false
	}
	for ; r.s.Element(); n++ {
		if r.s.Enter('{') {
			r.toolCall()
		}
	}
	return n, true
}

func (r *request) toolCall() {
	var c items
	var made call
	for r.s.Member() {
		key, name := r.s.KeySpan(), r.s.Key()
		start := r.s.Pos()
		switch string(name) {
		case "id":
			made.id = r.s.Skip().Of(r.body)
			r.rewriteID(start, made.id)
		case "function":
			function := r.s.Skip().Of(r.body)
			if r.named {
				made.name = rawjson.Get(function, "name")
			}
		default:
			r.s.Skip()
		}
		r.judge(&c, key.Start, r.s.Pos(), r.inCall == nil || contains(r.inCall, name))
	}
	if r.named && made.id != nil && len(made.name) > len(`""`) && made.name[0] == '"' {
		r.calls = append(r.calls, made)
	}
}

// rewriteID replaces the id of a tool call, which begins at this offset.
func (r *request) rewriteID(start int, raw []byte) {
	if id := r.ids.replace(raw); id != "" {
		r.edits.replace(start, start+len(raw), `"`+id+`"`)
	}
}
