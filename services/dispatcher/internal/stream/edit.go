package stream

import (
	"github.com/tidwall/gjson"

	"hydrallm/shared/openai/rawjson"
)

// editor repairs one chunk. It collects the choices as they shall be; the chunk is only rewritten when something has to change.
type editor struct {
	filter   *Filter
	chunk    chunk
	before   []byte   // events that must come before the chunk
	choices  [][]byte // raw choices to keep
	changed  bool
	decisive bool
	dropped  bool // nothing of the chunk is left
}

func (ed *editor) run() {
	for _, raw := range ed.chunk.choices.Array() {
		ed.choice(raw)
	}
	if len(ed.choices) > 0 {
		return
	}
	if ed.chunk.usage.IsObject() && ed.filter.opts.IncludeUsage {
		ed.filter.usageOnly = nil // the usage goes out at the end, in a chunk of its own
	}
	ed.dropped = true
}

// result is the chunk with the repaired choices.
func (ed *editor) result(data []byte) []byte {
	if ed.changed {
		list := []byte{'['}
		for i, c := range ed.choices {
			if i > 0 {
				list = append(list, ',')
			}
			list = append(list, c...)
		}
		data = rawjson.AppendSet(nil, data, "choices", append(list, ']'))
	}
	return withoutError(data, ed.chunk)
}

// part is what one choice of a chunk holds.
type part struct {
	delta, finish                                     gjson.Result
	role, content, reasoning, alternate, tools, other gjson.Result
}

func readPart(raw gjson.Result) (p part, index int64) {
	raw.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "index":
			index = value.Int()
		case "delta":
			p.delta = value
		case "finish_reason":
			p.finish = value
		}
		return true
	})
	p.delta.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "role":
			p.role = value
		case "content":
			p.content = value
		case "reasoning_content":
			p.reasoning = value
		case "reasoning":
			p.alternate = value
		case "tool_calls":
			p.tools = value
		default:
			if filled(value) {
				p.other = value
			}
		}
		return true
	})
	return p, index
}

// filled says whether a member of a delta holds anything: text, a list, an object.
func filled(v gjson.Result) bool {
	switch v.Type {
	case gjson.String:
		return v.Str != ""
	case gjson.JSON:
		return v.Raw != "[]" && v.Raw != "{}"
	}
	return v.Type == gjson.Number || v.Type == gjson.True
}

func (p part) decisive() bool {
	return filled(p.content) || filled(p.reasoning) || filled(p.alternate) || filled(p.tools) || filled(p.other) || filled(p.finish)
}

func (ed *editor) choice(raw gjson.Result) {
	p, index := readPart(raw)
	c := ed.filter.choice(index)
	ed.decisive = ed.decisive || p.decisive()
	if c.finished { // nothing may follow the finish reason (STR-09)
		ed.changed = true
		return
	}
	out, changed := []byte(raw.Raw), false
	delta, deltaChanged := ed.delta(c, p)
	if deltaChanged {
		out, changed = rawjson.AppendSet(nil, out, "delta", delta), true
	}
	switch {
	case p.finish.Type == gjson.String && p.finish.Str == "":
		out, changed = rawjson.AppendSet(nil, out, "finish_reason", []byte("null")), true
	case p.finish.Type == gjson.String:
		ed.before = ed.filter.close(ed.before, c)
		c.finished = true
		if reason := c.reason(p.finish.Str); reason != p.finish.Str {
			out, changed = rawjson.AppendSet(nil, out, "finish_reason", []byte(quote(reason))), true
		}
	case deltaChanged && string(delta) == "{}" && !ed.chunk.usage.IsObject():
		ed.changed = true // nothing is left of it
		return
	}
	ed.changed = ed.changed || changed
	ed.choices = append(ed.choices, out)
}

// delta gives the delta as it shall be.
func (ed *editor) delta(c *choice, p part) (delta []byte, changed bool) {
	delta = []byte(p.delta.Raw)
	if p.tools.IsArray() {
		if calls, repaired := c.tools.add(p.tools); repaired {
			changed = true
			if calls == "" {
				delta = rawjson.AppendDelete(nil, delta, "tool_calls")
			} else {
				delta = rawjson.AppendSet(nil, delta, "tool_calls", []byte(calls))
			}
		}
	}
	if ed.filter.opts.Think == ThinkOff {
		return delta, changed
	}
	thought, rewritten := ed.think(c, p, delta)
	return thought, changed || rewritten
}

// think moves or removes the think blocks of a delta and leaves one reasoning field (R-220, R-228, THK-10).
func (ed *editor) think(c *choice, p part, delta []byte) ([]byte, bool) {
	reasoning := p.reasoning.String()
	if p.reasoning.Type != gjson.String {
		reasoning = ""
	}
	changed := false
	if p.alternate.Type == gjson.String {
		if reasoning == "" {
			reasoning = p.alternate.Str
		}
		delta, changed = rawjson.AppendDelete(nil, delta, "reasoning"), true
	}
	if p.content.Type == gjson.String && p.content.Str != "" {
		content, thought := c.think.feed(p.content.Str)
		if content != p.content.Str {
			changed = true
			delta = setText(delta, "content", content, p.role.Exists())
		}
		if ed.filter.opts.Think == ThinkSplit {
			reasoning += thought
			changed = changed || thought != ""
		}
	}
	empty := p.reasoning.Exists() && reasoning == ""
	if !changed && !empty {
		return delta, false
	}
	return setText(delta, "reasoning_content", reasoning, false), true
}

// setText sets a text member, or deletes it when it is empty and need not stay.
func setText(object []byte, name, text string, keep bool) []byte {
	if text == "" && !keep {
		return rawjson.AppendDelete(nil, object, name)
	}
	return rawjson.AppendSet(nil, object, name, []byte(quote(text)))
}
