package opencode

import (
	"cmp"
	"slices"
	"time"

	"hydrallm/services/dispatcher/internal/agent/reply"
)

// Kinds of parts that hold what a model says.
const (
	text      = "text"
	reasoning = "reasoning"
)

// transcript is what has been said in a session.
type transcript struct {
	id       string
	model    model
	created  int64
	messages map[string]*info
	parts    map[string]*spoken
	order    []*spoken
	last     *info // the newest message of the assistant
	cutShort bool  // the model reached the limit of its output
	room     int   // for what is kept; negative when there was too much
}

// spoken is a part that holds what the model says, as far as it is known.
type spoken struct {
	kind string
	text []byte
}

func newTranscript(session string, m model) transcript {
	return transcript{id: "chatcmpl-" + session, model: m, messages: map[string]*info{}, parts: map[string]*spoken{}, room: maxAnswer}
}

// entryCost is what an entry takes beside its text.
const entryCost = 256

// note keeps what is said of a message. Those of the user are kept as well: what is in them is no answer.
func (t *transcript) note(i info) {
	known := t.messages[i.id]
	if known == nil {
		t.room -= entryCost
		known = &info{}
		t.messages[i.id] = known
	}
	i.finish = cmp.Or(i.finish, known.finish)
	*known = i
	if i.own {
		t.last = known
	}
}

// grow takes the whole text of a part and gives what is new of it. A text that does not begin with what is known is left alone: OpenCode
// cuts white space off the end, and what was passed on can't be taken back.
func (t *transcript) grow(p part) (kind, added string) {
	if m := t.messages[p.message]; m != nil && !m.own || p.hidden || p.id == "" || p.kind != text && p.kind != reasoning {
		return "", ""
	}
	s := t.parts[p.id]
	if s == nil {
		t.room -= entryCost
		s = &spoken{kind: p.kind}
		t.parts[p.id] = s
		t.order = append(t.order, s)
	}
	known := len(s.text)
	if len(p.text) < known || p.text[:known] != string(s.text) {
		return "", ""
	}
	return t.add(s, p.text[known:])
}

// extend takes what came of a part. Where the kind of the part is not known yet, its whole text will bring it.
func (t *transcript) extend(id, delta string) (kind, added string) {
	s := t.parts[id]
	if s == nil {
		return "", ""
	}
	return t.add(s, delta)
}

func (t *transcript) add(s *spoken, added string) (string, string) {
	if t.room -= len(added); t.room < 0 {
		return "", ""
	}
	s.text = append(s.text, added...)
	return s.kind, added
}

// head is what all chunks of the answer say; it stays as it is the first time.
func (t *transcript) head() reply.Head {
	if t.created == 0 {
		t.created = time.Now().Unix()
		if t.last != nil {
			t.model = cmp.Or(t.last.model, t.model)
			t.created = cmp.Or(t.last.created, t.created)
		}
	}
	return reply.Head{ID: t.id, Model: cmp.Or(t.model.String(), "opencode"), Created: t.created}
}

// answer is what the model has said.
func (t *transcript) answer() reply.Answer {
	a := reply.Answer{Head: t.head(), Text: t.said(text), Reasoning: t.said(reasoning), Finish: t.finish()}
	for _, m := range t.messages {
		if m.own {
			a.Usage.Prompt += m.usage.input + m.usage.cacheRead + m.usage.cacheWrite
			a.Usage.Completion += m.usage.output + m.usage.reasoning
			a.Usage.Cached += m.usage.cacheRead
			a.Usage.Reasoning += m.usage.reasoning
		}
	}
	return a
}

func (t *transcript) said(kind string) string {
	var texts [][]byte
	for _, s := range t.order {
		if s.kind == kind {
			texts = append(texts, s.text)
		}
	}
	return string(slices.Concat(texts...))
}

func (t *transcript) finish() string {
	switch {
	case t.cutShort, t.last != nil && t.last.finish == "length":
		return "length"
	case t.last != nil && t.last.finish == "content-filter":
		return "content_filter"
	}
	return "stop" // also after calls of tools: they are none of the client's
}
