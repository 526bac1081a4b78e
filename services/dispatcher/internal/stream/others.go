package stream

import (
	"bytes"
	"slices"

	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// others are the members of deltas that have no meaning here (annotations, images, reasoning_details, ...), put together: texts and arrays
// are continued by the next delta, of anything else the last counts.
type others []otherMember

type otherMember struct{ name, value []byte }

// maxOthers bounds how many different members are kept. No known upstream has more than five.
const maxOthers = 64

var knownMembers = []string{"role", "content", "reasoning_content", "reasoning", "refusal", "tool_calls", "function_call"}

// add takes the members of one delta.
func (o *others) add(data []byte, ch *openai.Choice) {
	if !ch.Extra {
		return
	}
	delta := ch.Delta.Of(data)
	for m := range rawjson.Members(delta) {
		name, value := m.Name(), m.Value.Of(delta)
		if given(value) == nil || slices.Contains(knownMembers, string(name)) {
			continue
		}
		i := slices.IndexFunc(*o, func(known otherMember) bool { return bytes.Equal(known.name, name) })
		switch {
		case i >= 0:
			(*o)[i].value = continued((*o)[i].value, value)
		case len(*o) < maxOthers:
			*o = append(*o, otherMember{bytes.Clone(name), bytes.Clone(value)})
		}
	}
}

// continued gives the value of a member whose delta is more. It may reuse the memory of value.
func continued(value, more []byte) []byte {
	end := len(value) - 1
	switch {
	case value[0] != more[0]:
	case value[0] == '"':
		return append(value[:end], more[1:]...)
	case value[0] == '[' && len(bytes.TrimSpace(inner(more))) == 0:
		return value
	case value[0] == '[' && len(bytes.TrimSpace(inner(value))) > 0:
		return append(append(value[:end], ','), more[1:]...)
	}
	return append(value[:0], more...)
}

// append appends the members, each after a comma.
func (o others) append(dst []byte) []byte {
	for _, m := range o {
		dst = append(rawjson.AppendString(append(dst, ','), m.name), ':')
		dst = append(dst, m.value...)
	}
	return dst
}

// oldCall is a call in the form that came before tool calls.
type oldCall struct {
	came       bool
	name, args []byte // inner parts of JSON strings
}

func (c *oldCall) add(raw []byte) {
	if len(raw) == 0 || raw[0] != '{' {
		return
	}
	c.came = true
	c.name = append(c.name, textOf(rawjson.Get(raw, "name"))...)
	c.args = append(c.args, textOf(rawjson.Get(raw, "arguments"))...)
}

// append appends the member, after a comma.
func (c *oldCall) append(dst []byte) []byte {
	if !c.came {
		return dst
	}
	dst = append(append(dst, `,"function_call":{"name":`...), quoted(c.name)...)
	return append(append(append(dst, `,"arguments":`...), quoted(c.args)...), '}')
}
