package openai

import "hydrallm/shared/openai/rawjson"

// Rewrite says how a request is changed for one upstream.
type Rewrite struct {
	Model    string // name of the model at the upstream; "" keeps the client's
	Defaults *Patch // members that the client may set itself; may be nil
	Patch    *Patch // applied last; may be nil
	Front    []byte // a message to be put before all others; nil = none
}

// AppendUpstream appends the body for an upstream to dst. The members keep the client's order and, where nothing changes them, their exact
// bytes. The model is replaced, the fields of the gateway are dropped, a prompt becomes a message, empty arguments of tool
// calls in the history become "{}" (TOOL-07), then what the client left out is filled in and the patch is merged in. Equal input gives equal bytes (REQ-04).
func (r *Request) AppendUpstream(dst []byte, w Rewrite) []byte {
	u := upstreamBody{Request: r, model: w.Model, defaults: w.Defaults, patch: w.Patch, front: w.Front, c: rawjson.Copy(dst, r.body)}
	return u.build()
}

// upstreamBody is one body under construction.
type upstreamBody struct {
	*Request
	model    string
	defaults *Patch
	patch    *Patch
	front    []byte
	c        rawjson.Copier
}

func (u *upstreamBody) build() []byte {
	var patched, given []bool
	if !u.patch.Empty() {
		patched = make([]bool, len(u.patch.ops))
	}
	if !u.defaults.Empty() {
		given = make([]bool, len(u.defaults.ops))
	}
	hasModel := u.model == ""
	for i := range u.members {
		m := &u.members[i]
		name := u.upstreamName(m)
		u.c.Member(m.key.Start, m.value.End, name != nil)
		if name == nil {
			continue
		}
		hasModel = hasModel || m.field == fieldModel
		var fill *op
		if given != nil {
			fill = u.defaults.given(name, given)
		}
		if patched != nil {
			if i := u.patch.index(name); i >= 0 {
				patched[i] = true
				u.patchMember(m, fill, &u.patch.ops[i])
				continue
			}
		}
		if fill != nil && m.field == fieldOther {
			out := u.c.Edit(m.value.Start, m.value.End)
			*out = fill.appendFilled(*out, m.value.Of(u.body))
			continue
		}
		u.member(m)
	}
	if !hasModel && !u.patch.Has("model") {
		u.c.Add(modelKey, rawjson.AppendString(nil, u.model))
	}
	u.addLeftOut(patched, given)
	return u.c.End()
}

// addLeftOut adds what the client left out: the members of the patch, merged into the defaults, and the other defaults.
func (u *upstreamBody) addLeftOut(patched, given []bool) {
	if given == nil {
		if patched != nil {
			u.patch.addUnseen(&u.c, patched)
		}
		return
	}
	for i := range patched {
		if patched[i] {
			continue
		}
		o := &u.patch.ops[i]
		value := o.value
		if d := u.defaults.index([]byte(o.name)); d >= 0 {
			if !given[d] {
				value = o.appendTo(nil, u.defaults.ops[d].value)
			}
			given[d] = true
		}
		u.c.Add(o.key, colon, value)
	}
	u.defaults.addUnseen(&u.c, given)
}

var (
	modelKey     = []byte(`"model":`)
	messagesName = []byte("messages")
)

// upstreamName is the name under which a member goes to the upstream, or nil if it does not.
func (u *upstreamBody) upstreamName(m *member) []byte {
	switch m.field {
	case fieldGateway:
		return nil
	case fieldPrompt:
		if !u.Messages.IsZero() || u.has(fieldMessages) {
			return nil
		}
		return messagesName
	default:
		return m.name
	}
}

func (u *upstreamBody) has(f field) bool {
	for i := range u.members {
		if u.members[i].field == f {
			return true
		}
	}
	return false
}

// patchMember writes a member that the patch changes.
func (u *upstreamBody) patchMember(m *member, fill, o *op) {
	if m.field == fieldPrompt { // becomes messages, an array, which no patch merges into
		out := u.c.Edit(m.key.Start, m.value.End)
		*out = append(append(append(*out, o.key...), ':'), o.value...)
		return
	}
	value := m.value.Of(u.body)
	if fill != nil {
		value = fill.appendFilled(nil, value)
	}
	out := u.c.Edit(m.value.Start, m.value.End)
	*out = o.appendTo(*out, value)
}

// member writes a member that the patch leaves alone. Most stay as they are.
func (u *upstreamBody) member(m *member) {
	switch m.field {
	case fieldModel:
		if u.model != "" {
			out := u.c.Edit(m.value.Start, m.value.End)
			*out = rawjson.AppendString(*out, u.model)
		}
	case fieldPrompt:
		out := u.c.Edit(m.key.Start, m.value.End)
		*out = u.appendPrompt(append(*out, `"messages":`...))
	case fieldMessages:
		if u.Messages.IsZero() {
			out := u.c.Edit(m.value.Start, m.value.End)
			*out = u.appendPrompt(*out)
			return
		}
		if len(u.front) > 0 {
			begin := m.value.Start + 1 // behind the bracket; there is a message, so that a comma is right
			out := u.c.Edit(begin, begin)
			*out = append(append(*out, u.front...), ',')
		}
		for _, empty := range u.emptyArgs {
			out := u.c.Edit(empty.Start, empty.End)
			*out = append(*out, `"{}"`...)
		}
	case fieldOther, fieldGateway, fieldStream:
	}
}

// appendPrompt appends the messages that stand for a prompt.
func (u *upstreamBody) appendPrompt(dst []byte) []byte {
	dst = append(dst, '[')
	if len(u.front) > 0 {
		dst = append(append(dst, u.front...), ',')
	}
	dst = append(dst, `{"role":"user","content":`...)
	dst = append(dst, u.Prompt.Of(u.body)...)
	return append(dst, `}]`...)
}
