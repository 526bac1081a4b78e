// Package messages is the surface of Anthropic's Messages. Requests are put into the hub and answers out of it; a provider that speaks the protocol
// itself gets the client's request, and its events pass byte for byte.
package messages

import (
	"sync"

	"hydrallm/services/dispatcher/internal/surface"
	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
	shared "hydrallm/shared/surface"
	"hydrallm/shared/surface/messages"
)

// Surface is the protocol. The zero value is ready for use.
type Surface struct{}

var _ surface.Surface = Surface{}

// Read notes the body: whether it needs a translation depends on who gets it.
func (Surface) Read(envelope *contract.Request, body []byte) (surface.Request, error) {
	chat := translation(messages.Form{}.Chat, body)
	if err := shared.Undone(envelope); err != nil {
		chat = func() (*openai.Request, error) { return nil, err }
	}
	return &Request{body: body, chat: chat, spoken: translation(messages.AsChat, body)}, nil
}

// translation makes a translation that is done once, when it is needed.
func translation(translate func([]byte) ([]byte, error), body []byte) func() (*openai.Request, error) {
	return sync.OnceValues(func() (*openai.Request, error) {
		hub, err := translate(body)
		if err != nil {
			return nil, err
		}
		return openai.ScanRequest(hub)
	})
}

// Errors writes errors in Anthropic's form.
func (Surface) Errors() shared.Errors { return messages.Errors{} }

// Request is a request of a client.
type Request struct {
	body         []byte
	chat, spoken func() (*openai.Request, error)
}

var (
	_ surface.Native = (*Request)(nil)
	_ surface.Spoken = (*Request)(nil)
)

// Spoken gives the request for Anthropic's dialect.
func (r *Request) Spoken() (*openai.Request, error) { return r.spoken() }

// Chat translates the request, once.
func (r *Request) Chat() (*openai.Request, error) { return r.chat() }

// AppendNative appends the request for a provider that speaks Messages.
func (r *Request) AppendNative(dst []byte, w openai.Rewrite) []byte {
	return messages.AppendNative(dst, r.body, w.Model, w.Front)
}

// Answer begins an answer.
func (r *Request) Answer(d surface.Disclosure) surface.Answer {
	if d.Native {
		return &nativeAnswer{told: d}
	}
	return &Answer{request: r, told: d}
}

// tokens is the estimated size of the request, without that of the answer.
func (r *Request) tokens() int64 {
	var counted contract.Request
	if messages.ScanCount(r.body, &counted) != nil {
		return 0
	}
	return counted.Traits.Tokens
}
