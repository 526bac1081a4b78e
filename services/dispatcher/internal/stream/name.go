package stream

import (
	"bytes"
	"slices"

	"hydrallm/services/dispatcher/internal/answer"
)

// Some upstreams send the name of a function in pieces. Clients take the first for the name, or the last, or see two calls. So the chunk with a name
// waits for the next one, unless arguments are there.

// announce passes a chunk on, or keeps it because the name of a call may go on.
func (f *Filter) announce(c *answer.Chunk) {
	if !slices.ContainsFunc(c.Choices, func(ch answer.Choice) bool { return slices.ContainsFunc(ch.Calls, named) }) {
		f.process(c)
		return
	}
	f.named = c.Clone()
}

// named says whether a piece of a call has a name and nothing behind it.
func named(c answer.Call) bool { return c.Name != nil && c.Index >= 0 && len(c.ArgText()) == 0 }

// tell passes on the chunk with a name.
func (f *Filter) tell() {
	if c := f.named; c != nil {
		f.named = nil
		f.process(c)
	}
}

// joinNames adds what a chunk has of a name to the piece before it. The answer is true if that is all the chunk had.
func (f *Filter) joinNames(c *answer.Chunk) bool {
	if f.named == nil {
		return false
	}
	joined, left := false, false
	for i := range c.Choices {
		ch := &c.Choices[i]
		var calls []answer.Call
		some := false
		for _, e := range ch.Calls {
			if f.joinName(ch.Index, &e) {
				some = true
				if len(e.Args) == 0 {
					continue
				}
			}
			calls = append(calls, e)
		}
		if some {
			ch.Calls, ch.ToolCalls, ch.Edited, joined = calls, nil, true, true
		}
		left = left || ch.HasOutput() || ch.Extra || finishes(ch)
	}
	return joined && !left
}

// joinName adds the name of a piece of a call to the one that waits, and takes it out of the piece.
func (f *Filter) joinName(index int, e *answer.Call) bool {
	if e.Name == nil || e.Index < 0 {
		return false
	}
	for i := range f.named.Choices {
		ch := &f.named.Choices[i]
		if ch.Index != index {
			continue
		}
		for k := len(ch.Calls) - 1; k >= 0; k-- {
			first := &ch.Calls[k]
			if first.Index != e.Index {
				continue
			}
			if !named(*first) || bytes.Equal(first.Name, e.Name) || e.ID != nil && !bytes.Equal(e.ID, first.ID) {
				return false
			}
			name := answer.Inner(first.Name)
			if more := answer.Inner(e.Name); bytes.HasPrefix(more, name) { // all of it, once more
				name = more
			} else {
				name = append(bytes.Clone(name), more...)
			}
			remake(first)
			first.Name, first.Args = answer.Quoted(name), noText
			remake(e)
			first.Others, first.ToolOthers = append(first.Others, e.Others...), append(first.ToolOthers, e.ToolOthers...)
			*e = answer.Call{Index: e.Index, PlainIndex: e.PlainIndex, Custom: e.Custom, Args: e.Args}
			ch.ToolCalls, ch.Edited = nil, true
			return true
		}
	}
	return false
}

// remake makes a call that was read one that was made, so that its members can change.
func remake(c *answer.Call) {
	if c.Raw != nil {
		c.Others, c.ToolOthers = c.More()
		c.Raw, c.Repeats = nil, false
	}
}
