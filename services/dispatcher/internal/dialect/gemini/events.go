package gemini

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// keptBuffer is the largest buffer that is used again for the next event.
const keptBuffer = 256 << 10

// Events translates an event stream. What is no answer passes as it came, and so does the event with which an attempt fails that brought no
// answer; [DONE] does not follow then.
func (Translator) Events(r io.Reader) io.Reader {
	return &events{src: openai.NewReader(r, openai.DefaultMaxEvent)}
}

// events is a stream while it is translated: each read takes as many events as it needs to have something.
type events struct {
	src  *openai.Reader
	err  error  // final
	out  []byte // translated
	from int    // what of it was read

	head    []byte // of all chunks, not closed; nil before the first
	body    []byte // of the chunk at hand
	choices []*choice
	usage   []byte // raw usageMetadata, the last that came
	told    []byte // the usage as the client knows it
	broken  bool   // something came that is no answer, or the attempt failed
}

// Read gives translated events.
func (e *events) Read(p []byte) (int, error) {
	for len(p) > 0 && e.from == len(e.out) {
		if e.err != nil {
			return 0, e.err
		}
		e.out, e.from = reuse(e.out), 0
		e.next()
	}
	n := copy(p, e.out[e.from:])
	e.from += n
	return n, nil
}

func reuse(buf []byte) []byte {
	if cap(buf) > keptBuffer {
		return nil
	}
	return buf[:0]
}

func (e *events) next() {
	event, err := e.src.Next()
	switch {
	case err == nil:
		e.event(&event)
	case errors.Is(err, io.EOF) && e.complete() && !e.broken:
		e.out = append(e.out, openai.Done...)
	}
	e.err = err
}

// complete says that every candidate that came has its finish reason.
func (e *events) complete() bool {
	return len(e.choices) > 0 && !slices.ContainsFunc(e.choices, func(c *choice) bool { return c.finish == "" })
}

func (e *events) event(event *openai.Event) {
	if event.Data == nil {
		e.pass(event) // a comment is a sign of life
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
		e.pass(event)
	case !e.broken:
		e.reply(&r, data)
	}
}

// pass appends an event as it came, or in plain lines.
func (e *events) pass(event *openai.Event) {
	switch {
	case !event.Noncanonical && !event.Cut:
		e.out = append(e.out, event.Raw...)
	case event.Data != nil:
		e.out = openai.AppendData(e.out, event.Data)
	}
}

func (e *events) reply(r *reply, data []byte) {
	if e.head == nil {
		e.head = appendHead(nil, r, "chat.completion.chunk")
	}
	start := len(e.out)
	badOutput := false
	for _, c := range r.candidates {
		e.candidate(c)
		badOutput = badOutput || failed(c.finish)
	}
	if badOutput && !slices.ContainsFunc(e.choices, func(c *choice) bool { return c.output }) {
		e.broken = true
		e.out = openai.AppendData(e.out[:start], data)
		return
	}
	if r.blocked && len(r.candidates) == 0 {
		e.block()
	}
	if r.usage != nil {
		e.usage = append(e.usage[:0], r.usage...)
	}
	if e.usage != nil && e.complete() {
		e.tellUsage()
	}
}

// candidate takes the next piece of a candidate.
func (e *events) candidate(c candidate) {
	ch := e.choice(c.index)
	if ch.finish != "" { // nothing may follow the finish reason, but what is known of the search still counts
		ch.ground(c.grounding)
		return
	}
	m := ch.read(c.parts)
	e.delta(ch, `"reasoning_content":"`, m.reasoning, `"`)
	e.delta(ch, `"content":"`, m.content, `"`)
	e.delta(ch, `"images":[`, m.images, `]`)
	e.delta(ch, `"tool_calls":[`, m.calls, `]`)
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
	e.delta(c, `"role":"assistant",`, []byte(`"content":""`), "")
	return c
}

func (e *events) finish(c *choice, reason string) {
	c.close(reason)
	e.delta(c, `"annotations":[`, c.citations(), `]`)
	e.chunk(c, `"`+c.finish+`"`)
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
