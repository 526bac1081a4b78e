package ollama

import (
	"bufio"
	"bytes"
	"io"

	"github.com/tidwall/gjson"

	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// Events translates a native stream, one JSON text a line, into events while it is read; id names the answer. Errors are passed on as they
// came. A stream that breaks off, or turns into something else, just ends, without [DONE].
func Events(r io.Reader, id string) io.Reader {
	s := &stream{lines: bufio.NewScanner(r), answer: answer{id: id}}
	s.lines.Buffer(nil, openai.DefaultMaxEvent)
	return &translated{next: s.next}
}

// stream is a native stream being translated.
type stream struct {
	lines *bufio.Scanner
	answer
	begun bool // the role was sent
	over  bool // the answer has ended, well or not
}

// next appends the events of the next line that has any.
func (s *stream) next(dst []byte) ([]byte, error) {
	for s.lines.Scan() {
		line := bytes.TrimSpace(s.lines.Bytes())
		if len(line) == 0 || s.over {
			continue
		}
		if !rawjson.Valid(line) || line[0] != '{' {
			s.over = true
			continue
		}
		if dst = s.append(dst, line); len(dst) > 0 {
			return dst, nil
		}
	}
	if err := s.lines.Err(); err != nil {
		return dst, err
	}
	return dst, io.EOF
}

// append translates one line.
func (s *stream) append(dst, text []byte) []byte {
	line := gjson.ParseBytes(text)
	if failed(line) {
		s.over = true
		return append(append(append(dst, "data: "...), text...), "\n\n"...)
	}
	s.learn(line)
	done := line.Get("done").Type == gjson.True
	dst = s.appendDelta(dst, line, done)
	if !done {
		return dst
	}
	s.over = true
	dst = append(s.appendHead(append(dst, "data: "...), chunk), `{"index":0,"delta":{},"finish_reason":"`...)
	dst = append(append(dst, s.finish(line)...), "\"}]}\n\n"...)
	if counted(line) {
		dst = append(s.appendHead(append(dst, "data: "...), chunk), `],"usage":`...)
		dst = append(appendUsage(dst, line), "}\n\n"...)
	}
	return append(dst, "data: [DONE]\n\n"...)
}

const chunk = "chat.completion.chunk"

// appendDelta adds the chunk for what a line says, if it says anything. An answer always has one chunk with the role.
func (s *stream) appendDelta(dst []byte, line gjson.Result, done bool) []byte {
	message := line.Get("message")
	if !message.IsObject() {
		message = gjson.Result{}
	}
	said, thought, calls := message.Get("content"), message.Get("thinking"), callsOf(message)
	if said.Str == "" && thought.Str == "" && len(calls) == 0 && (s.begun || !done) {
		return dst
	}
	dst = append(s.appendHead(append(dst, "data: "...), chunk), `{"index":0,"delta":{`...)
	start := len(dst)
	if !s.begun {
		s.begun = true
		dst = append(dst, `,"role":"assistant"`...)
	}
	if thought.Type == gjson.String && thought.Str != "" {
		dst = append(append(dst, `,"reasoning_content":`...), thought.Raw...)
	}
	if said.Type == gjson.String && (said.Str != "" || thought.Str == "" && len(calls) == 0) {
		dst = append(append(dst, `,"content":`...), said.Raw...)
	}
	if len(calls) > 0 {
		dst = s.appendCalls(append(dst, `,"tool_calls":`...), calls, true)
	}
	if start < len(dst) {
		dst = append(dst[:start], dst[start+1:]...) // the first comma
	}
	dst = appendLogprobs(append(dst, '}'), line)
	return append(dst, ",\"finish_reason\":null}]}\n\n"...)
}

// whole translates an answer that is not streamed, when it is read; id names it.
func whole(r io.Reader, id string) io.Reader {
	return &translated{next: func(dst []byte) ([]byte, error) {
		body, err := io.ReadAll(io.LimitReader(r, maxAnswer))
		if err != nil {
			return dst, err
		}
		return append(dst, Completion(body, id)...), io.EOF
	}}
}

// maxAnswer bounds a whole answer.
const maxAnswer = 64 << 20

// translated is what next gives, piece by piece. An error of next comes after what it gave.
type translated struct {
	next func(dst []byte) ([]byte, error)
	buf  []byte
	rest []byte // of buf
	err  error
}

func (t *translated) Read(p []byte) (int, error) {
	for len(t.rest) == 0 {
		if t.err != nil {
			return 0, t.err
		}
		t.buf, t.err = t.next(t.buf[:0])
		t.rest = t.buf
	}
	n := copy(p, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}
