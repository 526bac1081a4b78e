package stream

import (
	"bytes"
	"slices"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/shared/openai"
)

// Options say how an answer is repaired.
type Options struct {
	Think   Think
	Choices int // n of the request; 0 = 1
	// Uniform says that texts are wanted in the documented fields, whoever answers: the client does not know the upstream, or does not speak Chat
	// Completions.
	Uniform bool
}

// Filter repairs the events of one stream. It is not safe for concurrent use.
type Filter struct {
	opts    Options
	choices []*choice
	began   bool // output or a finish reason came
	end     End
	done    bool            // [DONE] came
	ended   bool            // End was asked for
	usage   []byte          // raw object of the last usage, wherever it came
	held    []*answer.Chunk // those with finish reasons that wait for the end, and comments behind them
	named   *answer.Chunk   // that begins calls whose names may go on in the next one

	// What the last event gave.
	out   []*answer.Chunk
	made  answer.Queue  // chunks of out that were not read
	calls []answer.Call // repaired
	split split
}

// NewFilter begins a stream.
func NewFilter(opts Options) *Filter { return &Filter{opts: opts} }

// Step is what one event did. It is valid until the next event is taken, and as long as that is.
type Step struct {
	Chunks   []*answer.Chunk // what goes to the client
	Decisive bool            // the upstream really answers
	Done     bool            // the upstream says that the answer is complete: nothing more is to be read
	Resumed  bool            // output came behind a finish reason, which was none
	Problem  []byte          // JSON or text that is an error, or may be one; there are no Chunks then
}

// End is what is told at the end of a complete answer.
type End struct {
	// Chunks go to the client before anything else. They are valid as long as the last event.
	Chunks []*answer.Chunk
	// Usage reports the last usage that came, and nothing else; nil when there was none.
	Usage *answer.Chunk
	// Raw is the end mark as the upstream sent it, if a client may get it so; nil otherwise.
	Raw []byte
}

// Take takes the next event, which it may change.
func (f *Filter) Take(c *answer.Chunk) Step {
	if f.done {
		return Step{}
	}
	f.begin()
	switch c.Kind {
	case answer.Nothing:
		return Step{}
	case answer.Problem:
		return Step{Problem: c.Data}
	case answer.Done:
		f.done, f.end.Raw = true, bytes.Clone(c.Raw)
		return Step{Done: true}
	case answer.Comment:
		f.comment(c)
		return Step{Chunks: f.out}
	case answer.Piece:
	}
	usageKept := f.noteUsage(c)
	switch {
	case c.Plain:
		return f.takeApart(c)
	case len(c.Choices) > 0:
		return f.piece(c)
	case c.UsageOnly():
		if c.Data != nil { // translators tell the usage when they know it, wherever the end is
			f.confirm()
		}
		f.keepUsage(c, usageKept)
	case c.HasChoices: // prompt filter results, costs (STR-06)
		f.tell()
		f.confirm()
		f.pass(c)
	default: // no client can use it; it may be an error in a form of its own, or a chunk of nothing
		return Step{Problem: c.Data}
	}
	return Step{Chunks: f.out}
}

func (f *Filter) begin() {
	f.out, f.calls = f.out[:0], f.calls[:0]
	f.made.Clear()
}

func (f *Filter) pass(c *answer.Chunk) { f.out = append(f.out, c) }

// make gives a chunk of our own with a delta of one choice, to be filled and passed on.
func (f *Filter) make(index int) *answer.Choice {
	c := f.made.Add(answer.Piece)
	f.pass(c)
	return c.Choose(index)
}

// process repairs the choices of a chunk and passes on what is left of it.
func (f *Filter) process(c *answer.Chunk) {
	if f.keep(c, func(ch *answer.Choice) bool { return f.repair(c, ch) }); len(c.Choices) > 0 {
		f.pass(c)
	}
}

// keep leaves those choices in a chunk that are wanted.
func (f *Filter) keep(c *answer.Chunk, wanted func(ch *answer.Choice) bool) {
	left := 0
	for i := range c.Choices {
		ch := &c.Choices[i]
		if !wanted(ch) {
			c.Edited = true
			continue
		}
		c.Edited = c.Edited || ch.Edited
		if left < i {
			c.Choices[left] = *ch
		}
		left++
	}
	c.Choices = c.Choices[:left]
}

// Finished says that every choice has a finish reason, so that the stream may end here. A further choice may still begin if the upstream
// answers more than Options.Choices.
func (f *Filter) Finished() bool {
	return f.every(func(c *choice) bool { return c.finished || c.reason != nil && (c.output || !c.stops(c.reason)) })
}

// Settled says that the stream is Finished and looks like it: nothing but the usage and the end mark is to be expected.
func (f *Filter) Settled() bool {
	return f.every(func(c *choice) bool { return c.finished || c.settled() })
}

func (f *Filter) every(is func(c *choice) bool) bool {
	return len(f.choices) >= max(f.opts.Choices, 1) && !slices.ContainsFunc(f.choices, func(c *choice) bool { return !is(c) })
}

// complete says that every choice that came has its finish reason.
func (f *Filter) complete() bool {
	return len(f.choices) > 0 && !slices.ContainsFunc(f.choices, func(c *choice) bool { return !c.finished && c.reason == nil })
}

// Usage is the last usage that came.
func (f *Filter) Usage() Usage { return openai.ParseUsage(f.usage) }

// End gives the end of a complete stream. A choice without a finish reason makes it an error, also if the upstream said that it is complete:
// proxies do so after an upstream that broke off.
func (f *Filter) End() (End, error) {
	f.begin()
	if f.ended = true; !f.began {
		return End{}, classify.ErrEmptyAnswer
	}
	f.tell()
	f.restore()
	if !f.complete() {
		return End{}, classify.ErrTruncated
	}
	if f.finishAll(); !f.complete() {
		return End{}, classify.ErrTruncated
	}
	end := f.end
	if end.Chunks = f.out; end.Usage == nil && f.usage != nil {
		end.Usage = &answer.Chunk{}
		end.Usage.Reset(answer.Piece)
		end.Usage.Usage = f.usage
	}
	return end, nil
}

// Abort gives what is held back, for a stream that breaks off after it was committed, in place of what an End with an error had.
func (f *Filter) Abort() []*answer.Chunk {
	if !f.ended {
		f.begin()
		f.tell()
	}
	f.confirm()
	f.openAll()
	for _, c := range f.choices {
		f.release(c)
	}
	return f.out
}
