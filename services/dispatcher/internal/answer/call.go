package answer

import (
	"bytes"
	"slices"
	"strconv"

	"hydrallm/shared/openai/rawjson"
)

// Call is one element of tool_calls: a piece of a call in a delta, or a whole one in a message.
type Call struct {
	Raw []byte // the element as it came; nil for one that was made here

	Index      int  // -1 when missing or senseless
	PlainIndex bool // the index is written as a client expects it

	ID, Type, Name []byte // nil when absent, null or empty
	// Args are the arguments: a string, or another value that has to become one; nil when absent, null or empty. Those of a custom tool are its
	// input.
	Args    []byte
	Custom  bool   // a call of a custom tool, which has an input instead of arguments
	Tool    []byte // the object "function" or "custom" as it came
	Repeats bool   // has an id or a name, even an empty one, or an empty type
	Extra   bool   // has members that have no field here

	// Further members of a call that was made here and of its tool, each after a comma.
	Others, ToolOthers []byte
}

// maxCallIndex bounds the indexes of calls. One beyond it counts as missing.
const maxCallIndex = 1 << 10

// toolCalls reads the calls of a delta.
func (p *chunkScan) toolCalls(ch *Choice) {
	start, from := p.s.Pos(), len(p.calls)
	if p.s.Enter('[') {
		for p.s.Element() {
			begin := p.s.Pos()
			p.calls = append(p.calls, Call{Index: -1})
			c := &p.calls[len(p.calls)-1]
			p.call(c)
			c.Raw = p.since(begin)
		}
	}
	ch.ToolCalls, ch.Calls = p.since(start), p.calls[from:len(p.calls):len(p.calls)]
}

func (p *chunkScan) call(c *Call) {
	if !p.s.Enter('{') {
		return
	}
	for p.s.Member() {
		switch string(p.s.Key()) {
		case "index":
			c.readIndex(p.skip())
		case "id":
			c.ID, c.Repeats = Given(p.skip()), true
		case "type":
			c.Type = Given(p.skip())
			c.Repeats = c.Repeats || c.Type == nil
		case "function":
			p.function(c)
		case "custom":
			c.Custom, c.Tool = true, p.skip()
			c.Name, c.Args = Given(rawjson.Get(c.Tool, "name")), Given(rawjson.Get(c.Tool, "input"))
		default:
			p.s.Skip()
			c.Extra = true
		}
	}
}

func (c *Call) readIndex(raw []byte) {
	text := bytes.Trim(raw, `"`)
	n, err := strconv.Atoi(string(text))
	if err == nil && n >= 0 && n < maxCallIndex {
		c.Index, c.PlainIndex = n, len(text) == len(raw)
	}
}

func (p *chunkScan) function(c *Call) {
	start := p.s.Pos()
	if !p.s.Enter('{') {
		return
	}
	for p.s.Member() {
		switch string(p.s.Key()) {
		case "name":
			c.Name, c.Repeats = Given(p.skip()), true
		case "arguments":
			c.Args = Given(p.skip())
		default:
			p.s.Skip()
			c.Extra = true
		}
	}
	c.Tool = p.since(start)
}

// Given is the value, or nil if it says nothing.
func Given(raw []byte) []byte {
	if len(raw) == 0 || string(raw) == "null" || string(raw) == `""` {
		return nil
	}
	return raw
}

// ArgText is the inner part of the arguments as a JSON string. Some upstreams send the object itself.
func (c *Call) ArgText() []byte {
	if len(c.Args) > 0 && c.Args[0] != '"' {
		return Inner(rawjson.AppendString(nil, c.Args))
	}
	return Inner(c.Args)
}

// Inner is a raw string without its quotes; nil for anything else.
func Inner(raw []byte) []byte {
	if !IsText(raw) {
		return nil
	}
	return raw[1 : len(raw)-1]
}

// IsText says whether a raw value is a string.
func IsText(raw []byte) bool { return len(raw) > 1 && raw[0] == '"' }

// Quoted makes a raw string of its inner part, which may come in pieces.
func Quoted(inner ...[]byte) []byte {
	n := 2
	for _, piece := range inner {
		n += len(piece)
	}
	out := append(make([]byte, 0, n), '"')
	for _, piece := range inner {
		out = append(out, piece...)
	}
	return append(out, '"')
}

// More gives the members of a call that have no field here, each after a comma: those of the call, and those of its tool.
func (c *Call) More() (others, tool []byte) {
	if c.Raw == nil {
		return c.Others, c.ToolOthers
	}
	if c.Extra || c.Custom {
		others = AppendOthers(nil, c.Raw, "index", "id", "type", "function", "custom")
		tool = AppendOthers(nil, c.Tool, "name", "arguments", "input")
	}
	return others, tool
}

// AppendOthers appends the members of an object except those named, each after a comma.
func AppendOthers(dst, object []byte, except ...string) []byte {
	for m := range rawjson.Members(object) {
		if !slices.Contains(except, string(m.Name())) {
			dst = append(append(dst, ','), object[m.Key.Start:m.Value.End]...)
		}
	}
	return dst
}
