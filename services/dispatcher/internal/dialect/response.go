package dialect

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
)

// Response is the answer to a chat call. A 2xx one still has to be read: Sniff says what its body is.
type Response struct {
	*upstream.Response

	// Kind is what the body is, if that is known without a look at it.
	Kind Body
	// Events makes a source of the events in the body; nil when they are chunks of Chat Completions.
	Events func(r *openai.Reader) answer.Source
	// Completion makes a whole answer of a 2xx body, which it may alias; nil when that is a chat completion. It is false when the body is no
	// answer.
	Completion func(out *answer.Chunk, body []byte) bool
	// Native is the protocol in which the answer came because the client speaks it: its chunks have the provider's own bytes. "" = it did not.
	Native contract.Surface
}

// Plain is the response of a provider that speaks Chat Completions.
func Plain(resp *upstream.Response, err error) (*Response, error) {
	if err != nil {
		return nil, err
	}
	return &Response{Response: resp}, nil
}

// Source makes a source of the events that r reads from the body. plain is used, and reset, where no translation is needed.
func (r *Response) Source(events *openai.Reader, plain *answer.Reader) answer.Source {
	if r.Events != nil {
		return r.Events(events)
	}
	plain.Reset(events)
	return plain
}

// Whole makes out the whole answer that a body holds. translated says that it is one, in another protocol; otherwise out is what can be read of
// the body, which may be no answer.
func (r *Response) Whole(out *answer.Chunk, body []byte) (translated bool) {
	if r.Completion != nil {
		out.Reset(answer.Piece)
		if out.Plain = true; r.Completion(out, body) {
			if r.Native != "" {
				out.Raw, out.Of = body, r.Native
			}
			return true
		}
	}
	out.Parse(body)
	return false
}

// Body is what a provider sends, judged by its label and, where that says little, by its first bytes.
type Body int

// Bodies.
const (
	Other  Body = iota // or not known yet
	Events             // a stream of events
	JSON               // a whole answer, or an error
)

const sniffBytes = 512

// Sniff tells what the body is. It waits for the first bytes unless the label says that events will come, maybe late: servers label events as
// JSON, JSON as text, and pages as anything.
func (r *Response) Sniff() (Body, error) {
	switch {
	case r.Kind != Other:
		return r.Kind, nil
	case strings.HasPrefix(strings.ToLower(r.Header.Get("Content-Type")), "text/event-stream"):
		return Events, nil
	}
	head, err := readHead(r.Body)
	if err != nil {
		return Other, err
	}
	r.Body = io.MultiReader(bytes.NewReader(head), r.Body)
	text := bytes.TrimLeft(head, space)
	switch {
	case len(text) == 0:
	case text[0] == '{' || text[0] == '[':
		return JSON, nil
	case text[0] == ':' || bytes.HasPrefix(text, []byte("data:")) || bytes.HasPrefix(text, []byte("event:")) || bytes.HasPrefix(text, []byte("id:")):
		return Events, nil
	}
	return Other, nil
}

const (
	space  = " \t\r\n\ufeff"
	enough = len("event:") // bytes that tell one body from another
)

// readHead takes the first bytes of a body, until there is enough that is not white space.
func readHead(r io.Reader) ([]byte, error) {
	head := make([]byte, 0, sniffBytes)
	for len(head) < cap(head) && len(bytes.TrimLeft(head, space)) < enough {
		n, err := r.Read(head[len(head):cap(head)])
		head = head[:len(head)+n]
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return head, nil
}
