package responses

import (
	"bytes"
	"strconv"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/shared/openai/rawjson"
	"hydrallm/shared/surface/responses"
)

// item is one item of the output. Texts are inner parts of JSON strings.
type item struct {
	kind   kind
	index  int
	id     string
	closed bool
	status string

	parts []part // of a thought or a message

	// Of a call.
	callID []byte // raw
	tool   responses.Tool
	args   []byte // arguments, or the input of a custom tool once it is closed
	asText bool   // args of an open call of a custom tool are its input, and no JSON
}

type kind uint8

const (
	kindThought kind = iota
	kindMessage
	kindCall
)

// part is a part of an item.
type part struct {
	kind     partKind
	text     []byte
	logprobs []byte // elements
}

type partKind uint8

const (
	partSummary partKind = iota
	partText
	partRefusal
)

// add begins an item.
func (a *Answer) add(k kind, prefix string) *item {
	it := &item{kind: k, index: len(a.items), status: statusInProgress}
	it.id = prefix + a.request.envelope.ID + "_" + strconv.Itoa(it.index)
	a.items = append(a.items, it)
	return it
}

// turnTo makes the open item one of the kind: it goes on, or another one begins.
func (a *Answer) turnTo(dst []byte, k kind, prefix string) ([]byte, *item) {
	if a.open != nil && a.open.kind == k {
		return dst, a.open
	}
	dst = a.closeOpen(dst)
	a.open = a.add(k, prefix)
	return a.announce(dst, a.open), a.open
}

func (a *Answer) closeOpen(dst []byte) []byte {
	if a.open != nil {
		dst = a.closeItem(dst, a.open)
		a.open = nil
	}
	return dst
}

func (a *Answer) announce(dst []byte, it *item) []byte {
	if a.silent {
		return dst
	}
	dst = a.event(dst, "response.output_item.added", it)
	return append(a.appendItem(append(dst, `,"item":`...), it), eventEnd...)
}

// think takes a piece of the thoughts. They are a summary, which all clients show.
func (a *Answer) think(dst, text []byte) []byte {
	dst, it := a.turnTo(dst, kindThought, "rs_")
	if len(it.parts) == 0 {
		dst = a.addPart(dst, it, partSummary)
	}
	p := &it.parts[0]
	p.text = append(p.text, text...)
	return a.delta(dst, it, "response.reasoning_summary_text.delta", text, nil)
}

// say takes a piece of the text, or of a refusal.
func (a *Answer) say(dst []byte, k partKind, text, logprobs []byte) []byte {
	dst, it := a.turnTo(dst, kindMessage, "msg_")
	if n := len(it.parts); n == 0 || it.parts[n-1].kind != k {
		dst = a.addPart(a.closePart(dst, it), it, k)
	}
	p := &it.parts[len(it.parts)-1]
	p.text = append(p.text, text...)
	if k == partRefusal {
		return a.delta(dst, it, "response.refusal.delta", text, nil)
	}
	probs := elements(rawjson.Get(logprobs, "content"))
	if len(probs) > 0 {
		if len(p.logprobs) > 0 {
			p.logprobs = append(p.logprobs, ',')
		}
		p.logprobs = append(p.logprobs, probs...)
	}
	return a.delta(dst, it, "response.output_text.delta", text, probs)
}

// elements is what stands between the brackets of an array.
func elements(array []byte) []byte {
	if len(array) < 2 || array[0] != '[' {
		return nil
	}
	return bytes.TrimSpace(array[1 : len(array)-1])
}

// delta appends an event with a piece of a text.
func (a *Answer) delta(dst []byte, it *item, kind string, text, logprobs []byte) []byte {
	if a.silent {
		return dst
	}
	dst = a.where(a.event(dst, kind, it), it)
	dst = append(append(append(dst, `,"delta":"`...), text...), '"')
	if kind == "response.output_text.delta" {
		dst = appendOneLine(append(dst, `,"logprobs":[`...), logprobs)
		dst = append(dst, ']')
	}
	return append(dst, eventEnd...)
}

// appendOneLine appends raw JSON without line ends.
func appendOneLine(dst, raw []byte) []byte {
	for _, c := range raw {
		if c == '\n' || c == '\r' {
			c = ' '
		}
		dst = append(dst, c)
	}
	return dst
}

// where appends the members that say what an event is about.
func (a *Answer) where(dst []byte, it *item) []byte {
	dst = append(append(append(dst, `,"item_id":"`...), it.id...), '"')
	if len(it.parts) == 0 {
		return dst
	}
	name := `,"content_index":`
	if it.kind == kindThought {
		name = `,"summary_index":`
	}
	return strconv.AppendInt(append(dst, name...), int64(len(it.parts)-1), 10)
}

// addPart begins a part.
func (a *Answer) addPart(dst []byte, it *item, k partKind) []byte {
	it.parts = append(it.parts, part{kind: k})
	return a.tellPart(dst, it, "added")
}

func (a *Answer) tellPart(dst []byte, it *item, what string) []byte {
	if a.silent {
		return dst
	}
	kind := "response.content_part."
	if it.kind == kindThought {
		kind = "response.reasoning_summary_part."
	}
	dst = a.where(a.event(dst, kind+what, it), it)
	return append(appendPart(append(dst, `,"part":`...), &it.parts[len(it.parts)-1]), eventEnd...)
}

func appendPart(dst []byte, p *part) []byte {
	switch p.kind {
	case partSummary:
		return append(append(append(dst, `{"type":"summary_text","text":"`...), p.text...), `"}`...)
	case partRefusal:
		return append(append(append(dst, `{"type":"refusal","refusal":"`...), p.text...), `"}`...)
	case partText:
	}
	dst = append(append(dst, `{"type":"output_text","text":"`...), p.text...)
	dst = appendOneLine(append(dst, `","annotations":[],"logprobs":[`...), p.logprobs)
	return append(dst, "]}"...)
}

// closePart ends the last part.
func (a *Answer) closePart(dst []byte, it *item) []byte {
	if a.silent || len(it.parts) == 0 {
		return dst
	}
	p := &it.parts[len(it.parts)-1]
	kind, name := "response.output_text.done", `,"text":"`
	switch p.kind {
	case partSummary:
		kind = "response.reasoning_summary_text.done"
	case partRefusal:
		kind, name = "response.refusal.done", `,"refusal":"`
	case partText:
	}
	dst = a.where(a.event(dst, kind, it), it)
	dst = append(append(append(dst, name...), p.text...), '"')
	if p.kind == partText {
		dst = append(appendOneLine(append(dst, `,"logprobs":[`...), p.logprobs), ']')
	}
	return a.tellPart(append(dst, eventEnd...), it, "done")
}

// closeItem ends an item. A call that is not whole, in a response that is incomplete, stays open.
func (a *Answer) closeItem(dst []byte, it *item) []byte {
	if it.closed {
		return dst
	}
	cut := a.status == statusIncomplete
	if cut && it.kind == kindCall && !it.whole() {
		it.status = statusIncomplete
		return dst
	}
	it.status = statusCompleted
	if it.kind == kindCall {
		dst = a.closeCall(dst, it)
	} else {
		if cut && it.index == len(a.items)-1 {
			it.status = statusIncomplete
		}
		dst = a.closePart(dst, it)
	}
	it.closed = true
	if a.silent {
		return dst
	}
	dst = a.event(dst, "response.output_item.done", it)
	return append(a.appendItem(append(dst, `,"item":`...), it), eventEnd...)
}

// call takes a piece of a call, or a whole one.
func (a *Answer) call(dst []byte, n int, c *answer.Call) []byte {
	for len(a.calls) <= n {
		a.calls = append(a.calls, nil)
	}
	it := a.calls[n]
	if it == nil {
		dst = a.closeOpen(dst)
		for _, before := range a.calls {
			if before != nil && before.whole() {
				dst = a.closeItem(dst, before)
			}
		}
		it = a.beginCall(c)
		a.calls[n] = it
		dst = a.announce(dst, it)
	}
	text := c.ArgText()
	if len(text) == 0 || it.closed {
		return dst
	}
	it.args = append(it.args, text...)
	if it.tool.Custom { // what it is can be read when all is there
		return dst
	}
	return a.delta(dst, it, "response.function_call_arguments.delta", text, nil)
}

func (a *Answer) beginCall(c *answer.Call) *item {
	name := rawjson.Text(c.Name)
	tool, known := a.request.Tools.Find(name)
	if !known {
		tool = responses.Tool{Name: name, Custom: c.Custom}
	}
	prefix := "fc_"
	if tool.Custom {
		prefix = "ctc_"
	}
	it := a.add(kindCall, prefix)
	it.tool, it.callID, it.asText = tool, bytes.Clone(c.ID), c.Custom
	if it.callID == nil {
		it.callID = rawjson.AppendString(nil, "call_"+it.id)
	}
	return it
}

// whole says whether nothing of a call can follow.
func (it *item) whole() bool { return it.closed || rawjson.Valid(rawjson.AppendText(nil, it.args)) }

// closeCall ends the arguments of a call, or tells the input of a custom tool.
func (a *Answer) closeCall(dst []byte, it *item) []byte {
	if !it.tool.Custom {
		if len(bytes.TrimSpace(it.args)) == 0 { // clients read them as JSON
			it.args = []byte("{}")
			dst = a.delta(dst, it, "response.function_call_arguments.delta", it.args, nil)
		}
		return a.tellArgs(dst, it, "response.function_call_arguments.done", `,"arguments":"`)
	}
	if !it.asText {
		it.args = inputOf(it.args)
	}
	dst = a.delta(dst, it, "response.custom_tool_call_input.delta", it.args, nil)
	return a.tellArgs(dst, it, "response.custom_tool_call_input.done", `,"input":"`)
}

func (a *Answer) tellArgs(dst []byte, it *item, kind, name string) []byte {
	if a.silent {
		return dst
	}
	dst = a.where(a.event(dst, kind, it), it)
	if !it.tool.Custom {
		dst = rawjson.AppendString(append(dst, `,"name":`...), it.tool.Name)
	}
	return append(append(append(append(dst, name...), it.args...), '"'), eventEnd...)
}

// inputOf takes the input of a custom tool out of the arguments of the function that stands for it. Models that put the text itself there are understood.
func inputOf(args []byte) []byte {
	object := rawjson.AppendText(nil, args)
	if !rawjson.Valid(object) {
		return args
	}
	input := rawjson.Get(object, "input")
	switch {
	case input == nil:
		return args
	case input[0] != '"':
		return answer.Inner(rawjson.AppendString(nil, input))
	}
	return answer.Inner(input)
}

// appendItem appends an item as it is now.
func (a *Answer) appendItem(dst []byte, it *item) []byte {
	dst = append(append(append(dst, `{"id":"`...), it.id...), `","type":"`...)
	switch it.kind {
	case kindThought:
		dst = it.appendParts(append(dst, `reasoning","summary":`...))
		if a.request.Encrypted {
			dst = append(dst, `,"encrypted_content":null`...)
		}
		return append(dst, '}')
	case kindMessage:
		dst = append(append(append(dst, `message","status":"`...), it.status...), `","role":"assistant","content":`...)
		return append(it.appendParts(dst), '}')
	case kindCall:
	}
	typ, args := `function_call`, `,"arguments":"`
	if it.tool.Custom {
		typ, args = `custom_tool_call`, `,"input":"`
	}
	dst = append(append(append(append(dst, typ...), `","status":"`...), it.status...), `","call_id":`...)
	dst = append(append(dst, it.callID...), `,"name":`...)
	dst = rawjson.AppendString(dst, it.tool.Name)
	if it.tool.Space != "" {
		dst = rawjson.AppendString(append(dst, `,"namespace":`...), it.tool.Space)
	}
	dst = append(dst, args...)
	if !it.tool.Custom || it.closed {
		dst = append(dst, it.args...)
	}
	return append(dst, `"}`...)
}

// appendParts appends the parts. Those of an item that is just announced are not there yet.
func (it *item) appendParts(dst []byte) []byte {
	dst = append(dst, '[')
	for i := range it.parts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendPart(dst, &it.parts[i])
	}
	return append(dst, ']')
}
