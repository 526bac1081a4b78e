package stream

import (
	"bytes"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/shared/openai/rawjson"
)

// Repair makes a whole answer sound: think tags are handled, and there are the same repairs as in a stream. A sound answer stays as it is.
func Repair(c *answer.Chunk, opts Options) {
	f := NewFilter(opts)
	for i := range c.Choices {
		ch := &c.Choices[i]
		f.repairMessage(ch, i)
		c.Edited = c.Edited || ch.Edited
	}
}

// repairMessage repairs the choice of a whole answer that stands at a position.
func (f *Filter) repairMessage(ch *answer.Choice, position int) {
	digitsToText(ch)
	hasCalls, functionCall := len(ch.Calls) > 0, answer.Given(ch.FunctionCall) != nil
	finish := finishReason(ch.Finish, hasCalls, functionCall, ch.HasOutput())
	if finish == nil && ch.Delta != nil {
		finish = finishReason(finishStop, hasCalls, functionCall, true)
	}
	if f.opts.Think != ThinkOff || f.opts.Uniform {
		var s splitter
		f.editText(&s, ch, true, true) // a message always has a content
	}
	if ch.Content == nil && ch.Delta != nil {
		ch.Content, ch.Edited = null, true
	}
	uniqueIDs(ch.Calls)
	for i := range ch.Calls {
		if repairCall(&ch.Calls[i]) {
			ch.ToolCalls, ch.Edited = nil, true
		}
	}
	if !bytes.Equal(finish, ch.Finish) {
		ch.Finish, ch.Edited = finish, true
	}
	if ch.NoIndex {
		ch.Index, ch.Edited = max(position, ch.Index), true
	}
}

// uniqueIDs takes the id from each call that has that of one before: results could not say which of the two they are of.
func uniqueIDs(calls []answer.Call) {
	if len(calls) < 2 {
		return
	}
	used := make(map[string]bool, len(calls))
	for i := range calls {
		if id := string(calls[i].ID); used[id] {
			calls[i].ID = nil
		} else if calls[i].ID != nil {
			used[id] = true
		}
	}
}

// repairCall sees to it that a whole call has an id, a type, and arguments that are a JSON text in a string (TOOL-07). The answer is false
// when it had.
func repairCall(c *answer.Call) (changed bool) {
	if len(c.Raw) == 0 || c.Raw[0] != '{' {
		return false
	}
	set := func(name string, value []byte) {
		c.Raw, changed = rawjson.AppendSet(nil, c.Raw, name, value), true
	}
	if c.ID == nil {
		c.ID = newCallID()
		set("id", c.ID)
	}
	if c.Custom {
		return changed
	}
	if c.Type == nil {
		c.Type = functionType
		set("type", c.Type)
	}
	if c.Tool != nil && !answer.IsText(c.Args) {
		args := c.ArgText()
		if len(args) == 0 {
			args = []byte("{}")
		}
		c.Args = answer.Quoted(args)
		c.Tool = rawjson.AppendSet(nil, c.Tool, "arguments", c.Args)
		set("function", c.Tool)
	}
	return changed
}
