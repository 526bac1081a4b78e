package mockllm

import (
	"io"
	"net/http"
	"strings"
	"unicode/utf8"
)

// pieceSize is how many bytes of the arguments of a call are in one chunk, at most.
const pieceSize = 12

// stream sends a turn in chunks, as a model would make it.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, req *request, t *turn, id string) {
	chunk := completion{ID: "chatcmpl-mock-" + id, Object: "chat.completion.chunk", Created: created, Model: Model}
	if req.StreamOptions.IncludeUsage {
		chunk.Usage = null // it is in the last chunk alone
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	out := events{w: w, flush: http.NewResponseController(w)}
	// emit sends a chunk for each choice, one after the other.
	emit := func(delta func(choice int) *reply, finish *string) {
		for i := range req.choices() {
			chunk.Choices = []choice{{Index: i, Delta: delta(i), FinishReason: finish}}
			out.data(encode(chunk))
		}
	}
	first := reply{Role: "assistant", Content: encode("")}
	if t.text == nil {
		first.Content = null
	}
	emit(func(int) *reply { return &first }, nil)
	pieces := t.pieces()
	for i, piece := range pieces {
		if t.midway != whole && i >= len(pieces)/2 {
			break
		}
		if !pause(r, s.cfg.Delay) || out.err != nil {
			return
		}
		emit(piece, nil)
	}
	switch t.midway {
	case cut:
		panic(http.ErrAbortHandler) // breaks the connection
	case faulted:
		out.data(failureOf(http.StatusInternalServerError).body())
		return
	case whole:
	}
	emit(func(int) *reply { return &reply{} }, &t.finish)
	if req.StreamOptions.IncludeUsage {
		chunk.Choices, chunk.Usage = []choice{}, encode(t.usage)
		out.data(encode(chunk))
	}
	out.data([]byte("[DONE]"))
}

// pieces cuts a turn into deltas: thoughts and text by words, arguments by bytes.
func (t *turn) pieces() []func(choice int) *reply {
	var all []func(int) *reply
	same := func(d reply) { all = append(all, func(int) *reply { return &d }) }
	for word := range words(t.reasoning) {
		same(reply{Reasoning: encode(word)})
	}
	if t.text != nil {
		for word := range words(*t.text) {
			same(reply{Content: encode(word)})
		}
	}
	for word := range words(t.refusal) {
		same(reply{Refusal: encode(word)})
	}
	for i, c := range t.calls {
		all = append(all, func(choice int) *reply {
			return &reply{ToolCalls: []toolCall{{Index: &i, ID: c.in(choice), Type: "function", Function: functionCall{Name: c.name}}}}
		})
		for rest := c.arguments; rest != ""; {
			n := min(len(rest), pieceSize)
			for n < len(rest) && !utf8.RuneStart(rest[n]) {
				n--
			}
			same(reply{ToolCalls: []toolCall{{Index: &i, Function: functionCall{Arguments: rest[:n]}}}})
			rest = rest[n:]
		}
	}
	return all
}

// words gives the words of a text, each with the space behind it; none of no text.
func words(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		if text == "" {
			return
		}
		strings.SplitAfterSeq(text, " ")(yield)
	}
}

// events writes server-sent events and keeps the first error.
type events struct {
	w     io.Writer
	flush *http.ResponseController
	err   error
}

func (e *events) data(text []byte) {
	if e.err != nil {
		return
	}
	if _, e.err = e.w.Write(append(append([]byte("data: "), text...), "\n\n"...)); e.err == nil {
		e.err = e.flush.Flush()
	}
}
