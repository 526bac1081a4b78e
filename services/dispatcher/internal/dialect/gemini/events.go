package gemini

import (
	"bytes"
	"slices"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// Events begins the translation of an event stream. What is no answer comes as it is, and so does the event with which an attempt fails that
// brought no answer; the answer is not done then.
func (Translator) Events() answer.Translator { return &events{} }

// events is a stream while it is translated.
type events struct {
	out *answer.Queue // of the event at hand

	head    answer.Head
	begun   bool // head is known
	choices []*choice
	usage   usage
	told    []byte // the usage as the client knows it
	broken  bool   // something came that is no answer, or the attempt failed
}

// Event translates one event.
func (e *events) Event(out *answer.Queue, event *openai.Event) (more bool) {
	e.out = out
	e.event(event)
	return true
}

// End says that the answer is done, if it is: the provider does not.
func (e *events) End(out *answer.Queue) {
	if e.complete() && !e.broken {
		out.Add(answer.Done)
	}
}

// complete says that every candidate that came has its finish reason.
func (e *events) complete() bool {
	return len(e.choices) > 0 && !slices.ContainsFunc(e.choices, func(c *choice) bool { return c.finish == "" })
}

func (e *events) event(event *openai.Event) {
	if event.Data == nil {
		e.out.Add(answer.Nothing).Read(event) // a comment is a sign of life
		return
	}
	data := bytes.TrimSpace(event.Data)
	if len(data) == 0 || openai.IsDone(data) {
		return
	}
	r, ok := readReply(data)
	switch {
	case !ok && event.Cut && !rawjson.Valid(data): // half an event is the end of a cut stream
		e.broken = true
	case !ok:
		e.broken = true
		e.out.Add(answer.Nothing).Read(event) // for the next reader to judge
	case !e.broken:
		e.reply(&r, data)
	}
}

func (e *events) reply(r *reply, data []byte) {
	if !e.begun {
		e.begun, e.head = true, headOf(r)
	}
	badOutput := false
	for _, c := range r.candidates {
		e.candidate(c)
		badOutput = badOutput || failed(c.finish)
	}
	if badOutput && !slices.ContainsFunc(e.choices, func(c *choice) bool { return c.output }) {
		e.broken = true
		e.out.Clear() // what was made of this event
		e.out.Problem(data)
		return
	}
	if r.blocked && len(r.candidates) == 0 {
		e.block()
	}
	if r.usage != nil {
		e.usage.take(r.usage)
	}
	if e.usage.known && e.complete() {
		e.tellUsage()
	}
}

// candidate takes the next piece of a candidate. Other servers of the protocol state a finish reason with every piece; what comes of it is for the
// reader of the chunks to see.
func (e *events) candidate(c candidate) {
	ch := e.choice(c.index)
	m := ch.read(c.parts)
	if m.some() {
		ch.finish = ""
	}
	if len(m.reasoning) > 0 {
		e.piece(ch).ReasoningContent = answer.Quoted(m.reasoning)
	}
	if len(m.content) > 0 {
		e.piece(ch).Content = answer.Quoted(m.content)
	}
	e.extra(ch, "images", m.images)
	if len(m.calls) > 0 {
		e.piece(ch).Calls = m.calls
	}
	ch.ground(c.grounding)
	if c.finish != "" {
		e.finish(ch, c.finish)
	}
}

// choice gives the state of a candidate. A new one begins with its role.
func (e *events) choice(index int) *choice {
	i := slices.IndexFunc(e.choices, func(c *choice) bool { return c.index == index })
	if i >= 0 {
		return e.choices[i]
	}
	c := &choice{index: index, numbered: true}
	e.choices = append(e.choices, c)
	role := e.piece(c)
	role.Role, role.Content = assistant, noText
	return c
}

func (e *events) finish(c *choice, reason string) {
	before := c.finish
	if c.close(reason); c.finish == before {
		return
	}
	e.extra(c, "annotations", c.newCitations())
	e.piece(c).Finish = []byte(`"` + c.finish + `"`)
}

// block ends what is open, because the prompt is refused.
func (e *events) block() {
	if len(e.choices) == 0 {
		e.choice(0)
	}
	for _, c := range e.choices {
		if c.finish == "" {
			e.finish(c, "SAFETY")
		}
	}
}
