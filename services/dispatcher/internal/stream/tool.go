package stream

import (
	"bytes"
	"crypto/rand"
	"slices"
	"strings"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/shared/openai/rawjson"
)

// toolCalls repairs the tool-call deltas of one choice, so that a client can put the calls together by index: every call has an index of
// its own, counted from 0; id, type and name are on its first delta and only there; its arguments are never empty (TOOL-01..TOOL-07).
type toolCalls struct {
	list  []*toolCall
	where []*toolCall // the newest call for each index that the upstream uses
	sent  int         // calls of which the client has the first delta
}

// toolCall is one call while it is being streamed. Raw values are JSON strings with their quotes.
type toolCall struct {
	index    int    // that the client sees; set when the first delta is sent
	id, name []byte // raw, nil while unknown
	typ      []byte // raw, nil while unknown
	sent     bool
	custom   bool // a call of a custom tool, which has an input instead of arguments
	args     arguments

	held               []byte // inner part of the arguments that came before the first delta could be sent
	others, toolOthers []byte // further members that came before it, each after a comma
}

// add takes the calls of a delta. Sound ones stay: the answer is false. Else what the client gets instead is appended to dst; nothing when all
// of it waits.
func (t *toolCalls) add(dst, calls []answer.Call) (out []answer.Call, changed bool) {
	for i := range calls {
		c, some, same := t.take(&calls[i])
		if !same && !changed {
			dst, changed = append(dst, calls[:i]...), true
		}
		switch {
		case !changed:
		case same:
			dst = append(dst, calls[i])
		case some:
			dst = append(dst, c)
		}
	}
	return dst, changed
}

// take gives the repaired call, or none if it has to wait or holds nothing. Same says that it may go as it is.
func (t *toolCalls) take(e *answer.Call) (out answer.Call, some, same bool) {
	c := t.find(e)
	args := e.ArgText()
	if c.sent {
		c.args.feed(args)
		return c.more(e, args)
	}
	waited := c.id != nil || c.name != nil || c.held != nil || c.others != nil
	c.learn(e)
	if c.name == nil || c.id == nil && len(args) == 0 && len(c.held) == 0 {
		c.hold(e, args)
		return answer.Call{}, false, false
	}
	newID := c.id == nil || t.taken(c.id)
	t.send(c)
	c.args.feed(c.held)
	c.args.feed(args)
	if !waited && !newID && e.Type != nil && e.PlainIndex && e.Index == c.index && (e.Args == nil || answer.IsText(e.Args)) {
		return answer.Call{}, true, true
	}
	if newID {
		c.id = newCallID()
	}
	c.hold(e, args)
	return c.first(), true, false
}

// send gives the call its place among those that the client knows.
func (t *toolCalls) send(c *toolCall) {
	c.index, c.sent = t.sent, true
	t.sent++
}

func (c *toolCall) learn(e *answer.Call) {
	if c.id == nil {
		c.id = bytes.Clone(e.ID)
	}
	if c.name == nil {
		c.name = bytes.Clone(e.Name)
	}
	if c.typ == nil {
		c.typ = bytes.Clone(e.Type)
	}
	c.custom = c.custom || e.Custom
}

// hold keeps what the first delta will have, so that nothing is lost.
func (c *toolCall) hold(e *answer.Call, args []byte) {
	c.held = append(c.held, args...)
	others, tool := e.More()
	c.others, c.toolOthers = append(c.others, others...), append(c.toolOthers, tool...)
}

// taken says whether a call that was sent has this id.
func (t *toolCalls) taken(id []byte) bool {
	return slices.ContainsFunc(t.list, func(c *toolCall) bool { return c.sent && bytes.Equal(c.id, id) })
}

var functionType, customType = []byte(`"function"`), []byte(`"custom"`)

// first gives the first delta of a call: everything that was held, with id, type and name.
func (c *toolCall) first() answer.Call {
	typ := c.typ
	switch {
	case c.custom:
		typ = customType
	case typ == nil:
		typ = functionType
	}
	return answer.Call{
		Index: c.index, ID: c.id, Type: typ, Name: c.name, Custom: c.custom, Args: answer.Quoted(c.held), Others: c.others, ToolOthers: c.toolOthers,
	}
}

// more gives a delta that continues a call, without what only the first one may have (TOOL-04).
func (c *toolCall) more(e *answer.Call, args []byte) (out answer.Call, some, same bool) {
	if e.PlainIndex && e.Index == c.index && !e.Repeats && (e.Args == nil || answer.IsText(e.Args)) {
		return answer.Call{}, true, true
	}
	if len(args) == 0 && !e.Extra {
		return answer.Call{}, false, false
	}
	others, tool := e.More()
	return answer.Call{Index: c.index, Custom: c.custom, Args: answer.Quoted(args), Others: others, ToolOthers: tool}, true, false
}

// find gives the call that an entry belongs to, maybe a new one.
func (t *toolCalls) find(e *answer.Call) *toolCall {
	var current *toolCall
	switch {
	case e.Index >= 0:
		if e.Index < len(t.where) {
			current = t.where[e.Index]
		}
	case e.ID != nil:
		current = t.withID(e.ID)
	case len(t.list) > 0:
		current = t.list[len(t.list)-1]
	}
	if current == nil || current.endsBefore(e) {
		current = &toolCall{}
		t.list = append(t.list, current)
	}
	if e.Index >= 0 {
		for e.Index >= len(t.where) {
			t.where = append(t.where, nil)
		}
		t.where[e.Index] = current
	}
	return current
}

// withID gives the call with this id, or the last one if it still waits for its id.
func (t *toolCalls) withID(id []byte) *toolCall {
	for _, c := range t.list {
		if bytes.Equal(c.id, id) {
			return c
		}
	}
	if n := len(t.list); n > 0 && t.list[n-1].id == nil && !t.list[n-1].sent {
		return t.list[n-1]
	}
	return nil
}

// endsBefore says whether an entry that looks like one for this call begins another: upstreams repeat an index for parallel calls (TOOL-03),
// leave ids out, or send a new id with every piece of one call.
func (c *toolCall) endsBefore(e *answer.Call) bool {
	otherID := e.ID != nil && c.id != nil && !bytes.Equal(e.ID, c.id)
	switch {
	case otherID && e.Name == nil:
		return e.Args == nil || c.args.complete
	case otherID:
		return true
	case e.Name == nil || c.name == nil:
		return false
	case !bytes.Equal(e.Name, c.name):
		return true
	}
	return c.args.complete && e.Args != nil
}

// close gives what is missing at the end of the choice: empty arguments are an empty object (TOOL-07), and calls that waited for an id get
// one. It answers false if there are arguments without the name of a function.
func (t *toolCalls) close() (calls []answer.Call, ok bool) {
	for _, c := range t.list {
		switch {
		case c.sent && (c.custom || c.args.started):
			continue
		case c.name == nil && len(c.held) > 0:
			return nil, false
		case c.name == nil: // announced, and nothing came of it
			continue
		}
		c.args.started = true
		if c.sent {
			calls = append(calls, answer.Call{Index: c.index, Args: noArguments})
			continue
		}
		if c.id == nil || t.taken(c.id) {
			c.id = newCallID()
		}
		t.send(c)
		if len(c.held) == 0 && !c.custom {
			c.held = append(c.held, "{}"...)
		}
		calls = append(calls, c.first())
	}
	return calls, true
}

var noArguments = []byte(`"{}"`)

// newCallID is a raw id for a call to which the upstream gave none.
func newCallID() []byte { return rawjson.AppendString(nil, "call_"+strings.ToLower(rand.Text())) }
