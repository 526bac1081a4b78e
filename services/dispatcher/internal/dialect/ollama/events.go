package ollama

import (
	"bufio"
	"bytes"
	"io"

	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// Events makes a source of a native stream, one JSON text a line; id names the answer. Errors come as the server sent them. A stream that
// breaks off, or turns into something else, just ends, and is never done.
func Events(r io.Reader, id string) answer.Source {
	s := &stream{lines: bufio.NewScanner(r), reply: reply{id: id}}
	s.lines.Buffer(nil, openai.DefaultMaxEvent)
	return s
}

// stream is a native stream being translated.
type stream struct {
	lines *bufio.Scanner
	out   answer.Queue // of the last line that had any
	reply
	begun bool // the role was sent
	spoke bool // anything of an answer was sent
	done  bool // the server said so, before it had said anything else
	over  bool // the answer has ended, well or not
}

// Next gives the next chunk.
func (s *stream) Next() (*answer.Chunk, error) {
	for s.out.Len() == 0 && s.lines.Scan() {
		line := bytes.TrimSpace(s.lines.Bytes())
		switch {
		case len(line) == 0 || s.over:
		case !rawjson.Valid(line) || line[0] != '{':
			s.over = true
		default:
			s.line(line)
		}
	}
	if s.out.Len() > 0 {
		return s.out.Next()
	}
	if err := s.lines.Err(); err != nil {
		return nil, err
	}
	if s.done && !s.over {
		s.over = true
		s.out.Add(answer.Done)
		return s.out.Next()
	}
	return nil, io.EOF
}

// Buffered says whether the last line has another chunk.
func (s *stream) Buffered() bool { return s.out.Buffered() }

// line translates one line.
func (s *stream) line(text []byte) {
	line := gjson.ParseBytes(text)
	if failed(line) {
		s.over = true
		s.out.Problem(text)
		return
	}
	s.learn(line)
	done := line.Get("done").Type == gjson.True
	s.delta(line, done)
	if !done {
		return
	}
	s.chunk().Choose(0).Finish = s.finish(line)
	if counted(line) {
		s.chunk().Usage = appendUsage(nil, line)
	}
	if s.done = true; s.spoke { // otherwise the answer may still come
		s.over = true
		s.out.Add(answer.Done)
	}
}

// chunk gives a chunk, to be filled.
func (s *stream) chunk() *answer.Chunk {
	c := s.out.Add(answer.Piece)
	s.head(c)
	return c
}

// delta gives the chunk for what a line says, if it says anything. An answer always has one chunk with the role.
func (s *stream) delta(line gjson.Result, done bool) {
	message := line.Get("message")
	if !message.IsObject() {
		message = gjson.Result{}
	}
	said, thought, calls := message.Get("content"), message.Get("thinking"), callsOf(message)
	if said.Str == "" && thought.Str == "" && len(calls) == 0 && (s.begun || !done) {
		return
	}
	s.spoke = s.spoke || said.Str != "" || thought.Str != "" || len(calls) > 0
	s.done = s.done && !s.spoke
	ch := s.chunk().Choose(0)
	if !s.begun {
		s.begun = true
		ch.Role = assistant
	}
	if thought.Type == gjson.String && thought.Str != "" {
		ch.ReasoningContent = []byte(thought.Raw)
	}
	if said.Type == gjson.String && (said.Str != "" || thought.Str == "" && len(calls) == 0) {
		ch.Content = []byte(said.Raw)
	}
	ch.Calls = s.takeCalls(calls)
	ch.Logprobs = logprobs(line)
}
