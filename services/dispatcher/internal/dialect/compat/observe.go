package compat

import (
	"bytes"
	"io"

	"hydrallm/shared/openai/rawjson"
)

// maxHeld bounds what an observer holds of an answer: a line of a stream that is not complete, or a whole answer. A longer one passes unread.
const maxHeld = 8 << 20

var signatureName = []byte("thought_signature")

// Observe learns the signatures of an answer, or of one chunk of a stream. Most have none, which is seen without reading them.
func (s *Signatures) Observe(chunkOrBody []byte) {
	if !bytes.Contains(chunkOrBody, signatureName) {
		return
	}
	choices := rawjson.Get(chunkOrBody, "choices")
	for choice := range rawjson.Elements(choices) {
		for _, name := range [...]string{"delta", "message"} {
			calls := rawjson.Get(rawjson.Get(choice.Of(choices), name), "tool_calls")
			for span := range rawjson.Elements(calls) {
				call := span.Of(calls)
				s.Learn(rawjson.Text(rawjson.Get(call, "id")), rawjson.Text(rawSignature(rawjson.Get(call, "extra_content"))))
			}
		}
	}
}

// ReadObserver passes an event stream on unchanged and observes its chunks.
func (s *Signatures) ReadObserver(r io.Reader) io.Reader { return &eventObserver{memory: s, src: r} }

// eventObserver looks at each line of a stream. It copies only a line that is cut by the end of a read.
type eventObserver struct {
	memory *Signatures
	src    io.Reader
	held   []byte // begin of a line
	long   bool   // the line is too long to be held
}

func (o *eventObserver) Read(p []byte) (int, error) {
	n, err := o.src.Read(p)
	rest := p[:n]
	for len(rest) > 0 {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			o.hold(rest)
			break
		}
		o.line(rest[:end])
		rest = rest[end+1:]
	}
	if err != nil {
		o.line(nil)
	}
	return n, err
}

func (o *eventObserver) hold(part []byte) {
	if o.long = o.long || len(o.held)+len(part) > maxHeld; o.long {
		o.held = nil
		return
	}
	o.held = append(o.held, part...)
}

// line takes the end of a line.
func (o *eventObserver) line(end []byte) {
	whole := end
	if len(o.held) > 0 {
		o.hold(end)
		whole = o.held
	}
	if !o.long && bytes.Contains(whole, signatureName) {
		if begin := bytes.IndexByte(whole, '{'); begin >= 0 {
			o.memory.Observe(whole[begin:])
		}
	}
	o.held, o.long = o.held[:0], false
	if cap(o.held) > 64<<10 {
		o.held = nil
	}
}

// bodyObserver passes a whole answer on unchanged and observes it when it has ended.
type bodyObserver struct {
	memory *Signatures
	src    io.Reader
	held   []byte
	done   bool
}

func (o *bodyObserver) Read(p []byte) (int, error) {
	n, err := o.src.Read(p)
	if o.done {
		return n, err
	}
	if len(o.held)+n > maxHeld {
		o.held, o.done = nil, true
		return n, err
	}
	o.held = append(o.held, p[:n]...)
	if err != nil {
		o.memory.Observe(o.held)
		o.held, o.done = nil, true
	}
	return n, err
}
