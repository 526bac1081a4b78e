package stream

import (
	"bytes"
	"unicode/utf8"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// Options say what the client gets.
type Options struct {
	Think        Think
	IncludeUsage bool   // stream_options.include_usage: exactly one usage chunk at the end, otherwise none (STR-07)
	Choices      int    // n of the request; 0 = 1
	Model        string // name that every chunk or answer states, with one id for all chunks (C-07); "" leaves the upstream's

	// What a routed answer tells about itself.
	Usage []Member // members of its usage, which it has then in any case; none leaves the upstream's
	Parts []byte   // array in the message of a whole answer; nil for none
}

// Usage is the number of tokens of an answer.
type Usage = openai.Usage

// Filter is the transform of one event stream. It is not safe for concurrent use.
type Filter struct {
	opts    Options
	uniform bool // the client gets texts in the documented fields, whoever answers: it does not know the upstream, or one JSON answer is made
	head    head
	chunk   openai.Chunk
	choices []*choice

	began   bool   // something decisive came
	done    bool   // [DONE] came
	doneRaw []byte // as it came, if it may pass so

	usage      []byte // raw object of the last usage, wherever it came
	usageEvent []byte // event of the last usage-only chunk, as it goes out at the end; nil when other usage came after it

	// Buffers that are used again for each chunk.
	parts []part
	text  []byte // rewritten choices
	calls []byte
	split split
	body  []byte
}

// NewFilter begins a stream.
func NewFilter(opts Options) *Filter { return &Filter{opts: opts, uniform: opts.Model != ""} }

// Step is what one event did.
type Step struct {
	Out      []byte // dst with what goes to the client appended
	Decisive bool   // the upstream really answers
	Done     bool   // [DONE]: nothing more is to be read
	Problem  []byte // JSON or text that is an error, or may be one; nothing of the event is in Out then
}

// Event takes the next event. What goes to the client is appended to dst. Problem may alias the event.
func (f *Filter) Event(dst []byte, e openai.Event) Step {
	step := Step{Out: dst}
	if f.done {
		return step
	}
	if e.Data == nil {
		if e.Name == nil && e.ID == nil && e.Retry == nil && !e.Cut && !e.Noncanonical {
			step.Out = append(dst, e.Raw...) // a comment stays one (SSE-04)
		}
		return step
	}
	data := bytes.TrimSpace(e.Data)
	switch {
	case len(data) == 0 || data[0] == ':': // nothing, or a comment that another proxy took for data
		return step
	case openai.IsDone(data):
		f.done, step.Done = true, true
		if wellformed(&e) && len(e.Data) == len("[DONE]") { // with spaces around it, some clients take it for JSON
			f.doneRaw = bytes.Clone(e.Raw)
		}
		return step
	}
	f.chunk.Parse(data)
	if !f.chunk.Valid && !utf8.Valid(data) { // such text must not go on as it is
		data = bytes.ToValidUTF8(data, replacement)
		e.Noncanonical = true
		f.chunk.Parse(data)
	}
	switch {
	case string(e.Name) == "error":
		step.Problem = f.namedError(data)
	case !f.chunk.Error.IsZero():
		step.Problem = data
	case f.chunk.Valid:
		return f.valid(step, &e)
	case !e.Cut: // half a value at the end is a cut stream, which End reports (SSE-10)
		step.Problem = data
	}
	return step
}

var replacement = []byte("\ufffd")

// namedError gives the data of an event with the name "error" in a form that nobody takes for anything else.
func (f *Filter) namedError(data []byte) []byte {
	if !f.chunk.Error.IsZero() {
		return data
	}
	out := []byte(`{"error":`)
	if f.chunk.Valid {
		out = append(out, data...)
	} else {
		out = rawjson.AppendString(out, data)
	}
	return append(out, '}')
}

// wellformed says that an event may pass as it came, if its data may.
func wellformed(e *openai.Event) bool { return e.Lines == 1 && !e.Noncanonical && !e.Cut }

// valid takes a chunk that reports no error.
func (f *Filter) valid(step Step, e *openai.Event) Step {
	c := &f.chunk
	f.head.learn(c)
	f.noteUsage()
	switch {
	case c.Plain:
		return f.whole(step)
	case len(c.Choices) > 0:
		return f.withChoices(step, e)
	case c.UsageOnly():
		if f.opts.IncludeUsage {
			f.usageEvent = f.appendChunk(f.usageEvent[:0], e, false)
		}
	case c.HasChoices: // prompt filter results, costs (STR-06)
		step.Out = f.appendChunk(step.Out, e, false)
	default: // no client can use it; it may be an error in a form of its own, or a chunk of nothing
		step.Problem = c.Data
	}
	return step
}

// noteUsage keeps the last usage: upstreams send running totals (STR-15).
func (f *Filter) noteUsage() {
	if c := &f.chunk; !c.Usage.IsZero() {
		f.usage = append(f.usage[:0], c.Usage.Of(c.Data)...)
		f.usageEvent = f.usageEvent[:0]
	}
}

// withChoices repairs the choices of a chunk and passes on what is left of it.
func (f *Filter) withChoices(step Step, e *openai.Event) Step {
	c := &f.chunk
	f.parts, f.text = f.parts[:0], f.text[:0]
	changed, kept := false, false
	for i := range c.Choices {
		p := f.rewriteChoice(&step.Out, &c.Choices[i])
		f.parts = append(f.parts, p)
		changed = changed || p.gone || !p.text.IsZero()
		kept = kept || !p.gone
	}
	step.Decisive = c.Decisive()
	f.began = f.began || step.Decisive
	if kept {
		step.Out = f.appendChunk(step.Out, e, changed)
	}
	return step
}

// Finished says that every choice has its finish reason. A further choice may still begin if the upstream answers more than Options.Choices.
func (f *Filter) Finished() bool { return len(f.choices) >= f.opts.Choices && f.complete() }

// complete says that every choice that came has its finish reason.
func (f *Filter) complete() bool {
	for _, c := range f.choices {
		if !c.finished {
			return false
		}
	}
	return len(f.choices) > 0
}

// Usage is the last usage that came.
func (f *Filter) Usage() Usage { return openai.ParseUsage(f.usage) }

// missing says what is wrong with a stream that ended now: nothing was answered, or the answer broke off.
func (f *Filter) missing() error {
	if !f.began {
		return classify.ErrEmptyAnswer
	}
	return classify.ErrTruncated
}

// End appends the end of a complete stream: the usage chunk if it was asked for, and [DONE]. A choice without a finish reason makes it an
// error, also if [DONE] came: proxies write that after an upstream that broke off.
func (f *Filter) End(dst []byte) ([]byte, error) {
	if !f.began || !f.complete() {
		return dst, f.missing()
	}
	if f.opts.IncludeUsage && (f.usage != nil || len(f.opts.Usage) > 0) {
		if len(f.opts.Usage) > 0 {
			dst = f.appendOwn(dst, `"choices":[],"usage":`, string(f.fullUsage(f.usage)))
		} else if len(f.usageEvent) > 0 {
			dst = append(dst, f.usageEvent...)
		} else {
			dst = f.appendOwn(dst, `"choices":[],"usage":`, string(f.usage))
		}
	}
	if f.doneRaw != nil {
		return append(dst, f.doneRaw...), nil
	}
	return append(dst, openai.Done...), nil
}

// Abort appends the text that is held back, for a stream that breaks off after it was committed.
func (f *Filter) Abort(dst []byte) []byte {
	for _, c := range f.choices {
		dst = f.appendHeld(dst, c)
	}
	return dst
}
