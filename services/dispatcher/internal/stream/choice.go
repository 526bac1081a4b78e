package stream

import (
	"bytes"

	"hydrallm/services/dispatcher/internal/answer"
)

// choice is the state of one choice index (R-226, STR-14).
type choice struct {
	index        int
	think        splitter
	tools        toolCalls
	hasRole      bool // a delta with the role came
	functionCall bool // a call in the old form came
	output       bool // something that a client shows or runs came
	answered     bool // more than thoughts came

	reason   []byte // raw finish reason that waits for the end of the stream; nil for none
	recalled []byte // the last one that was none, since output came behind it; nil for none
	late     bool   // recalled came behind an answer
	finished bool
	broken   bool // it can't be made right, so it never finishes and nothing more of it is sent
}

func (f *Filter) choice(index int) *choice {
	for _, c := range f.choices {
		if c.index == index {
			return c
		}
	}
	c := &choice{index: index}
	f.choices = append(f.choices, c)
	return c
}

// repair repairs one choice of a chunk and answers whether anything of it is left. What has to reach the client before the chunk is passed on.
// A choice that can't be made right never finishes, so that the stream ends as a truncated one.
func (f *Filter) repair(c *answer.Chunk, ch *answer.Choice) bool {
	st := f.choice(ch.Index)
	if st.finished || st.broken { // a chunk that was held may hold more of a choice that has finished since
		return false
	}
	digitsToText(ch)
	st.functionCall = st.functionCall || len(ch.FunctionCall) > len("null")

	finishing := finishReason(ch.Finish, false, false, true) != nil
	closing, ok := f.repairCalls(st, ch, finishing)
	if !ok {
		st.broken = true
		return false
	}
	withRole := answer.Given(ch.Role) != nil
	if f.opts.Think != ThinkOff || f.opts.Uniform {
		f.editText(&st.think, ch, finishing, withRole)
	}
	if finishing {
		f.release(st)
		if len(closing) > 0 {
			f.make(st.index).Calls = closing
		}
	}
	if withRole {
		if st.hasRole { // clients that join deltas would get "assistantassistant"
			ch.Role, ch.Edited = nil, true
		}
		st.hasRole = true
	}
	finish := finishReason(ch.Finish, st.tools.sent > 0, st.functionCall, st.output)
	st.finished = finish != nil
	if !st.finished && (ch.Edited || f.opts.Think != ThinkOff || ch.Delta == nil) && nothingLeft(c, ch) {
		return false
	}
	if finish == nil && len(ch.Finish) > 0 {
		finish = null
	}
	if !bytes.Equal(finish, ch.Finish) {
		ch.Finish, ch.Edited = finish, true
	}
	ch.Edited = ch.Edited || ch.Delta == nil || ch.NoIndex
	return true
}

var null = []byte("null")

// repairCalls repairs the tool calls of a delta. What is missing at the end of the choice goes into the delta if it has calls, else it is given
// back for an event of its own.
func (f *Filter) repairCalls(st *choice, ch *answer.Choice, finishing bool) (closing []answer.Call, ok bool) {
	inDelta := len(ch.Calls) > 0 || isArray(ch.ToolCalls)
	from := len(f.calls)
	calls, changed := st.tools.add(f.calls, ch.Calls)
	if finishing {
		if closing, ok = st.tools.close(); !ok {
			return nil, false
		}
		if inDelta && len(closing) > 0 {
			if !changed {
				calls = append(calls, ch.Calls...)
			}
			calls, closing, changed = append(calls, closing...), nil, true
		}
	}
	if f.calls = calls; inDelta && changed {
		ch.ToolCalls, ch.Calls, ch.Edited = nil, calls[from:len(calls):len(calls)], true
	}
	return closing, true
}

// nothingLeft says whether the choice would bring the client nothing.
func nothingLeft(c *answer.Chunk, ch *answer.Choice) bool {
	if c.Usage != nil && !c.UsageInside || ch.Extra || answer.Given(ch.Logprobs) != nil {
		return false
	}
	if answer.Given(ch.Role) != nil || answer.Given(ch.Refusal) != nil || answer.Given(ch.FunctionCall) != nil {
		return false
	}
	if len(ch.Calls) > 0 || answer.Given(ch.ToolCalls) != nil && string(ch.ToolCalls) != "[]" {
		return false
	}
	return answer.Given(ch.Content) == nil && answer.Given(ch.ReasoningContent) == nil && answer.Given(ch.Reasoning) == nil
}

// release passes on the text that a choice holds back.
func (f *Filter) release(st *choice) {
	var held split
	st.think.flush(&held)
	if len(held.reasoning) > 0 && f.opts.Think == ThinkSplit {
		f.make(st.index).ReasoningContent = answer.Quoted(held.reasoning)
	}
	if len(held.content) > 0 {
		f.make(st.index).Content = answer.Quoted(held.content)
	}
}
