package anthropic

import (
	"bytes"
	"crypto/rand"
	"strings"
	"unicode/utf8"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

const (
	maxThought = 4 << 20   // thinking that is kept for its signature; of more, the client gets the text but can't send it back
	keepBuffer = 256 << 10 // larger buffers are given up
)

// Events begins the translation of an event stream: one event gives none, one or a few chunks. Pings become comments. A stream that breaks off,
// or reports an error, is never said to be done, and has no finish reason unless that had come.
func (Translator) Events() answer.Translator { return &events{} }

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
	out *answer.Queue // of the event at hand

	head     answer.Head
	begun    bool // the chunk with the role was given
	spoke    bool // anything of an answer was given
	finished bool // a finish reason was given, and nothing behind it
	usage    usage
	told     usage // that the client knows

	block     kind   // that is open
	calls     int    // tool blocks so far
	argued    bool   // arguments of the open call came
	input     []byte // of the open call, if its start stated more than an empty object
	thought   []byte // of the open block, inner part of a string
	signature []byte // raw
	details   int    // entries of reasoning_details so far
}

// Event translates one event.
func (s *events) Event(out *answer.Queue, e *openai.Event) (more bool) {
	s.out = out
	switch {
	case e.Data != nil:
		return s.event(e)
	case bytes.HasPrefix(bytes.TrimLeft(e.Raw, "\r\n"), []byte{':'}): // half a line end may come before it
		out.Ping()
	}
	return true
}

// End has nothing to add: a stream without its last event broke off.
func (*events) End(*answer.Queue) {}

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

func (s *events) event(e *openai.Event) (more bool) {
	data := e.Data
	if !utf8.Valid(data) {
		data = bytes.ToValidUTF8(data, []byte("\ufffd"))
	}
	var w wire
	valid := w.parse(data)
	switch {
	case valid && (string(w.kind) == "error" || len(w.err) > 0 && w.err[0] != 'n'):
		s.out.Problem(data)
		return false
	case string(e.Name) == "error": // in a form that only its name tells from another event
		s.out.Problem(answer.NamedError(data))
		return false
	case !valid:
		if !e.Cut && !openai.IsDone(data) && len(bytes.TrimSpace(data)) > 0 {
			s.out.Problem(data)
		}
		return true // half an event is the end of a stream that broke off
	}
	if w.kind == nil {
		w.kind = e.Name
	}
	switch string(w.kind) {
	case "ping":
		s.out.Ping()
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
		s.tellUsage()
	case "message_stop":
		s.end()
		return false
	}
	return true
}

// begin gives the chunk with the role, which all others follow.
func (s *events) begin(message []byte) {
	if s.begun {
		return
	}
	s.begun = true
	id := bytes.Clone(rawjson.Get(message, "id"))
	if len(inner(id)) == 0 {
		id = quote("chatcmpl-" + strings.ToLower(rand.Text()))
	}
	s.head = answer.Head{ID: id, Created: created(), Model: bytes.Clone(stringOr(rawjson.Get(message, "model")))}
	role := s.choice()
	role.Role, role.Content = assistant, noText
}

var assistant, noText = []byte(`"assistant"`), []byte(`""`)

// chunk gives a chunk, to be filled.
func (s *events) chunk() *answer.Chunk {
	c := s.out.Add(answer.Piece)
	c.ID, c.Created, c.Model = s.head.ID, s.head.Created, s.head.Model
	return c
}

// choice gives the choice of a chunk, to be filled.
func (s *events) choice() *answer.Choice {
	s.begin(nil)
	return s.chunk().Choose(0)
}

// more gives the choice of a chunk that brings more of the answer. A reason before it was premature, as the reader of the chunks sees.
func (s *events) more() *answer.Choice {
	s.spoke, s.finished = true, false
	return s.choice()
}

// content gives a chunk with a text, unless there is none in it.
func (s *events) content(raw []byte) {
	if len(inner(raw)) > 0 {
		s.more().Content = raw
	}
}

func (s *events) startBlock(b []byte) {
	s.endBlock()
	s.block = otherBlock
	switch string(inner(rawjson.Get(b, "type"))) {
	case "text":
		s.content(rawjson.Get(b, "text"))
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
		s.call(answer.Call{
			Index: s.calls, PlainIndex: true, ID: stringOr(rawjson.Get(b, "id")), Type: functionType, Name: stringOr(rawjson.Get(b, "name")), Args: noText,
		})
		s.calls++
	}
}

var functionType = []byte(`"function"`)

// call gives a chunk with a piece of a call. Calls are counted from 0, other blocks left out.
func (s *events) call(c answer.Call) {
	ch := s.more()
	ch.Calls = append(ch.Calls, c)
}

// arguments gives a chunk with more arguments of the call that is open.
func (s *events) arguments(raw []byte) {
	s.call(answer.Call{Index: s.calls - 1, PlainIndex: true, Args: raw})
	s.argued = true
}

func (s *events) delta(d []byte) {
	switch string(inner(rawjson.Get(d, "type"))) {
	case "text_delta":
		s.content(rawjson.Get(d, "text"))
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
	if len(inner(raw)) > 0 {
		s.more().ReasoningContent = raw
	}
	if len(s.thought) <= maxThought {
		s.thought = append(s.thought, inner(raw)...)
	}
}

// detail gives a chunk with an entry of reasoning_details, if there is one.
func (s *events) detail(entry []byte) {
	if entry != nil {
		ch := s.more()
		ch.Delta, ch.Extra = reasoningDetails(entry), true
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
	s.choice().Finish = []byte(finishReason(stop, s.calls > 0))
	s.finished = true
}

// end gives the end of a whole stream. A message that neither says anything nor states why is none.
func (s *events) end() {
	s.endBlock()
	if !s.spoke && !s.finished {
		return
	}
	s.finish(nil)
	s.tellUsage()
	s.out.Add(answer.Done)
}

// tellUsage gives the chunk with the usage, once the answer is over, unless the client knows it. Some servers leave out the last event.
func (s *events) tellUsage() {
	if s.finished && s.usage.known() && s.usage != s.told {
		s.told = s.usage
		s.chunk().Usage = s.usage.appendTo(nil)
	}
}
