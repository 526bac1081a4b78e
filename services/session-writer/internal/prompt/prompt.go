// Package prompt puts the history of a session and the messages of a request together. It is pure code, and edits the text of a
// body only where it must.
package prompt

import (
	"slices"

	"hydrallm/shared/contract"
	"hydrallm/shared/surface"
)

// Message is a message of the history.
type Message struct {
	contract.Message

	Surface contract.Surface // that it came over
	Sent    []byte           // what is sent in its place, in the hub; nil = itself
	Summary bool             // it stands for older messages
}

// Prompt is what becomes of a request.
type Prompt struct {
	Body  []byte             // with the history; nil when there is none to add
	Fresh []contract.Message // the messages that the session does not know yet and that belong to its turn
}

// Request is the conversation that a client sent. It aliases the body.
type Request struct {
	surface contract.Surface
	form    surface.Form
	body    []byte
	leading []message // system messages before everything else
	turns   []entry   // the other messages
	last    []message // system messages behind them
}

// entry is a message of a request that is no system message.
type entry struct {
	message

	before []message // system messages right before it
}

// Read reads the body of a request that came over a surface. The error is an *openai.RequestError.
func Read(s contract.Surface, body []byte) (*Request, error) {
	r := &Request{surface: s, form: surface.FormOf(s), body: body}
	list, err := r.form.Messages(body)
	if err != nil {
		return nil, err
	}
	originals := of(list)
	var system []message
	for i := range list {
		m := newMessage(list[i])
		m.original = originals[i]
		switch {
		case m.role == roleSystem && len(r.turns) == 0:
			r.leading = append(r.leading, m)
		case m.role == roleSystem:
			system = append(system, m)
		default:
			r.turns = append(r.turns, entry{m, system})
			system = nil
		}
	}
	r.last = system
	return r, nil
}

// Assemble puts the history before the messages of the request, without what the client sent again of it, and says which messages are new. System
// messages of the client stay before the history, its last message stays last.
func (r *Request) Assemble(history []Message) Prompt {
	stored := r.stored(history)
	var m merger
	if n := len(r.turns); n > 0 {
		m.merge(stored, r.turns[:n-1])
		m.out = append(m.out, piece{entry: &r.turns[n-1]})
	} else {
		m.merge(stored, nil)
	}
	p := Prompt{Fresh: fresh(r.turns[m.known:], m.known > 0 || awaitsResults(stored))}
	if len(history) > 0 {
		p.Body = r.write(m.out)
	}
	return p
}

// awaitsResults says that the history ends with calls of tools, so that results come next: most clients of sessions send nothing else again.
func awaitsResults(history []message) bool {
	for _, m := range slices.Backward(history) {
		if m.role != roleTool {
			return m.calls
		}
	}
	return false
}

// stored reads the history. Of messages that came over another surface only what the hub has of them can be sent.
func (r *Request) stored(history []Message) []message {
	own := make([]contract.Message, len(history))
	for i, h := range history {
		if own[i] = h.Message; h.Surface != r.surface || h.Sent != nil {
			own[i].Original, own[i].Within = nil, false
		}
	}
	originals := of(own)
	stored := make([]message, len(history))
	for i, h := range history {
		stored[i] = newMessage(own[i])
		stored[i].original, stored[i].summary, stored[i].sent, stored[i].history = originals[i], h.Summary, h.Sent, true
	}
	return stored
}

// fresh gives what a turn is stored with: the last words of the user and what follows them, or the results of tools (R-304, C-33). What the client says in the
// name of the model, for it to go on from there, is no part of that. known says that the history has what comes before the entries, or ends with calls: then
// results of tools before the words of the user are those of its calls.
func fresh(entries []entry, known bool) (list []contract.Message) {
	end := len(entries)
	for end > 1 && entries[end-1].role == roleAssistant && !entries[end-1].calls {
		end--
	}
	begin := end
	for begin > 0 && entries[begin-1].role != roleUser {
		begin--
	}
	for begin > 0 && entries[begin-1].role == roleUser {
		begin--
	}
	if known && !slices.ContainsFunc(entries[:begin], func(e entry) bool { return e.role != roleTool }) {
		begin = 0
	}
	for _, e := range entries[begin:end] {
		list = append(list, e.Message)
	}
	return list
}

// write gives the body with other messages.
func (r *Request) write(out []piece) []byte {
	list := make([]*message, 0, len(r.leading)+len(out)+len(r.last))
	add := func(system []message) {
		for i := range system {
			list = append(list, &system[i])
		}
	}
	add(r.leading)
	for _, p := range out { // they belong to messages that the history has
		if p.entry != nil && p.stored != nil {
			add(p.entry.before)
		}
	}
	for _, p := range out {
		switch {
		case p.stored == nil:
			add(p.entry.before)
			list = append(list, &p.entry.message)
		case p.entry != nil && p.entry.original != nil && p.stored.original == nil && p.stored.sent == nil: // the client has more of it
			p.entry.history = true
			list = append(list, &p.entry.message)
		default:
			list = append(list, p.stored)
		}
	}
	add(r.last)
	return r.form.WithMessages(r.body, sent(settleCalls(list)))
}

// sent gives messages as they are to be written. An original is written only where all parts of it stand together.
func sent(list []*message) []contract.Message {
	out := make([]contract.Message, len(list))
	for i := 0; i < len(list); {
		n := 1
		for i+n < len(list) && list[i].original != nil && list[i+n].original == list[i].original {
			n++
		}
		whole := list[i].original != nil && n == list[i].original.messages
		for k, m := range list[i : i+n] {
			switch o := &out[i+k]; {
			case m.sent != nil:
				o.Body = m.sent
			case whole:
				*o = m.Message
			default:
				o.Body = m.Body
			}
		}
		i += n
	}
	return out
}
