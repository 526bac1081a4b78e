package gemini

import (
	"bytes"
	"crypto/rand"
	"slices"
	"strconv"
	"strings"
	"time"

	"hydrallm/shared/openai/rawjson"
)

// Completion translates a whole answer. What is no answer stays as it is, and so does an attempt of the model that failed before it
// answered anything: its finish reason tells the caller to try again.
func (Translator) Completion(body []byte) []byte {
	r, ok := readReply(bytes.TrimSpace(body))
	if !ok || len(r.candidates) == 0 && !r.blocked {
		return body
	}
	if len(r.candidates) == 0 {
		r.candidates = []candidate{{finish: "SAFETY"}}
	}
	answers := make([]answer, len(r.candidates))
	answered, badOutput := false, false
	for i, c := range r.candidates {
		answers[i] = readAnswer(c)
		answered = answered || answers[i].output
		badOutput = badOutput || failed(c.finish)
	}
	if badOutput && !answered {
		return body
	}
	out := append(appendHead(nil, &r, "chat.completion"), `,"choices":[`...)
	for i := range answers {
		if i > 0 {
			out = append(out, ',')
		}
		out = answers[i].append(out)
	}
	out = append(out, ']')
	if r.usage != nil {
		out = appendUsage(append(out, `,"usage":`...), r.usage, groundingOf(answers))
	}
	return append(out, '}')
}

// maxName bounds what every chunk repeats: the id and the model.
const maxName = 1 << 10

// appendHead begins an object of a kind with what all of a kind have. It is not closed.
func appendHead(dst []byte, r *reply, object string) []byte {
	id, model := r.id, r.model
	if !isText(id) || len(id) > maxName {
		id = rawjson.AppendString(nil, "chatcmpl-"+strings.ToLower(rand.Text()))
	}
	if !isText(model) || len(model) > maxName {
		model = []byte(`""`)
	}
	dst = append(append(append(dst, `{"id":`...), id...), `,"object":"`...)
	dst = append(append(dst, object...), `","created":`...)
	dst = append(strconv.AppendInt(dst, time.Now().Unix(), 10), `,"model":`...)
	return append(dst, model...)
}

// answer is one candidate of a whole answer.
type answer struct {
	choice
	message message
}

func readAnswer(c candidate) answer {
	a := answer{choice: choice{index: c.index}}
	a.message = a.read(c.parts)
	a.ground(c.grounding)
	if c.finish == "" {
		c.finish = "STOP"
	}
	a.close(c.finish)
	return a
}

func (a *answer) append(dst []byte) []byte {
	m := &a.message
	dst = strconv.AppendInt(append(dst, `{"index":`...), int64(a.index), 10)
	dst = append(dst, `,"message":{"role":"assistant","content":`...)
	if len(m.content) == 0 && len(m.calls) > 0 {
		dst = append(dst, "null"...)
	} else {
		dst = append(append(append(dst, '"'), m.content...), '"')
	}
	dst = append(dst, `,"refusal":null`...)
	if len(m.reasoning) > 0 {
		dst = append(append(append(dst, `,"reasoning_content":"`...), m.reasoning...), '"')
	}
	dst = appendArray(dst, "tool_calls", m.calls)
	dst = appendArray(dst, "images", m.images)
	dst = appendArray(dst, "annotations", a.citations())
	dst = append(append(dst, `},"logprobs":null,"finish_reason":"`...), a.finish...)
	return append(dst, `"}`...)
}

func appendArray(dst []byte, member string, elements []byte) []byte {
	if len(elements) == 0 {
		return dst
	}
	dst = append(rawjson.AppendString(append(dst, ','), member), ":["...)
	return append(append(dst, elements...), ']')
}

// groundingOf gives the first metadata of a search that there are.
func groundingOf(answers []answer) []byte {
	i := slices.IndexFunc(answers, func(a answer) bool { return a.grounding != nil })
	if i < 0 {
		return nil
	}
	return answers[i].grounding
}
