package stream

import (
	"bytes"
	"slices"

	"hydrallm/services/dispatcher/internal/answer"
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
func (o *others) add(ch *answer.Choice) {
	if !ch.Extra {
		return
	}
	for m := range rawjson.Members(ch.Delta) {
		name, value := m.Name(), m.Value.Of(ch.Delta)
		if answer.Given(value) == nil || slices.Contains(knownMembers, string(name)) {
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
	case value[0] == '[' && emptyArray(more):
		return value
	case value[0] == '[' && !emptyArray(value):
		return append(append(value[:end], ','), more[1:]...)
	}
	return append(value[:0], more...)
}

func emptyArray(raw []byte) bool { return len(bytes.TrimSpace(raw[1:len(raw)-1])) == 0 }

// object gives the members as an object; nil when there are none.
func (o others) object() []byte {
	if len(o) == 0 {
		return nil
	}
	var object []byte
	for _, m := range o {
		object = rawjson.AppendString(append(object, ','), m.name)
		object = append(append(object, ':'), m.value...)
	}
	object[0] = '{' // the comma before the first
	return append(object, '}')
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
	c.name = append(c.name, answer.Inner(rawjson.Get(raw, "name"))...)
	c.args = append(c.args, answer.Inner(rawjson.Get(raw, "arguments"))...)
}

// raw gives the call; nil when there is none.
func (c *oldCall) raw() []byte {
	if !c.came {
		return nil
	}
	out := append([]byte(`{"name":`), answer.Quoted(c.name)...)
	return append(append(append(out, `,"arguments":`...), answer.Quoted(c.args)...), '}')
}
