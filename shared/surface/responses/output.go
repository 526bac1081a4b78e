package responses

import (
	"bytes"
	"strconv"

	"hydrallm/shared/openai/rawjson"
)

// output is what has come of the items of a response, put together from its events.
type output struct{ items []*outputItem }

// outputItem is an item. Texts are inner parts of JSON strings.
type outputItem struct {
	raw   []byte // as it was announced, or is when it is done
	done  bool
	parts []*outputPart // of a thought or a message
	args  []byte        // of a call
}

type outputPart struct {
	raw  []byte // as it was announced
	text []byte
}

// maxOutput bounds the indexes of items and parts.
const maxOutput = 4096

// take takes in an event about an item; others say nothing.
func (o *output) take(kind string, event []byte) {
	it := o.at(event)
	if it == nil {
		return
	}
	switch kind {
	case "response.output_item.added":
		it.raw = bytes.Clone(rawjson.Get(event, "item"))
	case "response.output_item.done":
		*it = outputItem{raw: bytes.Clone(rawjson.Get(event, "item")), done: true}
	case "response.content_part.added", "response.reasoning_summary_part.added":
		if p := it.part(event); p != nil {
			p.raw = bytes.Clone(rawjson.Get(event, "part"))
		}
	case "response.output_text.delta", "response.refusal.delta", "response.reasoning_summary_text.delta":
		if p := it.part(event); p != nil {
			p.text = append(p.text, innerOf(rawjson.Get(event, "delta"))...)
		}
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		it.args = append(it.args, innerOf(rawjson.Get(event, "delta"))...)
	}
}

// at gives the item that an event is about, or nil.
func (o *output) at(event []byte) *outputItem {
	i, ok := indexOf(event, "output_index")
	if !ok {
		return nil
	}
	for len(o.items) <= i {
		o.items = append(o.items, &outputItem{})
	}
	return o.items[i]
}

// part gives the part that an event is about, or nil.
func (it *outputItem) part(event []byte) *outputPart {
	i, ok := indexOf(event, "content_index")
	if !ok {
		if i, ok = indexOf(event, "summary_index"); !ok {
			return nil
		}
	}
	for len(it.parts) <= i {
		it.parts = append(it.parts, &outputPart{})
	}
	return it.parts[i]
}

func indexOf(event []byte, name string) (int, bool) {
	n, err := strconv.Atoi(string(rawjson.Get(event, name)))
	return n, err == nil && n >= 0 && n < maxOutput
}

// innerOf is what stands between the quotes of a JSON string.
func innerOf(raw []byte) []byte {
	if len(raw) < 2 || raw[0] != '"' {
		return nil
	}
	return raw[1 : len(raw)-1]
}

func quoted(inner []byte) []byte { return append(append([]byte{'"'}, inner...), '"') }

// json gives the items as they are now. Those that are not done are incomplete.
func (o *output) json() []byte {
	var list [][]byte
	for _, it := range o.items {
		if len(it.raw) > 0 && it.raw[0] == '{' {
			list = append(list, it.json())
		}
	}
	return appendArray(nil, list)
}

func (it *outputItem) json() []byte {
	if it.done {
		return it.raw
	}
	parts := make([][]byte, 0, len(it.parts))
	for _, p := range it.parts {
		if len(p.raw) > 0 && p.raw[0] == '{' {
			parts = append(parts, p.json())
		}
	}
	switch rawjson.Text(rawjson.Get(it.raw, "type")) {
	case "message":
		return rawjson.AppendSet(nil, setStatus(it.raw, statusIncomplete), "content", appendArray(nil, parts))
	case "reasoning":
		return rawjson.AppendSet(nil, it.raw, "summary", appendArray(nil, parts))
	case "function_call":
		return rawjson.AppendSet(nil, setStatus(it.raw, statusIncomplete), "arguments", quoted(it.args))
	case "custom_tool_call":
		return rawjson.AppendSet(nil, setStatus(it.raw, statusIncomplete), "input", quoted(it.args))
	}
	return it.raw
}

func (p *outputPart) json() []byte {
	name := "text"
	if rawjson.Is(rawjson.Get(p.raw, "type"), "refusal") {
		name = "refusal"
	}
	return rawjson.AppendSet(nil, p.raw, name, quoted(p.text))
}
