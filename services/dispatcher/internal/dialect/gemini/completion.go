package gemini

import (
	"bytes"

	"hydrallm/services/dispatcher/internal/answer"
)

// Completion translates a whole answer. An attempt of the model that failed before it answered anything is none: its finish reason tells the
// caller to try again.
func (Translator) Completion(out *answer.Chunk, body []byte) bool {
	r, ok := readReply(bytes.TrimSpace(body))
	if !ok || len(r.candidates) == 0 && !r.blocked {
		return false
	}
	if len(r.candidates) == 0 {
		r.candidates = []candidate{{finish: "SAFETY"}}
	}
	answered, badOutput := false, false
	var grounding []byte
	for _, c := range r.candidates {
		state := whole(out.Choose(c.index), c)
		answered = answered || state.output
		badOutput = badOutput || failed(c.finish)
		if grounding == nil {
			grounding = state.grounding
		}
	}
	h := headOf(&r)
	out.ID, out.Created, out.Model = h.ID, h.Created, h.Model
	if r.usage != nil {
		var u usage
		u.take(r.usage)
		out.Usage = u.appendTo(nil, grounding)
	}
	return answered || !badOutput
}

// maxName bounds what every chunk repeats: the id and the model.
const maxName = 1 << 10

// headOf gives what all chunks of an answer have in common. It keeps nothing of the reply.
func headOf(r *reply) answer.Head {
	h := answer.Head{ID: bytes.Clone(r.id), Model: bytes.Clone(r.model)}
	if !isText(h.ID) || len(h.ID) > maxName {
		h.ID = nil
	}
	if !isText(h.Model) || len(h.Model) > maxName {
		h.Model = nil
	}
	h.Complete("")
	return h
}

// whole fills a choice of a whole answer.
func whole(ch *answer.Choice, c candidate) choice {
	state := choice{index: c.index}
	m := state.read(c.parts)
	state.ground(c.grounding)
	if c.finish == "" {
		c.finish = "STOP"
	}
	state.close(c.finish)
	ch.Role, ch.Content, ch.Refusal, ch.Calls, ch.Logprobs = assistant, answer.Quoted(m.content), null, m.calls, null
	if len(m.content) == 0 && len(m.calls) > 0 {
		ch.Content = null
	}
	if len(m.reasoning) > 0 {
		ch.ReasoningContent = answer.Quoted(m.reasoning)
	}
	ch.Delta = arrays("images", m.images, "annotations", state.citations())
	ch.Extra = ch.Delta != nil
	ch.Finish = []byte(`"` + state.finish + `"`)
	return state
}
