package messages

import (
	"bytes"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/shared/openai/rawjson"
)

// maxBlocks bounds what is kept of the blocks of an answer, in bytes.
const maxBlocks = 1 << 20

// blocks puts the content of a message together of a provider's own events. The zero value is ready for use.
type blocks struct {
	done  [][]byte
	size  int
	large bool // there is too much of it

	open      []byte // the block that is being sent, as it began
	text      []byte // of it, the inner part of a string
	member    string // that the text is of
	signature []byte
	citations [][]byte
}

// event takes the next event.
func (b *blocks) event(raw []byte) {
	if b.size += len(raw); b.size > maxBlocks {
		b.large = true
	}
	if b.large || !bytes.Contains(raw, []byte("content_block_")) {
		return
	}
	_, data, _ := dataOf(raw)
	switch rawjson.Text(rawjson.Get(data, "type")) {
	case "content_block_start":
		*b = blocks{done: b.done, size: b.size, open: bytes.Clone(rawjson.Get(data, "content_block"))}
	case "content_block_delta":
		b.delta(rawjson.Get(data, "delta"))
	case "content_block_stop":
		b.stop()
	}
}

func (b *blocks) delta(delta []byte) {
	switch rawjson.Text(rawjson.Get(delta, "type")) {
	case "text_delta":
		b.add("text", rawjson.Get(delta, "text"))
	case "thinking_delta":
		b.add("thinking", rawjson.Get(delta, "thinking"))
	case "input_json_delta":
		b.add("input", rawjson.Get(delta, "partial_json"))
	case "signature_delta":
		b.signature = bytes.Clone(rawjson.Get(delta, "signature"))
	case "citations_delta":
		b.citations = append(b.citations, bytes.Clone(rawjson.Get(delta, "citation")))
	}
}

func (b *blocks) add(member string, text []byte) {
	b.member = member
	b.text = append(b.text, answer.Inner(text)...)
}

// stop ends the block.
func (b *blocks) stop() {
	if len(b.open) == 0 || b.open[0] != '{' {
		return
	}
	block := b.open
	switch {
	case b.member == "input":
		if input := []byte(rawjson.Text(answer.Quoted(b.text))); len(input) > 0 && rawjson.Valid(input) {
			block = rawjson.AppendSet(nil, block, "input", input)
		}
	case len(b.text) > 0:
		begun := answer.Inner(rawjson.Get(block, b.member))
		block = rawjson.AppendSet(nil, block, b.member, answer.Quoted(begun, b.text))
	}
	if b.signature != nil {
		block = rawjson.AppendSet(nil, block, "signature", b.signature)
	}
	if len(b.citations) > 0 {
		block = rawjson.AppendSet(nil, block, "citations", rawjson.Array(b.citations))
	}
	b.done, b.open = append(b.done, block), nil
}

// whole takes the content of a whole message.
func (b *blocks) whole(content []byte) {
	for span := range rawjson.Elements(content) {
		b.done = append(b.done, bytes.Clone(span.Of(content)))
	}
	b.large = len(content) > maxBlocks
}

// message gives the message of the blocks that came to their end; nil for none.
func (b *blocks) message() []byte {
	if b.large || len(b.done) == 0 {
		return nil
	}
	return rawjson.Object(nil).Text("role", "assistant").Set("content", rawjson.Array(b.done)).End()
}
