// Package prompt puts the history of a session and the messages of a request together. It is pure code, and edits the text of a
// body only where it must.
package prompt

import (
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// Message is a message of the history.
type Message struct {
	Body    []byte // valid JSON, an object
	Sent    []byte // what is sent in its place; nil = Body
	Summary bool   // it stands for older messages
}

// Prompt is what becomes of a request.
type Prompt struct {
	Body  []byte   // with the history; nil when there is none to add
	Fresh [][]byte // the messages that the session does not know yet and that belong to its turn
}

// Request is the conversation that a client sent. It aliases the body.
type Request struct {
	scan    *openai.Request
	leading [][]byte // system messages before everything else
	turns   []entry  // the other messages
	last    [][]byte // system messages behind them
}

// entry is a message of a request that is no system message.
type entry struct {
	message
	before [][]byte // system messages right before it
}

// Read reads a Chat Completions request. The error is an *openai.RequestError.
func Read(body []byte) (*Request, error) {
	scan, err := openai.ScanRequest(body)
	if err != nil {
		return nil, err
	}
	r := &Request{scan: scan}
	if scan.Messages.IsZero() {
		raw := append(append([]byte(`{"role":"user","content":`), scan.Prompt.Of(body)...), '}')
		r.turns = []entry{{message: newMessage(raw)}}
		return r, nil
	}
	array := scan.Messages.Of(body)
	var system [][]byte
	for span := range rawjson.Elements(array) {
		m := newMessage(span.Of(array))
		switch {
		case m.role == roleSystem && len(r.turns) == 0:
			r.leading = append(r.leading, m.raw)
		case m.role == roleSystem:
			system = append(system, m.raw)
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
	stored := make([]message, len(history))
	for i, h := range history {
		stored[i] = newMessage(h.Body)
		stored[i].summary, stored[i].sent = h.Summary, h.Sent
	}
	var m merger
	if n := len(r.turns); n > 0 {
		m.merge(stored, r.turns[:n-1])
		m.out = append(m.out, piece{entry: &r.turns[n-1]})
	} else {
		m.merge(stored, nil)
	}
	p := Prompt{Fresh: fresh(r.turns[m.known:])}
	if len(history) > 0 {
		p.Body = r.write(m.out)
	}
	return p
}

// fresh gives what a turn is stored with: the last words of the user and what follows them, or the results of tools (R-304, C-33). What the client says in the
// name of the model, for it to go on from there, is no part of that.
func fresh(entries []entry) (list [][]byte) {
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
	for _, e := range entries[begin:end] {
		list = append(list, e.raw)
	}
	return list
}

// write gives the body with other messages.
func (r *Request) write(out []piece) []byte {
	body := r.scan.Body()
	array := make([]byte, 0, 2*len(body))
	array = append(array, '[')
	add := func(raw []byte) {
		if len(array) > 1 {
			array = append(array, ',')
		}
		array = append(array, raw...)
	}
	for _, raw := range r.leading {
		add(raw)
	}
	for _, p := range out { // they belong to messages that the history has
		if p.entry != nil && p.stored != nil {
			for _, raw := range p.entry.before {
				add(raw)
			}
		}
	}
	for _, p := range out {
		if p.stored != nil {
			add(p.stored.out())
			continue
		}
		for _, raw := range p.entry.before {
			add(raw)
		}
		add(p.entry.raw)
	}
	for _, raw := range r.last {
		add(raw)
	}
	array = append(array, ']')
	return rawjson.AppendSet(make([]byte, 0, len(body)+len(array)), body, "messages", array)
}
