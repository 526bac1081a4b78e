package answer

import (
	"errors"
	"io"

	"hydrallm/shared/openai"
)

// Queue holds the chunks that were made and not taken yet. The zero value is empty. It is a Source that ends when it is empty.
type Queue struct {
	chunks []*Chunk // those in use, then those that can be used again
	n      int      // in use
	taken  int
}

// Add gives an empty chunk at the end of the queue, to be filled. It is valid until the queue was emptied and something is added again.
func (q *Queue) Add(kind Kind) *Chunk {
	if q.taken == q.n {
		q.n, q.taken = 0, 0
	}
	if q.n == len(q.chunks) {
		q.chunks = append(q.chunks, &Chunk{})
	}
	c := q.chunks[q.n]
	q.n++
	c.Reset(kind)
	return c
}

// Problem adds an error.
func (q *Queue) Problem(data []byte) { q.Add(Problem).Data = data }

// Ping adds a sign of life that clients may see.
func (q *Queue) Ping() { q.Add(Comment).Raw = ping }

var ping = []byte(": ping\n\n")

// Clear forgets all chunks.
func (q *Queue) Clear() { q.n, q.taken = 0, 0 }

// Len is how many chunks wait.
func (q *Queue) Len() int { return q.n - q.taken }

// Next takes the first chunk, or gives io.EOF.
func (q *Queue) Next() (*Chunk, error) {
	if q.taken == q.n {
		return nil, io.EOF
	}
	c := q.chunks[q.taken]
	q.taken++
	return c, nil
}

// Buffered says whether a chunk waits.
func (q *Queue) Buffered() bool { return q.taken < q.n }

// Translator makes chunks of the events of one stream of another protocol.
type Translator interface {
	// Event takes the next event and adds what it means, which may alias the event. The answer is false when nothing can follow.
	Event(out *Queue, e *openai.Event) (more bool)
	// End takes the end of the stream, unless Event saw it.
	End(out *Queue)
}

// Translate makes a source of a stream of another protocol.
func Translate(events *openai.Reader, t Translator) Source { return &translated{events: events, to: t} }

type translated struct {
	events *openai.Reader
	to     Translator
	queue  Queue
	err    error // what comes after the queue; final
}

// Next takes as many events as give a chunk.
func (t *translated) Next() (*Chunk, error) {
	for t.queue.Len() == 0 {
		if t.err != nil {
			return nil, t.err
		}
		t.read()
	}
	return t.queue.Next()
}

// Buffered translates what was read already until there is a chunk.
func (t *translated) Buffered() bool {
	for t.queue.Len() == 0 && t.err == nil && t.events.Buffered() {
		t.read()
	}
	return t.queue.Len() > 0
}

func (t *translated) read() {
	e, err := t.events.Next()
	switch {
	case errors.Is(err, io.EOF):
		t.to.End(&t.queue)
		t.err = err
	case err != nil:
		t.err = err
	case !t.to.Event(&t.queue, &e):
		t.err = io.EOF
	}
}
