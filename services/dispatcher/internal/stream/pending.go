package stream

import (
	"bytes"
	"slices"

	"hydrallm/services/dispatcher/internal/answer"
)

// A finish reason waits until the stream is over, since many upstreams state one before the text, or with each piece of it. The chunk that
// has it is held, so that a sound stream keeps its bytes and their order. Output behind it shows that it was none.

// maxHeldComments bounds the comments that wait behind a finish reason.
const maxHeldComments = 16

// stops says whether a raw finish reason means no more than that the answer is over.
func (c *choice) stops(reason []byte) bool {
	return string(finishReason(reason, false, false, c.output)) == string(finishStop)
}

// settled says whether the finish reason that waits is likely to be the end. A stop without an answer, maybe after thoughts, is not.
func (c *choice) settled() bool { return c.reason != nil && (c.answered || !c.stops(c.reason)) }

// sure says whether other events than the end of the stream may confirm the finish reason that waits.
func (c *choice) sure() bool { return c.settled() && c.recalled == nil }

// finishes says whether a choice of a chunk has a finish reason.
func finishes(ch *answer.Choice) bool { return finishReason(ch.Finish, false, false, true) != nil }

// piece takes a chunk with choices.
func (f *Filter) piece(c *answer.Chunk) (step Step) {
	step.Chunks = f.out
	if f.joinNames(c) {
		step.Decisive = true
		return step
	}
	f.tell()
	finishing, flowing, again, behind := false, false, false, false
	f.keep(c, func(ch *answer.Choice) bool {
		st := f.choice(ch.Index)
		if st.finished || st.broken { // nothing may follow the finish reason (STR-09)
			return false
		}
		output, finish := ch.HasOutput(), finishes(ch)
		st.output = st.output || output
		step.Decisive = step.Decisive || output || finish && !st.stops(ch.Finish)
		if st.reason != nil {
			if !output {
				left := st.restate(ch)
				behind = behind || left
				return left
			}
			f.recall(st)
			step.Resumed = true
		}
		st.answered = st.answered || ch.HasAnswer()
		finishing, flowing = finishing || finish, flowing || output && !finish
		again = again || output && finish && st.recalled != nil
		return true
	})
	f.began = f.began || step.Decisive || finishing
	switch {
	case finishing && !flowing && !again && !behind:
		f.hold(c)
	case finishing:
		f.detach(c, flowing)
		fallthrough
	default:
		if flowing {
			f.confirm()
		}
		f.announce(c)
	}
	step.Chunks = f.out
	return step
}

// restate takes a piece without output for a choice whose finish reason waits, and answers whether it goes on: with members that some clients know,
// or the first role. Of two reasons the first counts that says more than that the answer is over.
func (c *choice) restate(ch *answer.Choice) bool {
	if finishes(ch) && c.stops(c.reason) && !c.stops(ch.Finish) {
		c.reason = bytes.Clone(ch.Finish)
	}
	ch.Finish, ch.Edited = null, true
	return ch.Extra || answer.Given(ch.Role) != nil && !c.hasRole && !c.output
}

// hold keeps a chunk with finish reasons.
func (f *Filter) hold(c *answer.Chunk) {
	c = c.Clone()
	for i := range c.Choices {
		if ch := &c.Choices[i]; finishes(ch) {
			f.choice(ch.Index).reason = ch.Finish
		}
	}
	f.held = append(f.held, c)
}

// detach takes those finish reasons out of a chunk that wait, although the chunk goes on. If another choice of it flows, the others wait only
// if they have to.
func (f *Filter) detach(c *answer.Chunk, flowing bool) {
	for i := range c.Choices {
		ch := &c.Choices[i]
		if !finishes(ch) {
			continue
		}
		st := f.choice(ch.Index)
		if st.reason = bytes.Clone(ch.Finish); flowing && st.sure() {
			st.reason = nil
			continue
		}
		ch.Finish, ch.Edited = null, true
	}
}

// recall takes back the finish reason of a choice, and passes on the chunk that has it.
func (f *Filter) recall(st *choice) {
	st.late = st.settled()
	st.recalled, st.reason = st.reason, nil
	f.walk(func(c *answer.Chunk) bool {
		if !slices.ContainsFunc(c.Choices, func(ch answer.Choice) bool { return ch.Index == st.index && finishes(&ch) }) {
			return c.Kind == answer.Comment
		}
		f.open(c)
		return true
	})
}

// open takes the finish reasons out of a chunk that was held.
func (f *Filter) open(c *answer.Chunk) {
	for i := range c.Choices {
		if ch := &c.Choices[i]; finishes(ch) {
			ch.Finish, ch.Edited = null, true
		}
	}
}

// walk passes on those of the held chunks for which release is true.
func (f *Filter) walk(release func(c *answer.Chunk) bool) {
	f.held = slices.DeleteFunc(f.held, func(c *answer.Chunk) bool {
		if !release(c) {
			return false
		}
		if c.Kind == answer.Comment {
			f.pass(c)
		} else {
			f.process(c)
		}
		return true
	})
}

// confirm finishes the choices whose finish reason is believed already: something came that belongs behind it.
func (f *Filter) confirm() {
	f.walk(func(c *answer.Chunk) bool {
		for i := range c.Choices {
			if ch := &c.Choices[i]; finishes(ch) && !f.choice(ch.Index).sure() {
				return false
			}
		}
		f.state(c)
		return true
	})
}

// state gives a held chunk the finish reasons of its choices, which wait no longer.
func (f *Filter) state(c *answer.Chunk) {
	for i := range c.Choices {
		ch := &c.Choices[i]
		if !finishes(ch) {
			continue
		}
		st := f.choice(ch.Index)
		if !bytes.Equal(ch.Finish, st.reason) {
			ch.Finish, ch.Edited = st.reason, true
		}
		st.reason = nil
	}
}

// finishAll finishes all choices that have a finish reason.
func (f *Filter) finishAll() {
	f.walk(func(c *answer.Chunk) bool {
		f.state(c)
		return true
	})
	for _, st := range f.choices {
		if st.reason == nil {
			continue
		}
		c := f.made.Add(answer.Piece)
		c.Choose(st.index).Finish = st.reason
		st.reason = nil
		f.process(c)
	}
}

// openAll passes on what is held, without finish reasons.
func (f *Filter) openAll() {
	f.walk(func(c *answer.Chunk) bool {
		f.open(c)
		return true
	})
}

// restore gives choices the finish reason back that was taken from them, if there came no other, and the upstream says that all is complete or
// had stated it behind an answer.
func (f *Filter) restore() {
	for _, st := range f.choices {
		if !st.finished && st.reason == nil && (f.done || st.late) {
			st.reason = st.recalled
		}
	}
}

// comment passes a comment on, behind the finish reason that it came behind.
func (f *Filter) comment(c *answer.Chunk) {
	f.tell()
	comments := 0
	for _, h := range f.held {
		if h.Kind == answer.Comment {
			comments++
		}
	}
	switch {
	case !slices.ContainsFunc(f.choices, (*choice).sure):
		f.pass(c)
	case comments < maxHeldComments:
		f.held = append(f.held, c.Clone())
	}
}
