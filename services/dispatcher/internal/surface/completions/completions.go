// Package completions is the surface of Completions, OpenAI's older protocol: the prompt is what a user says, and what the model answers is the text. Its
// thoughts are no part of that.
package completions

import (
	"hydrallm/services/dispatcher/internal/surface"
	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
	shared "hydrallm/shared/surface"
	"hydrallm/shared/surface/chat"
)

// Surface is the protocol. The zero value is ready for use.
type Surface struct{}

var _ surface.Surface = Surface{}

// Read says a request in Chat Completions. One that only a provider of this protocol can serve is in the hub as far as answers depend on it.
func (Surface) Read(_ *contract.Request, body []byte) (surface.Request, error) {
	scan, err := openai.ScanCompletion(body)
	if err != nil {
		return nil, err
	}
	if scan.Demand != nil {
		hub := *scan.Request
		hub.Choices *= max(len(scan.Prompts), 1)
		return &Request{completion: scan, chat: &hub}, nil
	}
	hub, err := openai.ScanRequest(scan.Chat())
	if err != nil {
		return nil, err
	}
	return &Request{completion: scan, chat: hub}, nil
}

// Errors writes errors in OpenAI's form.
func (Surface) Errors() shared.Errors { return chat.Errors{} }

// Request is a request of a client.
type Request struct {
	completion *openai.CompletionRequest
	chat       *openai.Request
}

var _ surface.Demanding = (*Request)(nil)

// Chat is the request in the hub.
func (r *Request) Chat() (*openai.Request, error) { return r.chat, nil }

// Demand says why only a provider of this protocol can serve the request; nil when others can.
func (r *Request) Demand() *openai.RequestError { return r.completion.Demand }

// Answer begins an answer.
func (r *Request) Answer(d surface.Disclosure) surface.Answer {
	return NewAnswer(d, r.chat.IncludeUsage)
}
