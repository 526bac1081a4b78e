package anthropic

import (
	"bytes"
	"crypto/rand"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

const (
	maxThought = 4 << 20   // thinking that is kept for its signature; of more, the client gets the text but can't send it back
	keepBuffer = 256 << 10 // larger buffers are given up
)

// Events translates an event stream: one event in gives none, one or a few out, before the next is read. Pings become comments. A stream
// that breaks off, or reports an error, ends without [DONE], and without a finish reason unless that had come.
func (Translator) Events(r io.Reader) io.Reader {
	return &events{src: openai.NewReader(r, 0)}
}

// block kinds that make a difference in a stream.
type kind uint8

const (
	noBlock kind = iota
	thinkingBlock
	toolBlock
	otherBlock
)

// events is a stream under translation. Raw values are those of JSON.
type events struct {
	src  *openai.Reader
	err  error  // what comes after out; final
	out  []byte // events that were made of the last one
	rest []byte // of out, still to be given

	head     []byte // what all chunks begin with; nil before the first
	spoke    bool   // anything of an answer was given
	finished bool   // a finish reason was given
	usage    usage

	block     kind   // that is open
	calls     int    // tool blocks so far
	argued    bool   // arguments of the open call came
	input     []byte // of the open call, if its start stated more than an empty object
	thought   []byte // of the open block, inner part of a string
	signature []byte // raw
	details   int    // entries of reasoning_details so far
}

// Read gives the next bytes of the translation.
func (s *events) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		if len(p) == 0 {
			return 0, nil
		}
		s.next()
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// next reads one event and translates it.
func (s *events) next() {
	if cap(s.out) > keepBuffer {
		s.out = nil
	}
	s.out = s.out[:0]
	e, err := s.src.Next()
	switch {
	case err != nil:
		s.err = err
	case e.Data != nil:
		s.event(&e)
	case bytes.HasPrefix(bytes.TrimLeft(e.Raw, "\r\n"), []byte{':'}): // half a line end may come before it
		s.comment()
	}
	s.rest = s.out
}

// wire is one native event, by its members.
type wire struct {
	kind, message, block, delta, usage, err []byte
}

// parse reads the data of an event. It answers whether they are a JSON object.
func (w *wire) parse(data []byte) bool {
	*w = wire{}
	s := rawjson.Scan(data)
	if !s.Enter('{') {
		return false
	}
	for s.Member() {
		switch string(s.Key()) {
		case "type":
			w.kind = inner(s.Skip().Of(data))
		case "message":
			w.message = s.Skip().Of(data)
		case "content_block":
			w.block = s.Skip().Of(data)
		case "delta":
			w.delta = s.Skip().Of(data)
		case "usage":
			w.usage = s.Skip().Of(data)
		case "error":
			w.err = s.Skip().Of(data)
		default:
			s.Skip()
		}
	}
	return s.End()
}

func (s *events) event(e *openai.Event) {
	data := e.Data
	if !utf8.Valid(data) {
		data = bytes.ToValidUTF8(data, []byte("\ufffd"))
	}
	var w wire
	valid := w.parse(data)
	switch {
	case valid && (string(w.kind) == "error" || len(w.err) > 0 && w.err[0] != 'n'):
		s.out = openai.AppendData(s.out, data)
		s.err = io.EOF
		return
	case string(e.Name) == "error": // in a form that only its name tells from another event
		s.out = openai.AppendData(append(s.out, "event: error\n"...), data)
		s.err = io.EOF
		return
	case !valid:
		if !e.Cut && !openai.IsDone(data) && len(bytes.TrimSpace(data)) > 0 {
			s.out = openai.AppendData(s.out, data) // for the next reader to judge
		}
		return // half an event is the end of a stream that broke off
	}
	if w.kind == nil {
		w.kind = e.Name
	}
	switch string(w.kind) {
	case "ping":
		s.comment()
	case "message_start":
		s.usage.take(rawjson.Get(w.message, "usage"))
		s.begin(w.message)
	case "content_block_start":
		s.startBlock(w.block)
	case "content_block_delta":
		s.delta(w.delta)
	case "content_block_stop":
		s.endBlock()
	case "message_delta":
		s.usage.take(w.usage)
		if stop := rawjson.Get(w.delta, "stop_reason"); isString(stop) {
			s.finish(stop)
		}
	case "message_stop":
		s.end()
	}
}

func (s *events) comment() { s.out = append(s.out, ": ping\n\n"...) }

// begin gives the chunk with the role, which all others follow.
func (s *events) begin(message []byte) {
	if s.head != nil {
		return
	}
	id := rawjson.Get(message, "id")
	if len(inner(id)) == 0 {
		id = quote("chatcmpl-" + strings.ToLower(rand.Text()))
	}
	model := stringOr(rawjson.Get(message, "model"))
	s.head = append(append(s.head, `data: {"id":`...), id...)
	s.head = append(append(s.head, `,"object":"chat.completion.chunk","created":`...), created()...)
	s.head = append(append(append(s.head, `,"model":`...), model...), `,"choices":[`...)
	s.open()
	s.out = append(s.out, `"role":"assistant","content":""`...)
	s.close("null")
}

// open begins a chunk, up to the members of its delta.
func (s *events) open() {
	s.begin(nil)
	s.out = append(append(s.out, s.head...), `{"index":0,"delta":{`...)
}

// close ends a chunk with its finish reason.
func (s *events) close(finish string) {
	s.out = append(append(append(s.out, `},"finish_reason":`...), finish...), "}]}\n\n"...)
}

// member gives a chunk whose delta has one member.
func (s *events) member(name string, value []byte) {
	s.open()
	s.spoke = true
	s.out = append(append(append(s.out, '"'), name...), `":`...)
	s.out = append(s.out, value...)
	s.close("null")
}

// content gives a chunk with a text, unless there is none in it or the answer is over.
func (s *events) content(name string, raw []byte) {
	if len(inner(raw)) > 0 && !s.finished {
		s.member(name, raw)
	}
}

func (s *events) startBlock(b []byte) {
	s.endBlock()
	if s.block = otherBlock; s.finished {
		return
	}
	switch string(inner(rawjson.Get(b, "type"))) {
	case "text":
		s.content("content", rawjson.Get(b, "text"))
	case "thinking":
		s.block = thinkingBlock
		s.signature = append(s.signature, rawjson.Get(b, "signature")...)
		s.think(rawjson.Get(b, "thinking"))
	case "redacted_thinking":
		s.detail(hiddenDetail(s.details, rawjson.Get(b, "data")))
	case "tool_use":
		s.block = toolBlock
		if input := rawjson.Get(b, "input"); len(input) > len("{}") {
			s.input = append(s.input, input...)
		}
		s.openCall(s.calls)
		s.out = append(append(s.out, `,"id":`...), stringOr(rawjson.Get(b, "id"))...)
		s.out = append(append(s.out, `,"type":"function","function":{"name":`...), stringOr(rawjson.Get(b, "name"))...)
		s.out = append(s.out, `,"arguments":""}}]`...)
		s.close("null")
		s.calls++
	}
}

// openCall begins a chunk with a piece of a call. Calls are counted from 0, other blocks left out.
func (s *events) openCall(index int) {
	s.open()
	s.spoke = true
	s.out = strconv.AppendInt(append(s.out, `"tool_calls":[{"index":`...), int64(index), 10)
}

// arguments gives a chunk with more arguments of the call that is open.
func (s *events) arguments(raw []byte) {
	s.openCall(s.calls - 1)
	s.out = append(append(append(s.out, `,"function":{"arguments":`...), raw...), `}}]`...)
	s.close("null")
	s.argued = true
}

func (s *events) delta(d []byte) {
	switch string(inner(rawjson.Get(d, "type"))) {
	case "text_delta":
		s.content("content", rawjson.Get(d, "text"))
	case "thinking_delta":
		s.think(rawjson.Get(d, "thinking"))
	case "signature_delta":
		s.signature = append(s.signature[:0], rawjson.Get(d, "signature")...)
	case "input_json_delta":
		if partial := rawjson.Get(d, "partial_json"); len(inner(partial)) > 0 && s.block == toolBlock {
			s.arguments(partial)
		}
	}
}

// think gives a chunk with thinking and keeps the text for its signature.
func (s *events) think(raw []byte) {
	s.content("reasoning_content", raw)
	if len(s.thought) <= maxThought {
		s.thought = append(s.thought, inner(raw)...)
	}
}

// detail gives a chunk with an entry of reasoning_details, if there is one.
func (s *events) detail(entry []byte) {
	if entry != nil && !s.finished {
		s.member("reasoning_details", array([][]byte{entry}))
		s.details++
	}
}

// endBlock gives what is known of a block only at its end.
func (s *events) endBlock() {
	switch s.block {
	case toolBlock:
		if !s.argued {
			s.arguments(arguments(s.input))
		}
	case thinkingBlock:
		if len(s.thought) <= maxThought {
			s.detail(detail(s.details, quoted(s.thought), s.signature))
		}
	case noBlock, otherBlock:
	}
	if cap(s.thought) > keepBuffer {
		s.thought = nil
	}
	s.block, s.argued, s.input = noBlock, false, nil
	s.thought, s.signature = s.thought[:0], s.signature[:0]
}

// finish gives the chunk with the finish reason, once.
func (s *events) finish(stop []byte) {
	s.endBlock()
	if s.finished {
		return
	}
	s.open()
	s.close(finishReason(stop, s.calls > 0))
	s.finished = true
}

// end gives the end of a whole stream: the usage and [DONE]. A message that neither says anything nor states why is none.
func (s *events) end() {
	s.err = io.EOF
	s.endBlock()
	if !s.spoke && !s.finished {
		return
	}
	s.finish(nil)
	if s.usage.known() {
		s.out = append(append(s.out, s.head...), `],"usage":`...)
		s.out = append(s.usage.appendTo(s.out), "}\n\n"...)
	}
	s.out = append(s.out, openai.Done...)
}
