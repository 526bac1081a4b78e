// Package responses is the surface of OpenAI's Responses. What a model says becomes items: its thoughts, its text and its calls, each announced, filled piece by
// piece and closed by events that are numbered from 0 on. The same answer to the same request gives the same events, but for the time in the last one.
package responses

import (
	"hydrallm/services/dispatcher/internal/surface"
	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
	shared "hydrallm/shared/surface"
	"hydrallm/shared/surface/responses"
)

// Surface is the protocol. The zero value is ready for use.
type Surface struct{}

var _ surface.Surface = Surface{}

// Read says a request in Chat Completions.
func (Surface) Read(envelope *contract.Request, body []byte) (surface.Request, error) {
	read, err := responses.Read(body)
	if err != nil {
		return nil, err
	}
	if err := read.Unresolved(); err != nil {
		return nil, err
	}
	if err := shared.Undone(envelope); err != nil {
		return nil, err
	}
	chat, err := openai.ScanRequest(read.Chat())
	if err != nil {
		return nil, err
	}
	r := &Request{Request: read, envelope: envelope, chat: chat}
	r.own = r.ownItems()
	r.stores = envelope.Store && len(r.own) < contract.MaxStoredResponse
	return r, nil
}

// Errors writes errors.
func (Surface) Errors() shared.Errors { return responses.Errors{} }

// Request is a request of a client.
type Request struct {
	*responses.Request

	envelope *contract.Request
	chat     *openai.Request
	own      []byte // input items of the request itself, without those of stored responses
	stores   bool   // the response is to be stored
}

// Chat is the request in the hub.
func (r *Request) Chat() (*openai.Request, error) { return r.chat, nil }

// Answer begins an answer.
func (r *Request) Answer(d surface.Disclosure) surface.Answer { return NewAnswer(r, d) }
