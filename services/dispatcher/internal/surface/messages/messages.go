// Package messages is the surface of Anthropic's Messages. Requests are put into the hub and answers out of it; a provider that speaks the protocol
// itself gets the client's request, and its events pass byte for byte.
package messages

import (
	"hydrallm/services/dispatcher/internal/surface"
	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
	shared "hydrallm/shared/surface"
	"hydrallm/shared/surface/messages"
)

// Surface is the protocol. The zero value is ready for use.
type Surface struct{}

var _ surface.Surface = Surface{}

// Read translates the body.
func (Surface) Read(_ *contract.Request, body []byte) (surface.Request, error) {
	hub, err := messages.Form{}.Chat(body)
	if err != nil {
		return nil, err
	}
	chat, err := openai.ScanRequest(hub)
	if err != nil {
		return nil, err
	}
	return &Request{body: body, chat: chat}, nil
}

// Errors writes errors in Anthropic's form.
func (Surface) Errors() shared.Errors { return messages.Errors{} }

// Request is a request of a client.
type Request struct {
	body []byte
	chat *openai.Request
}

// Chat is the request in the hub.
func (r *Request) Chat() *openai.Request { return r.chat }

// Answer begins an answer.
func (r *Request) Answer(d surface.Disclosure) surface.Answer { return &Answer{request: r, told: d} }

// tokens is the estimated size of the request, without that of the answer.
func (r *Request) tokens() int64 {
	var counted contract.Request
	if messages.ScanCount(r.body, &counted) != nil {
		return 0
	}
	return counted.Traits.Tokens
}
