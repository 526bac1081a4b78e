// Package chat is the surface of Chat Completions, the protocol of the hub: requests need no translation, and what is sound passes byte for byte
// (C-22, SSE-20). Of what has to change, only the members change that must; everything else keeps its bytes and its order.
package chat

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

// Read scans the body.
func (Surface) Read(_ *contract.Request, body []byte) (surface.Request, error) {
	r, err := openai.ScanRequest(body)
	if err != nil {
		return nil, err
	}
	return Request{r}, nil
}

// Errors writes errors in OpenAI's form.
func (Surface) Errors() shared.Errors { return chat.Errors{} }

// Request is a request of a client.
type Request struct{ *openai.Request }

// Chat is the request itself.
func (r Request) Chat() (*openai.Request, error) { return r.Request, nil }

// Answer begins an answer.
func (r Request) Answer(d surface.Disclosure) surface.Answer { return NewAnswer(d, r.IncludeUsage) }
