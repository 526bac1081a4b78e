package stream

import (
	"crypto/rand"
	"strings"

	"github.com/tidwall/gjson"

	"hydrallm/shared/openai/rawjson"
)

// toolCalls repairs the tool-call deltas of one choice, so that a client can put the calls together by index: every call has an index of
// its own, id, type and name are on its first delta, and its arguments are never empty (bugs TOOL-01 to TOOL-07).
type toolCalls struct {
	list    []*toolCall
	byIndex map[int64]*toolCall // by the index that the upstream uses
}

// toolCall is one call while it is being streamed.
type toolCall struct {
	index     int // what the client sees
	id, name  string
	waiting   strings.Builder // arguments that came before the name
	sent      bool            // the client has the first delta
	arguments bool            // some arguments were sent
	complete  bool            // the arguments so far are one whole JSON value
	foreign   bool            // not a function call; passed on as it is
}

// add takes the tool_calls of a delta and gives what the client gets instead: the raw array, or "" when nothing is left of it.
func (t *toolCalls) add(calls gjson.Result) (raw string, repaired bool) {
	var out []string
	for _, c := range calls.Array() {
		text, fixed := t.entry(c)
		repaired = repaired || fixed
		if text != "" {
			out = append(out, text)
		}
	}
	if !repaired {
		return calls.Raw, false
	}
	if len(out) == 0 {
		return "", true
	}
	return "[" + strings.Join(out, ",") + "]", true
}

func (t *toolCalls) entry(c gjson.Result) (raw string, repaired bool) {
	call, begins := t.find(c)
	name, args := c.Get("function.name"), c.Get("function.arguments")
	if typ := c.Get("type"); typ.Type == gjson.String && typ.Str != "" && typ.Str != "function" {
		call.foreign = true
	}
	if begins && call.name == "" {
		call.name = name.Str
	}
	if call.foreign {
		call.sent, call.arguments = true, true
		return withIndex(c, call)
	}
	if !call.sent {
		return t.first(c, call, name, args)
	}
	call.note(args.Str)
	if continuation(c) && sameIndex(c, call) {
		return c.Raw, false
	}
	return `{"index":` + itoa(int64(call.index)) + `,"function":{"arguments":` + quote(args.String()) + `}}`, true
}

// first sends the first delta of a call, or waits until the name is known (TOOL-06).
func (t *toolCalls) first(c gjson.Result, call *toolCall, name, args gjson.Result) (raw string, repaired bool) {
	if id := c.Get("id").Str; id != "" {
		call.id = id
	}
	if name.Str != "" {
		call.name = name.Str
	}
	if call.name == "" {
		call.waiting.WriteString(args.Str)
		return "", true
	}
	call.sent = true
	whole := call.waiting.String() + args.Str
	call.note(whole)
	if sameIndex(c, call) && c.Get("id").Str != "" && name.Str != "" && c.Get("type").Str == "function" && args.Type == gjson.String && call.waiting.Len() == 0 {
		return c.Raw, false
	}
	return call.opening(whole), true
}

// opening is a first delta of our own.
func (c *toolCall) opening(args string) string {
	if c.id == "" {
		c.id = "call_" + strings.ToLower(rand.Text())
	}
	return `{"index":` + itoa(int64(c.index)) + `,"id":` + quote(c.id) + `,"type":"function","function":{"name":` + quote(c.name) +
		`,"arguments":` + quote(args) + `}}`
}

func (c *toolCall) note(args string) {
	if args != "" {
		c.arguments = true
		c.complete = !c.complete && gjson.Valid(args)
	}
}

// find gives the call that an entry belongs to. An entry begins a new call when it has an id of its own, or when its index is new.
func (t *toolCalls) find(c gjson.Result) (call *toolCall, begins bool) {
	id, index := c.Get("id").Str, c.Get("index")
	if index.Type != gjson.Number {
		for _, known := range t.list {
			if id != "" && known.id == id {
				return known, false
			}
		}
		if id == "" && c.Get("function.name").Str == "" && len(t.list) > 0 {
			return t.list[len(t.list)-1], false
		}
		return t.begin(id, int64(len(t.list))), true
	}
	current := t.byIndex[index.Int()]
	switch {
	case current == nil,
		id != "" && current.id != "" && current.id != id,                 // TOOL-03
		id == "" && current.complete && c.Get("function.name").Str != "": // as before, without ids
		return t.begin(id, index.Int()), true
	}
	if current.id == "" {
		current.id = id
	}
	return current, false
}

func (t *toolCalls) begin(id string, index int64) *toolCall {
	call := &toolCall{index: len(t.list), id: id}
	t.list = append(t.list, call)
	if t.byIndex == nil {
		t.byIndex = map[int64]*toolCall{}
	}
	t.byIndex[index] = call
	return call
}

// close gives the raw array of what is missing at the end: empty arguments are an empty object, and a call that never got a name goes out
// as it is (TOOL-07).
func (t *toolCalls) close() string {
	var out []string
	for _, c := range t.list {
		switch {
		case !c.sent:
			args := c.waiting.String()
			if args == "" {
				args = "{}"
			}
			out = append(out, c.opening(args))
		case !c.arguments:
			out = append(out, `{"index":`+itoa(int64(c.index))+`,"function":{"arguments":"{}"}}`)
		}
		c.sent, c.arguments = true, true
	}
	if out == nil {
		return ""
	}
	return "[" + strings.Join(out, ",") + "]"
}

func sameIndex(c gjson.Result, call *toolCall) bool {
	index := c.Get("index")
	return index.Type == gjson.Number && index.Int() == int64(call.index)
}

// continuation says that an entry holds nothing that belongs on a first delta, or holds it with sense.
func continuation(c gjson.Result) bool {
	sound := true
	c.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "id", "type":
			sound = sound && value.Type == gjson.String && value.Str != ""
		case "function":
			name := value.Get("name")
			sound = sound && (!name.Exists() || name.Type == gjson.String && name.Str != "")
		}
		return true
	})
	return sound
}

func withIndex(c gjson.Result, call *toolCall) (raw string, repaired bool) {
	if sameIndex(c, call) {
		return c.Raw, false
	}
	return string(rawjson.AppendSet(nil, []byte(c.Raw), "index", []byte(itoa(int64(call.index))))), true
}
