// Package surface knows the protocols that clients speak, as far as all services need to. What it takes to answer in one is in the dispatcher.
package surface

import (
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
	"hydrallm/shared/surface/chat"
	"hydrallm/shared/surface/completions"
	"hydrallm/shared/surface/messages"
	"hydrallm/shared/surface/responses"
)

// Errors writes errors as the clients of a surface expect them.
type Errors interface {
	// AppendBody appends the JSON body of a response that is an error. requestID is shown where the protocol has a place for it.
	AppendBody(dst []byte, f *fault.Fault, requestID string) []byte
	// AppendEvent appends the event with which a stream breaks off that has begun.
	AppendEvent(dst []byte, f *fault.Fault) []byte
	// AppendEventOf appends the event that says what body, of AppendBody, says: for a stream that had to begin before the error was known.
	AppendEventOf(dst, body []byte) []byte
}

// Form is how the requests of a surface are written. All errors are *openai.RequestError, and meant for the client.
type Form interface {
	// Scan checks a body and notes in r what stages want to know of it. It decodes nothing that it need not.
	Scan(body []byte, r *contract.Request) error
	// Chat gives what a body of Scan says as a request to Chat Completions, in which the members of the gateway are left out. It may alias the
	// body. What the hub has no words for is left out, or an error where the client demands it.
	Chat(body []byte) ([]byte, error)
	// Messages gives the messages of a body of Scan, in order. They may alias the body.
	Messages(body []byte) ([]contract.Message, error)
	// WithMessages gives the body with other messages. Those without an Original are written as the surface has them.
	WithMessages(body []byte, list []contract.Message) []byte
	// WithContext gives the body with a system message of the gateway, such as text from the web, which is there for the last message.
	WithContext(body, message []byte) []byte
}

// Undone gives the error of a request that demands a search of the web where the gateway has none, for who can't search either. It is nil or an
// *openai.RequestError.
func Undone(r *contract.Request) error {
	if r.Web.Tool == "" || r.Web.Search {
		return nil
	}
	return &openai.RequestError{
		Message: "'tool_choice' demands the tool '" + r.Web.Tool + "', which is not to be had here: text from the web is off (web.enabled).",
		Param:   "tool_choice", Code: "unsupported_value",
	}
}

// FormOf gives that of a surface. An unknown one has Chat Completions'.
func FormOf(s contract.Surface) Form {
	switch s {
	case contract.SurfaceMessages:
		return messages.Form{}
	case contract.SurfaceResponses:
		return responses.Form{}
	case contract.SurfaceCompletions:
		return completions.Form{}
	case contract.SurfaceChat:
	}
	return chat.Form{}
}

// ErrorsOf gives those of a surface. An unknown one has OpenAI's.
func ErrorsOf(s contract.Surface) Errors {
	switch s {
	case contract.SurfaceMessages:
		return messages.Errors{}
	case contract.SurfaceResponses:
		return responses.Errors{}
	case contract.SurfaceChat, contract.SurfaceCompletions:
	}
	return chat.Errors{}
}
