package stream

import (
	"strconv"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/shared/openai/rawjson"
)

// takeApart takes a chunk that is a whole answer as if it had come piece by piece, so that it gets the same repairs (STR-10): reasoning, text,
// calls, finish reason.
func (f *Filter) takeApart(c *answer.Chunk) Step {
	step := Step{Decisive: c.Decisive()}
	for i := range c.Choices {
		ch := &c.Choices[i]
		w := pieces{filter: f, whole: c, choice: ch, index: ch.Index}
		if w.index == 0 {
			w.index = i
		}
		if st := f.choice(w.index); st.reason == nil { // a whole answer behind the pieces of it says nothing new
			w.pass()
		}
	}
	step.Chunks = f.out
	return step
}

// pieces are the pieces of a choice of a whole answer.
type pieces struct {
	filter *Filter
	whole  *answer.Chunk
	choice *answer.Choice
	index  int
}

func (w *pieces) pass() {
	ch := w.choice
	w.piece(func(p *answer.Choice) { p.Role, p.Content = assistant, noText })
	if raw := answer.Given(ch.ReasoningContent); raw != nil {
		w.piece(func(p *answer.Choice) { p.ReasoningContent = raw })
	} else if raw := answer.Given(ch.Reasoning); raw != nil {
		w.piece(func(p *answer.Choice) { p.Reasoning = raw })
	}
	if ch.Extra || answer.Given(ch.Refusal) != nil || answer.Given(ch.FunctionCall) != nil {
		others := answer.AppendOthers(nil, ch.Delta, "role", "content", "reasoning_content", "reasoning", "tool_calls")
		others[0] = '{' // the comma before the first
		w.piece(func(p *answer.Choice) {
			p.Delta, p.Extra, p.Refusal, p.FunctionCall = append(others, '}'), ch.Extra, ch.Refusal, ch.FunctionCall
		})
	}
	if raw := answer.Given(ch.Content); raw != nil {
		w.piece(func(p *answer.Choice) { p.Content, p.Logprobs = raw, answer.Given(ch.Logprobs) })
	}
	if len(ch.Calls) > 0 {
		w.piece(func(p *answer.Choice) { p.Calls = indexed(ch.Calls) })
	}
	finish := ch.Finish
	if finishReason(finish, false, false, true) == nil {
		finish = finishStop
	}
	w.piece(func(p *answer.Choice) { p.Finish = finish })
}

var assistant, noText = []byte(`"assistant"`), []byte(`""`)

// piece passes one piece through the filter.
func (w *pieces) piece(fill func(p *answer.Choice)) {
	c := w.filter.made.Add(answer.Piece)
	c.ID, c.Created, c.Model = w.whole.ID, w.whole.Created, w.whole.Model
	fill(c.Choose(w.index))
	w.filter.piece(c)
}

// indexed gives each call of a whole answer its index.
func indexed(calls []answer.Call) []answer.Call {
	out := make([]answer.Call, len(calls))
	for i, c := range calls {
		if len(c.Raw) > 0 && c.Raw[0] == '{' {
			c.Raw = rawjson.AppendSet(nil, c.Raw, "index", strconv.AppendInt(nil, int64(i), 10))
		}
		c.Index, c.PlainIndex = i, true
		out[i] = c
	}
	return out
}
