package stream

import (
	"bytes"

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
	began   bool // something decisive came
	end     End
	done    bool   // [DONE] came
	usage   []byte // raw object of the last usage, wherever it came

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
	Problem  []byte          // JSON or text that is an error, or may be one; there are no Chunks then
}

// End is what is told at the end of a complete answer.
type End struct {
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
	f.out, f.calls = f.out[:0], f.calls[:0]
	f.made.Clear()
	switch c.Kind {
	case answer.Nothing:
		return Step{}
	case answer.Problem:
		return Step{Problem: c.Data}
	case answer.Done:
		f.done, f.end.Raw = true, bytes.Clone(c.Raw)
		return Step{Done: true}
	case answer.Comment:
		f.pass(c)
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
		f.keepUsage(c, usageKept)
	case c.HasChoices: // prompt filter results, costs (STR-06)
		f.pass(c)
	default: // no client can use it; it may be an error in a form of its own, or a chunk of nothing
		return Step{Problem: c.Data}
	}
	return Step{Chunks: f.out}
}

func (f *Filter) pass(c *answer.Chunk) { f.out = append(f.out, c) }

// make gives a chunk of our own with a delta of one choice, to be filled and passed on.
func (f *Filter) make(index int) *answer.Choice {
	c := f.made.Add(answer.Piece)
	f.pass(c)
	return c.Choose(index)
}

// piece repairs the choices of a chunk and passes on what is left of it.
func (f *Filter) piece(c *answer.Chunk) Step {
	step := Step{Decisive: c.Decisive()}
	f.began = f.began || step.Decisive
	left := 0
	for i := range c.Choices {
		ch := &c.Choices[i]
		if !f.repair(c, ch) {
			c.Edited = true
			continue
		}
		c.Edited = c.Edited || ch.Edited
		if left < i {
			c.Choices[left] = *ch
		}
		left++
	}
	if c.Choices = c.Choices[:left]; left > 0 {
		f.pass(c)
	}
	step.Chunks = f.out
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

// End gives the end of a complete stream. A choice without a finish reason makes it an error, also if the upstream said that it is complete:
// proxies do so after an upstream that broke off.
func (f *Filter) End() (End, error) {
	switch {
	case !f.began:
		return End{}, classify.ErrEmptyAnswer
	case !f.complete():
		return End{}, classify.ErrTruncated
	}
	end := f.end
	if end.Usage == nil && f.usage != nil {
		end.Usage = &answer.Chunk{}
		end.Usage.Reset(answer.Piece)
		end.Usage.Usage = f.usage
	}
	return end, nil
}

// Abort gives the text that is held back, for a stream that breaks off after it was committed.
func (f *Filter) Abort() []*answer.Chunk {
	f.out = f.out[:0]
	f.made.Clear()
	for _, c := range f.choices {
		f.release(c)
	}
	return f.out
}
