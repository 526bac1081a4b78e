package stream

import (
	"bytes"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/shared/openai/rawjson"
)

// Collector puts an event stream together to the whole answer that a client asked for although the upstream streamed. It reads what a Filter
// makes of the stream, so that both ways give the same answer.
type Collector struct {
	filter *Filter
	said   Transcript
	size   int
}

// maxCollected bounds the data that is put together, in bytes.
const maxCollected = 64 << 20

// collected is one choice being put together. Texts are inner parts of JSON strings, other values are raw.
type collected struct {
	index                       int
	content, reasoning, refusal []byte
	calls                       []collectedCall
	oldCall                     oldCall
	others                      others
	logprobs                    []byte // elements of logprobs.content
	finish                      []byte
}

// collectedCall is a call being put together: what its first delta says, and the arguments, an inner part of a string.
type collectedCall struct {
	first answer.Call
	args  []byte
}

// NewCollector begins an answer.
func NewCollector(opts Options) *Collector {
	opts.Uniform = true
	return &Collector{filter: NewFilter(opts)}
}

// Take takes the next event, as Filter.Take does. The error is classify.ErrTooLarge.
func (c *Collector) Take(e *answer.Chunk) (Step, error) {
	if c.size += e.Size(); c.size > maxCollected {
		return Step{}, classify.ErrTooLarge
	}
	step := c.filter.Take(e)
	c.said.Take(step.Chunks)
	return step, nil
}

// Finished says that the stream may end here, as Filter.Finished does.
func (c *Collector) Finished() bool { return c.filter.Finished() }

// Settled says that the stream looks finished, as Filter.Settled does.
func (c *Collector) Settled() bool { return c.filter.Settled() }

// Usage is the last usage that came.
func (c *Collector) Usage() Usage { return c.filter.Usage() }

// Whole is the whole answer. The error says that the stream broke off or held none.
func (c *Collector) Whole() (*answer.Chunk, error) {
	end, err := c.filter.End()
	if err != nil {
		return nil, err
	}
	c.said.Take(end.Chunks)
	whole := c.said.Whole()
	whole.Usage = c.filter.usage
	return whole, nil
}

func (a *collected) add(ch *answer.Choice) {
	a.content = append(a.content, answer.Inner(ch.Content)...)
	if isArray(ch.Content) { // of a stream that is passed on as it is
		var parts split
		parts.take(ch.Content)
		a.content, a.reasoning = append(a.content, parts.content...), append(a.reasoning, parts.reasoning...)
	}
	a.refusal = append(a.refusal, answer.Inner(ch.Refusal)...)
	if thought := answer.Inner(ch.ReasoningContent); len(thought) > 0 {
		a.reasoning = append(a.reasoning, thought...)
	} else {
		a.reasoning = append(a.reasoning, answer.Inner(ch.Reasoning)...)
	}
	for i := range ch.Calls {
		a.addCall(&ch.Calls[i])
	}
	a.oldCall.add(ch.FunctionCall)
	a.others.add(ch)
	logprobs := rawjson.Get(ch.Logprobs, "content")
	for span := range rawjson.Elements(logprobs) {
		if len(a.logprobs) > 0 {
			a.logprobs = append(a.logprobs, ',')
		}
		a.logprobs = append(a.logprobs, span.Of(logprobs)...)
	}
	if answer.IsText(ch.Finish) {
		a.finish = bytes.Clone(ch.Finish)
	}
}

// addCall takes a delta of a call. The filter sees to it that indexes count up from 0 and that the first delta has everything.
func (a *collected) addCall(c *answer.Call) {
	if c.Index == len(a.calls) {
		others, tool := c.More()
		a.calls = append(a.calls, collectedCall{first: answer.Call{
			Index: -1, ID: bytes.Clone(c.ID), Type: bytes.Clone(c.Type), Name: bytes.Clone(c.Name), Custom: c.Custom,
			Others: bytes.Clone(others), ToolOthers: bytes.Clone(tool),
		}})
	}
	if c.Index >= 0 && c.Index < len(a.calls) {
		call := &a.calls[c.Index]
		call.args = append(call.args, c.ArgText()...)
	}
}

// fill makes the choice of the whole answer.
func (a *collected) fill(ch *answer.Choice) {
	ch.Role, ch.Content, ch.Finish = assistant, answer.Quoted(a.content), a.finish
	if len(a.content) == 0 && (len(a.calls) > 0 || a.oldCall.came || len(a.refusal) > 0) {
		ch.Content = null
	}
	if len(a.reasoning) > 0 {
		ch.ReasoningContent = answer.Quoted(a.reasoning)
	}
	if len(a.refusal) > 0 {
		ch.Refusal = answer.Quoted(a.refusal)
	}
	for _, call := range a.calls {
		call.first.Args = answer.Quoted(call.args)
		ch.Calls = append(ch.Calls, call.first)
	}
	ch.FunctionCall = a.oldCall.raw()
	ch.Delta, ch.Extra = a.others.object(), len(a.others) > 0
	if len(a.logprobs) > 0 {
		ch.Logprobs = append(append([]byte(`{"content":[`), a.logprobs...), `]}`...)
	}
}
