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

// Read says a request in Chat Completions, unless only a provider of this protocol can serve it.
func (Surface) Read(_ *contract.Request, body []byte) (surface.Request, error) {
	scan, err := openai.ScanCompletion(body)
	if err != nil {
		return nil, err
	}
	r := &Request{scan: scan}
	if scan.Demand == nil {
		if r.chat, err = openai.ScanRequest(scan.Chat()); err != nil {
			return nil, err
		}
	}
	if !scan.History.IsZero() {
		return r, nil
	}
	return nativeRequest{r}, nil
}

// Errors writes errors in OpenAI's form.
func (Surface) Errors() shared.Errors { return chat.Errors{} }

// Request is a request of a client.
type Request struct {
	scan *openai.CompletionRequest
	chat *openai.Request // nil when only a provider of this protocol can serve it
}

// Chat is the request in the hub.
func (r *Request) Chat() (*openai.Request, error) {
	if r.chat == nil {
		return nil, r.scan.Demand
	}
	return r.chat, nil
}

// Choices is how many answers the client wants: for each prompt as many as it says.
func (r *Request) Choices() int { return r.scan.Choices * max(len(r.scan.Prompts), 1) }

// Answer begins an answer.
func (r *Request) Answer(d surface.Disclosure) surface.Answer {
	if d.Native {
		return &nativeAnswer{told: d}
	}
	a := NewAnswer(d, r.scan.IncludeUsage)
	a.asked = r.scan.Model
	return a
}

// nativeRequest is one that a provider which has this protocol may get as it is: without the history of a session, for which there is no place in it.
type nativeRequest struct{ *Request }

var _ surface.Native = nativeRequest{}

// AppendNative appends the body for such a provider, with all of the rewrite but its front: the protocol has the words of the hub.
func (r nativeRequest) AppendNative(dst []byte, w openai.Rewrite) []byte {
	w.Front = nil
	return r.scan.AppendUpstream(dst, w)
}
