package fakellm

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// Answer is what the server does with one request. The zero Answer is an empty 200.
type Answer struct {
	Delay  time.Duration // before the first byte
	Status int           // 0 = 200
	Header map[string]string
	Body   []byte  // sent with its length when there are no chunks
	Chunks []Chunk // sent one by one, each flushed
	End    End     // how the answer ends
	Raw    []byte  // written to the connection as they are, instead of all of the above but Delay; then the connection is closed
}

// Chunk is a piece of a body and the pause before it.
type Chunk struct {
	Gap  time.Duration
	Data string
}

// End is how an answer ends.
type End int

// Ends of an answer.
const (
	Proper End = iota // as HTTP wants it
	Cut               // the connection is closed before the body is complete
	Reset             // the connection is reset
	Hang              // nothing more comes until the client leaves or the server stops
)

// NoAnswer hangs without a status line.
func NoAnswer() Answer { return Answer{Status: noStatus, End: Hang} }

// Abort resets the connection without a status line.
func Abort() Answer { return Answer{Status: noStatus, End: Reset} }

const noStatus = -1

// JSON answers with a status and a value as JSON; a string or a json.RawMessage is taken as JSON text.
func JSON(status int, v any) Answer {
	return Answer{Status: status, Header: map[string]string{"Content-Type": "application/json"}, Body: text(v)}
}

// SSE answers with an event stream: each value becomes one "data:" event, a string is taken as it is.
func SSE(events ...any) Answer {
	a := Answer{Header: map[string]string{"Content-Type": "text/event-stream"}}
	for _, e := range events {
		a.Chunks = append(a.Chunks, Chunk{Data: "data: " + string(text(e)) + "\n\n"})
	}
	return a
}

// Done is the last event of a chat stream.
const Done = "[DONE]"

// Stream answers with a whole chat stream: a role chunk, one chunk per word, a chunk with finish_reason stop, and [DONE].
func Stream(words ...string) Answer {
	events := []any{chunk(map[string]any{"role": "assistant", "content": ""}, nil)}
	for _, w := range words {
		events = append(events, chunk(map[string]any{"content": w}, nil))
	}
	return SSE(append(events, chunk(map[string]any{}, "stop"), Done)...)
}

// Chat answers with a whole chat completion.
func Chat(content string) Answer {
	return JSON(http.StatusOK, map[string]any{
		"id": "chatcmpl-fake", "object": "chat.completion", "created": 1, "model": "fake",
		"choices": []any{map[string]any{
			"index": 0, "message": map[string]any{"role": "assistant", "content": content}, "finish_reason": "stop",
		}},
		"usage": map[string]any{"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
	})
}

// Error answers with an OpenAI error envelope.
func Error(status int, message string) Answer {
	return JSON(status, map[string]any{"error": map[string]any{"message": message, "type": "server_error", "param": nil, "code": nil}})
}

// Talk answers as a healthy upstream would: a stream of the words of content when the request asks for one, a completion otherwise.
func Talk(content string) func(Request) Answer {
	words := strings.SplitAfter(content, " ")
	return func(r Request) Answer {
		if r.Streams() {
			return Stream(words...)
		}
		return Chat(content)
	}
}

// Gap gives a copy of the answer with a pause before each chunk.
func (a Answer) Gap(d time.Duration) Answer {
	chunks := make([]Chunk, len(a.Chunks))
	for i, c := range a.Chunks {
		chunks[i] = Chunk{Gap: d, Data: c.Data}
	}
	a.Chunks = chunks
	return a
}

// First gives a copy of the answer that ends in the given way after n chunks.
func (a Answer) First(n int, end End) Answer {
	a.Chunks, a.End = a.Chunks[:n:n], end
	return a
}

// After gives a copy of the answer that begins later.
func (a Answer) After(d time.Duration) Answer {
	a.Delay = d
	return a
}

func chunk(delta map[string]any, finish any) map[string]any {
	return map[string]any{
		"id": "chatcmpl-fake", "object": "chat.completion.chunk", "created": 1, "model": "fake",
		"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}},
	}
}

func text(v any) []byte {
	switch v := v.(type) {
	case string:
		return []byte(v)
	case json.RawMessage:
		return v
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic("fakellm: " + err.Error()) // a mistake in the test
	}
	return b
}
