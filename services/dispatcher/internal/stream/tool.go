package stream

import (
	"bytes"
	"crypto/rand"
	"slices"
	"strconv"
	"strings"

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

	held  []byte // inner part of the arguments that came before the first delta could be sent
	extra []byte // further members that came before it, each after a comma
}

// maxUpstreamIndex bounds the table of upstream indexes. An index beyond it counts as missing.
const maxUpstreamIndex = 1 << 10

// entry is one element of the tool_calls of a delta. Raw values are nil when absent, null or empty.
type entry struct {
	raw            []byte
	index          int  // -1 when missing or senseless
	plainIndex     bool // the index is written as a client expects it
	id, typ, name  []byte
	args           []byte // raw string, or another raw value that has to become one; the input of a custom tool
	repeats        bool   // has an id or a name, even an empty one, or an empty type
	function       rawjson.Span
	custom         bool
	hasExtraMember bool
}

func readEntry(raw []byte) entry {
	e := entry{raw: raw, index: -1}
	s := rawjson.Scan(raw)
	if !s.Enter('{') {
		return e
	}
	for s.Member() {
		switch string(s.Key()) {
		case "index":
			e.readIndex(s.Skip().Of(raw))
		case "id":
			e.id, e.repeats = given(s.Skip().Of(raw)), true
		case "type":
			e.typ = given(s.Skip().Of(raw))
			e.repeats = e.repeats || e.typ == nil
		case "function":
			e.readFunction(&s)
		case "custom":
			custom := s.Skip().Of(raw)
			e.custom, e.name, e.args = true, given(rawjson.Get(custom, "name")), given(rawjson.Get(custom, "input"))
		default:
			s.Skip()
			e.hasExtraMember = true
		}
	}
	return e
}

func (e *entry) readIndex(raw []byte) {
	text := bytes.Trim(raw, `"`)
	n, err := strconv.Atoi(string(text))
	if err == nil && n >= 0 && n < maxUpstreamIndex {
		e.index, e.plainIndex = n, len(text) == len(raw)
	}
}

func (e *entry) readFunction(s *rawjson.Scanner) {
	start := s.Pos()
	if !s.Enter('{') {
		return
	}
	for s.Member() {
		switch string(s.Key()) {
		case "name":
			e.name, e.repeats = given(s.Skip().Of(e.raw)), true
		case "arguments":
			e.args = given(s.Skip().Of(e.raw))
		default:
			s.Skip()
			e.hasExtraMember = true
		}
	}
	e.function = rawjson.Span{Start: start, End: s.Pos()}
}

// given is the value, or nil if it says nothing.
func given(raw []byte) []byte {
	if string(raw) == "null" || string(raw) == `""` {
		return nil
	}
	return raw
}

// argText is the inner part of the arguments as a JSON string. Some upstreams send the object itself.
func (e *entry) argText() []byte {
	if len(e.args) > 0 && e.args[0] != '"' {
		return inner(rawjson.AppendString(nil, e.args))
	}
	return inner(e.args)
}

// inner is a raw string without its quotes.
func inner(raw []byte) []byte {
	if len(raw) < 2 {
		return nil
	}
	return raw[1 : len(raw)-1]
}

// add takes the tool_calls of a delta. Sound ones stay: the answer is false. Else what the client gets instead is appended to dst, as
// elements of an array without its brackets; nothing when all of it waits.
func (t *toolCalls) add(dst, array []byte) (elements []byte, changed bool) {
	from := len(dst)
	for span := range rawjson.Elements(array) {
		e := readEntry(span.Of(array))
		before := len(dst)
		if before > from {
			dst = append(dst, ',')
		}
		start := len(dst)
		var same bool
		if dst, same = t.entry(dst, &e); same {
			dst = append(dst, e.raw...)
		}
		if len(dst) == start {
			dst = dst[:before]
		}
		changed = changed || !same
	}
	return dst, changed
}

// entry appends the repaired entry, or nothing if it has to wait or holds nothing. Same says that it may go as it is.
func (t *toolCalls) entry(dst []byte, e *entry) (out []byte, same bool) {
	c := t.find(e)
	args := e.argText()
	if c.sent {
		c.args.feed(args)
		return c.appendMore(dst, e, args)
	}
	waited := c.id != nil || c.name != nil || c.held != nil || c.extra != nil
	c.learn(e)
	if c.name == nil || c.id == nil && len(args) == 0 && len(c.held) == 0 {
		c.held = append(c.held, args...)
		c.extra = e.appendExtra(c.extra)
		return dst, false
	}
	newID := c.id == nil || t.taken(c.id)
	t.send(c)
	c.args.feed(c.held)
	c.args.feed(args)
	isText := len(e.args) == 0 || e.args[0] == '"'
	if !waited && !newID && e.typ != nil && e.plainIndex && e.index == c.index && isText {
		return dst, true
	}
	if newID {
		c.id = newCallID()
	}
	c.held = append(c.held, args...)
	return c.appendFirst(dst, e), false
}

// send gives the call its place among those that the client knows.
func (t *toolCalls) send(c *toolCall) {
	c.index, c.sent = t.sent, true
	t.sent++
}

func (c *toolCall) learn(e *entry) {
	if c.id == nil {
		c.id = bytes.Clone(e.id)
	}
	if c.name == nil {
		c.name = bytes.Clone(e.name)
	}
	if c.typ == nil {
		c.typ = bytes.Clone(e.typ)
	}
	c.custom = c.custom || e.custom
}

// taken says whether a call that was sent has this id.
func (t *toolCalls) taken(id []byte) bool {
	return slices.ContainsFunc(t.list, func(c *toolCall) bool { return c.sent && bytes.Equal(c.id, id) })
}

// appendFirst appends the first delta of a call: everything that was held, with id, type and name.
func (c *toolCall) appendFirst(dst []byte, e *entry) []byte {
	dst = strconv.AppendInt(append(dst, `{"index":`...), int64(c.index), 10)
	dst = append(append(dst, `,"id":`...), c.id...)
	if c.custom {
		dst = append(dst, `,"type":"custom"`...)
		dst = append(dst, c.extra...)
		return append(appendOthers(dst, e.raw, "index", "id", "type"), '}')
	}
	typ := c.typ
	if typ == nil {
		typ = functionType
	}
	dst = append(append(dst, `,"type":`...), typ...)
	dst = append(append(dst, `,"function":{"name":`...), c.name...)
	dst = append(append(dst, `,"arguments":"`...), c.held...)
	dst = appendOthers(append(dst, '"'), e.function.Of(e.raw), "name", "arguments")
	dst = append(append(dst, '}'), c.extra...)
	return append(appendOthers(dst, e.raw, "index", "id", "type", "function"), '}')
}

var functionType = []byte(`"function"`)

// appendMore appends a delta that continues a call, without what only the first one may have (TOOL-04).
func (c *toolCall) appendMore(dst []byte, e *entry, args []byte) (out []byte, same bool) {
	isText := len(e.args) == 0 || e.args[0] == '"'
	if e.plainIndex && e.index == c.index && !e.repeats && isText {
		return dst, true
	}
	if len(args) == 0 && !e.hasExtraMember && !e.custom {
		return dst, false
	}
	dst = strconv.AppendInt(append(dst, `{"index":`...), int64(c.index), 10)
	if c.custom {
		return append(appendOthers(dst, e.raw, "index", "id", "type"), '}'), false
	}
	dst = append(append(dst, `,"function":{"arguments":"`...), args...)
	dst = appendOthers(append(dst, '"'), e.function.Of(e.raw), "name", "arguments")
	dst = appendOthers(append(dst, '}'), e.raw, "index", "id", "type", "function")
	return append(dst, '}'), false
}

// appendExtra appends the members of an entry that has to wait, so that nothing is lost.
func (e *entry) appendExtra(dst []byte) []byte {
	if !e.hasExtraMember {
		return dst
	}
	return appendOthers(dst, e.raw, "index", "id", "type", "function", "custom")
}

// appendOthers appends the members of an object except those named, each after a comma.
func appendOthers(dst, object []byte, except ...string) []byte {
	for m := range rawjson.Members(object) {
		if !slices.Contains(except, string(m.Name())) {
			dst = append(append(dst, ','), object[m.Key.Start:m.Value.End]...)
		}
	}
	return dst
}

// find gives the call that an entry belongs to, maybe a new one.
func (t *toolCalls) find(e *entry) *toolCall {
	var current *toolCall
	switch {
	case e.index >= 0:
		if e.index < len(t.where) {
			current = t.where[e.index]
		}
	case e.id != nil:
		current = t.withID(e.id)
	case len(t.list) > 0:
		current = t.list[len(t.list)-1]
	}
	if current == nil || current.endsBefore(e) {
		current = &toolCall{}
		t.list = append(t.list, current)
	}
	if e.index >= 0 {
		for e.index >= len(t.where) {
			t.where = append(t.where, nil)
		}
		t.where[e.index] = current
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
func (c *toolCall) endsBefore(e *entry) bool {
	otherID := e.id != nil && c.id != nil && !bytes.Equal(e.id, c.id)
	hasArgs := len(e.args) > 0
	switch {
	case otherID && e.name == nil:
		return !hasArgs || c.args.complete
	case otherID:
		return true
	case e.name == nil || c.name == nil:
		return false
	case !bytes.Equal(e.name, c.name):
		return true
	}
	return c.args.complete && hasArgs
}

// close appends what is missing at the end of the choice, as elements of an array without its brackets: empty arguments are an empty object
// (TOOL-07), and calls that waited for an id get one. It answers false if there are arguments without the name of a function.
func (t *toolCalls) close(dst []byte) (elements []byte, ok bool) {
	from := len(dst)
	for _, c := range t.list {
		switch {
		case c.sent && (c.custom || c.args.started):
			continue
		case c.name == nil && len(c.held) > 0:
			return dst[:from], false
		case c.name == nil: // announced, and nothing came of it
			continue
		}
		if len(dst) > from {
			dst = append(dst, ',')
		}
		c.args.started = true
		if c.sent {
			dst = strconv.AppendInt(append(dst, `{"index":`...), int64(c.index), 10)
			dst = append(dst, `,"function":{"arguments":"{}"}}`...)
			continue
		}
		if c.id == nil || t.taken(c.id) {
			c.id = newCallID()
		}
		t.send(c)
		if len(c.held) == 0 {
			c.held = append(c.held, "{}"...)
		}
		dst = c.appendFirst(dst, &entry{})
	}
	return dst, true
}

// newCallID is a raw id for a call to which the upstream gave none.
func newCallID() []byte { return rawjson.AppendString(nil, "call_"+strings.ToLower(rand.Text())) }
