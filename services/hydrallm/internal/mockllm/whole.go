package mockllm

import (
	"net/http"
	"time"
)

// complete sends a turn as one answer.
func (s *Server) complete(w http.ResponseWriter, r *http.Request, req *request, t *turn, id string) {
	if !pause(r, s.cfg.Delay*time.Duration(len(t.pieces()))) {
		return
	}
	c := completion{ID: "chatcmpl-mock-" + id, Object: "chat.completion", Created: created, Model: Model, Usage: encode(t.usage)}
	for i := range req.choices() {
		c.Choices = append(c.Choices, choice{Index: i, Message: t.message(i), FinishReason: &t.finish})
	}
	body := encode(c)
	switch t.midway {
	case whole:
		send(w, http.StatusOK, body)
	case faulted:
		failureOf(http.StatusInternalServerError).send(w)
	case cut:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write(body[:len(body)/2])        // the client may have left
		_ = http.NewResponseController(w).Flush() // so that it gets this much
		panic(http.ErrAbortHandler)               // breaks the connection
	}
}

// message is a turn as the message of a choice.
func (t *turn) message(choice int) *reply {
	m := &reply{Role: "assistant", Content: null}
	if t.text != nil {
		m.Content = encode(*t.text)
	}
	if t.reasoning != "" {
		m.Reasoning = encode(t.reasoning)
	}
	if t.refusal != "" {
		m.Refusal = encode(t.refusal)
	}
	for _, c := range t.calls {
		m.ToolCalls = append(m.ToolCalls, toolCall{ID: c.in(choice), Type: "function", Function: functionCall{c.name, c.arguments}})
	}
	return m
}

// in is the id of the call in a choice: no two choices share one.
func (c call) in(choice int) string {
	if choice == 0 {
		return c.id
	}
	return c.id + string(rune('a'+choice))
}
