package stream

import (
	"bytes"

	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// Options say what the client gets.
type Options struct {
	Think        Think
	IncludeUsage bool // stream_options.include_usage: exactly one usage chunk at the end, otherwise none (STR-07)
	Choices      int  // n of the request; 0 = 1
}

// Filter is the transform of one event stream. It is not safe for concurrent use.
type Filter struct {
	opts    Options
	choices []*choice
	usage   Usage
	began   bool // something decisive came
	done    bool // [DONE] came
	doneRaw []byte

	envelope  []byte // `{"id":...,"object":...,"created":...,"model":...` of the first chunk, for chunks of our own
	usageOnly []byte // data of the last usage-only chunk, sent at the end when asked for
	usageRaw  []byte // the last usage object, wherever it came
}

// NewFilter begins a stream.
func NewFilter(opts Options) *Filter { return &Filter{opts: opts} }

// Step is what one event did.
type Step struct {
	Out      []byte // dst with what goes to the client appended
	Decisive bool   // the upstream really answers
	Done     bool   // [DONE]: nothing more is to be read
	Problem  []byte // an error, or something that may be one; nothing of the event is in Out
}

// choice is the state of one choice index.
type choice struct {
	index    int64
	think    splitter
	tools    toolCalls
	finished bool
}

// Event takes the next event.
func (f *Filter) Event(dst []byte, e openai.Event) Step {
	step := Step{Out: dst}
	data := bytes.TrimSpace(e.Data)
	switch {
	case len(data) == 0 || f.done:
		return step // comments and blank events mean nothing to a client
	case bytes.HasPrefix(data, []byte("[DONE]")):
		f.done, step.Done = true, true
		if sound(e) {
			f.doneRaw = bytes.Clone(e.Raw)
		}
		return step
	case string(e.Name) == "error":
		step.Problem = data
		return step
	}
	if !rawjson.Valid(data) {
		if data = bytes.ToValidUTF8(data, replacement); rawjson.Valid(data) {
			e.Odd = true // text that is not UTF-8 must not go on as it is
			return f.chunk(step, e, data)
		}
		if !e.Cut { // half a value at the end is a cut stream, which the end reports
			step.Problem = data
		}
		return step
	}
	return f.chunk(step, e, data)
}

var replacement = []byte("\ufffd")

// sound says that an event may pass as it came.
func sound(e openai.Event) bool { return e.Lines == 1 && !e.Odd && !e.Cut }

func (f *Filter) chunk(step Step, e openai.Event, data []byte) Step {
	c := readChunk(data)
	switch {
	case c.failed():
		step.Problem = data
		return step
	case !c.choices.IsArray():
		f.noteUsage(c)
		if !c.usage.IsObject() {
			step.Problem = data // MiniMax and others put errors where choices should be; the caller asks the table
		}
		return step
	}
	f.noteUsage(c)
	f.noteEnvelope(c)
	if c.empty() {
		return f.withoutChoices(step, e, data, c)
	}
	ed := editor{filter: f, chunk: c}
	ed.run()
	step.Decisive = ed.decisive
	f.began = f.began || ed.decisive
	step.Out = append(step.Out, ed.before...)
	switch {
	case ed.dropped:
	case !ed.changed && !c.nullError && sound(e):
		step.Out = append(step.Out, e.Raw...)
	default:
		step.Out = appendData(step.Out, ed.result(data))
	}
	return step
}

// withoutChoices handles chunks with an empty list: usage, prompt filter results, costs.
func (f *Filter) withoutChoices(step Step, e openai.Event, data []byte, c chunk) Step {
	switch {
	case c.usage.IsObject():
		f.usageOnly = append(f.usageOnly[:0], data...)
	case c.nullError || !sound(e):
		step.Out = appendData(step.Out, withoutError(data, c))
	default:
		step.Out = append(step.Out, e.Raw...)
	}
	return step
}

func (f *Filter) noteUsage(c chunk) {
	if u := c.usage; u.IsObject() {
		f.usage = usageOf(u) // running totals: the last one counts (STR-15)
		f.usageRaw = append(f.usageRaw[:0], u.Raw...)
	}
}

func (f *Filter) noteEnvelope(c chunk) {
	if f.envelope != nil {
		return
	}
	f.envelope = append(f.envelope, '{')
	for _, m := range []struct {
		name  string
		value gjson.Result
		other string
	}{{"id", c.id, `"chatcmpl-0"`}, {"object", gjson.Result{}, `"chat.completion.chunk"`}, {"created", c.created, "0"}, {"model", c.model, `""`}} {
		if len(f.envelope) > 1 {
			f.envelope = append(f.envelope, ',')
		}
		f.envelope = append(f.envelope, `"`+m.name+`":`...)
		if m.value.Exists() {
			f.envelope = append(f.envelope, m.value.Raw...)
		} else {
			f.envelope = append(f.envelope, m.other...)
		}
	}
}

// own appends an event of our own to dst: the envelope with these members.
func (f *Filter) own(dst []byte, members ...string) []byte {
	data := f.envelope
	if data == nil {
		data = []byte(`{"object":"chat.completion.chunk"`)
	}
	data = bytes.Clone(data)
	for _, m := range members {
		data = append(append(data, ','), m...)
	}
	return appendData(dst, append(data, '}'))
}

func (f *Filter) choice(index int64) *choice {
	for _, c := range f.choices {
		if c.index == index {
			return c
		}
	}
	c := &choice{index: index}
	f.choices = append(f.choices, c)
	return c
}

// Finished says that every choice has its finish reason.
func (f *Filter) Finished() bool {
	if len(f.choices) < max(1, f.opts.Choices) {
		return false
	}
	for _, c := range f.choices {
		if !c.finished {
			return false
		}
	}
	return true
}

// Usage is the last usage that came.
func (f *Filter) Usage() Usage { return f.usage }

// Missing says what is wrong with a stream that ended now without [DONE]: nothing was answered, or the answer broke off.
func (f *Filter) Missing() error {
	if !f.began {
		return classify.ErrEmptyAnswer
	}
	return classify.ErrTruncated
}

// End appends the end of a complete stream: held text, finish reasons that [DONE] stands for, the usage chunk if it was asked for, and
// [DONE]. A stream without any answer is an error.
func (f *Filter) End(dst []byte) ([]byte, error) {
	if !f.began {
		return dst, classify.ErrEmptyAnswer
	}
	if !f.done && !f.Finished() {
		return dst, classify.ErrTruncated
	}
	for _, c := range f.choices {
		if !c.finished {
			dst = f.close(dst, c)
			dst = f.own(dst, `"choices":[{"index":`+itoa(c.index)+`,"delta":{},"finish_reason":"`+c.reason("stop")+`"}]`)
		}
	}
	if f.opts.IncludeUsage {
		switch {
		case f.usageOnly != nil:
			dst = appendData(dst, f.usageOnly)
		case f.usageRaw != nil:
			dst = f.own(dst, `"choices":[]`, `"usage":`+string(f.usageRaw))
		}
	}
	if f.doneRaw != nil {
		return append(dst, f.doneRaw...), nil
	}
	return append(dst, "data: [DONE]\n\n"...), nil
}

// Abort appends the text that is held back, for a stream that breaks off after it was committed.
func (f *Filter) Abort(dst []byte) []byte {
	for _, c := range f.choices {
		if content, reasoning := c.think.flush(); content != "" || reasoning != "" {
			dst = f.text(dst, c, content, reasoning)
		}
	}
	return dst
}

// close appends what must come before the finish reason of a choice.
func (f *Filter) close(dst []byte, c *choice) []byte {
	if content, reasoning := c.think.flush(); content != "" || reasoning != "" {
		dst = f.text(dst, c, content, reasoning)
	}
	if calls := c.tools.close(); calls != "" {
		dst = f.delta(dst, c, `"tool_calls":`+calls)
	}
	return dst
}

func (f *Filter) text(dst []byte, c *choice, content, reasoning string) []byte {
	if reasoning != "" && f.opts.Think == ThinkSplit {
		dst = f.delta(dst, c, `"reasoning_content":`+quote(reasoning))
	}
	if content != "" {
		dst = f.delta(dst, c, `"content":`+quote(content))
	}
	return dst
}

func (f *Filter) delta(dst []byte, c *choice, member string) []byte {
	return f.own(dst, `"choices":[{"index":`+itoa(c.index)+`,"delta":{`+member+`},"finish_reason":null}]`)
}

// reason corrects a finish reason: with tool calls it is never stop (STR-09).
func (c *choice) reason(given string) string {
	if given == "stop" && len(c.tools.list) > 0 {
		return "tool_calls"
	}
	return given
}
