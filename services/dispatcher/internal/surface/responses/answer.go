package responses

import (
	"bytes"
	"strconv"
	"time"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/services/dispatcher/internal/surface"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// Answer writes one answer.
type Answer struct {
	request *Request
	told    surface.Disclosure
	head    answer.Head
	silent  bool // no events are wanted
	begun   bool
	number  int // of the next event

	items  []*item
	open   *item   // the thought or message that goes on; nil for none
	calls  []*item // by their index
	finish []byte  // reason

	status    string // of the response
	usage     []byte // in Chat Completions; nil = not told
	fault     *fault.Fault
	completed time.Time
	final     []byte // the response when it has ended
}

// Values of the status of a response, and of an item.
const (
	statusInProgress = "in_progress"
	statusCompleted  = "completed"
	statusIncomplete = "incomplete"
	statusFailed     = "failed"
)

// NewAnswer begins an answer to a request.
func NewAnswer(r *Request, d surface.Disclosure) *Answer {
	return &Answer{request: r, told: d, status: statusInProgress}
}

// ContentType is that of an event stream.
func (*Answer) ContentType() string { return "text/event-stream; charset=utf-8" }

// Append appends the events of a chunk.
func (a *Answer) Append(dst []byte, c *answer.Chunk) []byte {
	if c.Kind == answer.Comment {
		return append(dst, c.Raw...)
	}
	a.head.Learn(c)
	dst = a.begin(dst)
	for i := range c.Choices {
		if ch := &c.Choices[i]; ch.Index == 0 { // nobody asks for more than one
			dst = a.take(dst, ch)
		}
	}
	return dst
}

// begin appends the events that every stream begins with.
func (a *Answer) begin(dst []byte) []byte {
	if a.begun {
		return dst
	}
	a.begun = true
	a.head.Complete(a.told.Model)
	if string(a.head.Model) == `""` {
		a.head.Model = rawjson.AppendString(nil, a.request.Model)
	}
	if a.silent {
		return dst
	}
	dst = a.tell(dst, "response.created", a.response())
	return a.tell(dst, "response.in_progress", a.response())
}

// take takes a piece of a choice, or a whole one.
func (a *Answer) take(dst []byte, ch *answer.Choice) []byte {
	thought := answer.Inner(ch.ReasoningContent)
	if len(thought) == 0 {
		thought = answer.Inner(ch.Reasoning)
	}
	if len(thought) > 0 {
		dst = a.think(dst, thought)
	}
	if text := answer.Inner(ch.Content); len(text) > 0 {
		dst = a.say(dst, partText, text, ch.Logprobs)
	}
	if text := answer.Inner(ch.Refusal); len(text) > 0 {
		dst = a.say(dst, partRefusal, text, nil)
	}
	for i := range ch.Calls {
		c := &ch.Calls[i]
		n := c.Index
		if n < 0 {
			n = i
		}
		dst = a.call(dst, n, c)
	}
	if answer.IsText(ch.Finish) {
		a.finish = bytes.Clone(ch.Finish)
	}
	return dst
}

// End appends the last events of a complete stream.
func (a *Answer) End(dst []byte, end stream.End) []byte {
	dst = a.begin(dst)
	if end.Usage != nil {
		a.usage = bytes.Clone(end.Usage.Usage)
	}
	return a.close(dst)
}

// close closes what is open and ends the response as the model did.
func (a *Answer) close(dst []byte) []byte {
	a.status = statusCompleted
	if a.reason() != "" {
		a.status = statusIncomplete
	}
	for _, it := range a.items {
		dst = a.closeItem(dst, it)
	}
	a.completed = time.Now()
	a.final = a.response()
	if a.silent {
		return dst
	}
	return a.tell(dst, "response."+a.status, a.final)
}

// reason is why the response is incomplete; "" when it is not.
func (a *Answer) reason() string {
	switch string(a.finish) {
	case `"length"`:
		return "max_output_tokens"
	case `"content_filter"`:
		return "content_filter"
	}
	return ""
}

// Fail appends the end of a stream that broke off. Nothing that is open is closed: clients run a call as soon as it is.
func (a *Answer) Fail(dst []byte, f *fault.Fault) []byte {
	dst = a.begin(dst)
	a.status, a.fault = statusFailed, f
	a.final = a.response()
	return a.tell(dst, "response.failed", a.final)
}

// Whole gives the response.
func (a *Answer) Whole(c *answer.Chunk) []byte {
	a.silent = true
	a.usage = c.Usage
	a.Append(nil, c)
	a.close(nil)
	return a.final
}

// Stored gives the response as it is to be stored, when it has ended; nil when the client does not want that.
func (a *Answer) Stored() *contract.StoredResponse {
	r, env := a.request, a.request.envelope
	if !r.stores || a.final == nil {
		return nil
	}
	s := &contract.StoredResponse{ID: r.id(), Previous: r.Previous, Owner: env.Principal, Input: r.own, Response: a.final, At: env.ReceivedAt.UTC()}
	if len(s.Input)+len(s.Response) > contract.MaxStoredResponse {
		return nil
	}
	return s
}

// tell appends an event about the whole response.
func (a *Answer) tell(dst []byte, kind string, response []byte) []byte {
	event := append(make([]byte, 0, len(response)+128), `{"type":"`...)
	event = strconv.AppendInt(append(append(event, kind...), `","sequence_number":`...), int64(a.number), 10)
	event = append(append(append(event, `,"response":`...), response...), '}')
	a.number++
	dst = append(append(append(dst, "event: "...), kind...), '\n')
	return openai.AppendData(dst, event)
}

// event begins an event about an item; what is appended has to end with eventEnd. It is only called for streams.
func (a *Answer) event(dst []byte, kind string, it *item) []byte {
	dst = append(append(append(dst, "event: "...), kind...), "\ndata: {\"type\":\""...)
	dst = strconv.AppendInt(append(append(dst, kind...), `","sequence_number":`...), int64(a.number), 10)
	dst = strconv.AppendInt(append(dst, `,"output_index":`...), int64(it.index), 10)
	a.number++
	return dst
}

const eventEnd = "}\n\n"
