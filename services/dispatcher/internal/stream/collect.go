package stream

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strconv"

	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// Collector puts an event stream together to the JSON answer that a client asked for although the upstream streamed. It reads what a Filter
// makes of the stream, so that both ways give the same answer.
type Collector struct {
	filter  *Filter
	events  *openai.Reader
	chunk   openai.Chunk
	out     []byte
	answers []*answer
	done    bool
	size    int
}

// maxCollected bounds the data that is put together, in bytes.
const maxCollected = 64 << 20

// ErrTooLarge says that an answer is larger than the limit.
var ErrTooLarge = errors.New("answer is larger than the limit")

// answer is one choice being put together. Texts are inner parts of JSON strings, other values are raw.
type answer struct {
	index                       int
	content, reasoning, refusal []byte
	calls                       []answerCall
	oldCall                     oldCall
	others                      others
	logprobs                    []byte // elements of logprobs.content
	finish                      []byte
}

type answerCall struct {
	head   []byte // id, type and further members of the first delta, each after a comma
	custom bool
	name   []byte
	args   []byte
}

// NewCollector begins an answer.
func NewCollector(opts Options) *Collector {
	opts.IncludeUsage = false // the usage is part of the answer
	f := NewFilter(opts)
	f.uniform = true
	return &Collector{filter: f, events: &openai.Reader{}}
}

// Add takes the next event. Problem is the data of an event that is an error or may be one. The error is ErrTooLarge.
func (c *Collector) Add(e openai.Event) (problem []byte, err error) {
	if c.size += len(e.Data); c.size > maxCollected {
		return nil, ErrTooLarge
	}
	step := c.filter.Event(c.out[:0], e)
	c.out = step.Out
	c.done = c.done || step.Done
	c.read(step.Out)
	return step.Problem, nil
}

// Done says that nothing more is to be read.
func (c *Collector) Done() bool { return c.done }

// Finished says that every choice has its finish reason, as Filter.Finished does.
func (c *Collector) Finished() bool { return c.filter.Finished() }

// Usage is the last usage that came.
func (c *Collector) Usage() Usage { return c.filter.Usage() }

// Completion is the whole answer. The error says that the stream broke off or held none.
func (c *Collector) Completion() ([]byte, error) {
	if _, err := c.filter.End(nil); err != nil {
		return nil, err
	}
	slices.SortFunc(c.answers, func(a, b *answer) int { return cmp.Compare(a.index, b.index) })
	head := &c.filter.head
	head.complete(c.filter.opts.Model)
	body := append(head.append(nil, completionObject), `,"choices":[`...)
	for i, a := range c.answers {
		if i > 0 {
			body = append(body, ',')
		}
		body = a.append(body)
	}
	body = append(body, ']')
	if usage := c.filter.usage; usage != nil {
		body = append(append(body, `,"usage":`...), usage...)
	}
	return c.filter.disclose(append(body, '}')), nil
}

// read takes events that the filter made.
func (c *Collector) read(events []byte) {
	if len(events) == 0 {
		return
	}
	c.events.Reset(bytes.NewReader(events), 0)
	for {
		e, err := c.events.Next()
		if err != nil { // the end: a reader of bytes has no other error below the limit of an event
			return
		}
		c.chunk.Parse(e.Data)
		for i := range c.chunk.Choices {
			ch := &c.chunk.Choices[i]
			c.answer(ch.Index).add(c.chunk.Data, ch)
		}
	}
}

func (c *Collector) answer(index int) *answer {
	for _, a := range c.answers {
		if a.index == index {
			return a
		}
	}
	a := &answer{index: index}
	c.answers = append(c.answers, a)
	return a
}

func (a *answer) add(data []byte, ch *openai.Choice) {
	a.content = append(a.content, textOf(ch.Content.Of(data))...)
	a.refusal = append(a.refusal, textOf(ch.Refusal.Of(data))...)
	if thought := textOf(ch.ReasoningContent.Of(data)); len(thought) > 0 {
		a.reasoning = append(a.reasoning, thought...)
	} else {
		a.reasoning = append(a.reasoning, textOf(ch.Reasoning.Of(data))...)
	}
	for span := range rawjson.Elements(ch.ToolCalls.Of(data)) {
		a.addCall(span.Of(ch.ToolCalls.Of(data)))
	}
	a.oldCall.add(ch.FunctionCall.Of(data))
	a.others.add(data, ch)
	logprobs := rawjson.Get(ch.Logprobs.Of(data), "content")
	for span := range rawjson.Elements(logprobs) {
		if len(a.logprobs) > 0 {
			a.logprobs = append(a.logprobs, ',')
		}
		a.logprobs = append(a.logprobs, span.Of(logprobs)...)
	}
	if finish := ch.Finish.Of(data); isText(finish) {
		a.finish = bytes.Clone(finish)
	}
}

// addCall takes a delta of a call. The filter sees to it that indexes count up from 0 and that the first delta has everything.
func (a *answer) addCall(raw []byte) {
	e := readEntry(raw)
	if e.index == len(a.calls) {
		a.calls = append(a.calls, answerCall{
			head: appendOthers(nil, raw, "index", "function", "custom"), custom: e.custom, name: bytes.Clone(e.name),
		})
	}
	if e.index >= 0 && e.index < len(a.calls) {
		call := &a.calls[e.index]
		call.args = append(call.args, e.argText()...)
	}
}

func (a *answer) append(dst []byte) []byte {
	dst = strconv.AppendInt(append(dst, `{"index":`...), int64(a.index), 10)
	dst = append(dst, `,"message":{"role":"assistant","content":`...)
	if len(a.content) == 0 && (len(a.calls) > 0 || a.oldCall.came || len(a.refusal) > 0) {
		dst = append(dst, null...)
	} else {
		dst = append(dst, quoted(a.content)...)
	}
	if len(a.reasoning) > 0 {
		dst = append(append(dst, `,"reasoning_content":`...), quoted(a.reasoning)...)
	}
	if len(a.refusal) > 0 {
		dst = append(append(dst, `,"refusal":`...), quoted(a.refusal)...)
	}
	for i := range a.calls {
		if i == 0 {
			dst = append(dst, `,"tool_calls":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = a.calls[i].append(dst)
	}
	if len(a.calls) > 0 {
		dst = append(dst, ']')
	}
	dst = append(a.others.append(a.oldCall.append(dst)), '}')
	if len(a.logprobs) > 0 {
		dst = append(append(append(dst, `,"logprobs":{"content":[`...), a.logprobs...), `]}`...)
	}
	return append(append(append(dst, `,"finish_reason":`...), a.finish...), '}')
}

func (c *answerCall) append(dst []byte) []byte {
	dst = append(append(dst, '{'), c.head[1:]...)
	member, args := `,"function":{"name":`, `,"arguments":`
	if c.custom {
		member, args = `,"custom":{"name":`, `,"input":`
	}
	dst = append(append(dst, member...), c.name...)
	dst = append(append(dst, args...), quoted(c.args)...)
	return append(dst, "}}"...)
}
