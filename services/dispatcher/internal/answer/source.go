package answer

import (
	"bytes"
	"unicode/utf8"

	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// Source gives the events of one answer. It is not safe for concurrent use.
type Source interface {
	// Next gives the next event, which is valid until the next call of Next or Buffered. At the end of the stream, whether the answer is
	// complete or not, the error is io.EOF; another one is that of the connection.
	Next() (*Chunk, error)
	// Buffered says whether Next would give an event without waiting.
	Buffered() bool
}

// Reader is the source of a stream that is in Chat Completions already. The zero value needs a Reset.
type Reader struct {
	events *openai.Reader
	chunk  Chunk
}

// NewReader makes a source of a stream of chunks.
func NewReader(events *openai.Reader) *Reader { return &Reader{events: events} }

// Reset makes r a source of another stream. It keeps its room.
func (r *Reader) Reset(events *openai.Reader) {
	r.events = events
	r.chunk.reset(Nothing)
}

// Next reads the next event.
func (r *Reader) Next() (*Chunk, error) {
	e, err := r.events.Next()
	if err != nil {
		return nil, err
	}
	r.chunk.Read(&e)
	return &r.chunk, nil
}

// Buffered says whether a whole event was read already.
func (r *Reader) Buffered() bool { return r.events.Buffered() }

// Read makes the chunk what an event of a chat stream says. It aliases the event.
func (c *Chunk) Read(e *openai.Event) {
	if e.Data == nil {
		c.reset(Nothing)
		if e.Name == nil && e.ID == nil && e.Retry == nil && !e.Cut && !e.Noncanonical {
			c.Kind, c.Raw = Comment, e.Raw // a comment stays one (SSE-04)
		}
		return
	}
	data := bytes.TrimSpace(e.Data)
	switch {
	case len(data) == 0 || data[0] == ':': // nothing, or a comment that another proxy took for data
		c.reset(Nothing)
		return
	case openai.IsDone(data):
		c.reset(Done)
		if wellformed(e) && len(e.Data) == len("[DONE]") { // with spaces around it, some clients take it for JSON
			c.Raw = e.Raw
		}
		return
	}
	c.Parse(data)
	if wellformed(e) {
		c.Raw = e.Raw
	}
	if !c.Valid && !utf8.Valid(data) { // such text must not go on as it is
		c.Parse(bytes.ToValidUTF8(data, replacement))
	}
	switch {
	case string(e.Name) == "error":
		c.Kind, c.Data = Problem, NamedError(c.Data)
	case c.Error != nil:
		c.Kind = Problem
	case c.Valid:
	case e.Cut: // half a value at the end is a cut stream, which is for the reader of the source to see (SSE-10)
		c.Kind = Nothing
	default:
		c.Kind = Problem
	}
}

var replacement = []byte("\ufffd")

// wellformed says that an event may pass as it came, if its data may.
func wellformed(e *openai.Event) bool { return e.Lines == 1 && !e.Noncanonical && !e.Cut }

// NamedError gives the data of an event with the name "error" in a form that nobody takes for anything else.
func NamedError(data []byte) []byte {
	var c Chunk
	if c.Parse(data); c.Error != nil {
		return data
	}
	out := []byte(`{"error":`)
	if c.Valid {
		out = append(out, data...)
	} else {
		out = rawjson.AppendString(out, data)
	}
	return append(out, '}')
}
