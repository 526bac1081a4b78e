// Package surface knows the protocols that clients speak, as far as all services need to. What it takes to answer in one is in the dispatcher.
package surface

import (
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/surface/chat"
)

// Errors writes errors as the clients of a surface expect them.
type Errors interface {
	// AppendBody appends the JSON body of a response that is an error.
	AppendBody(dst []byte, f *fault.Fault) []byte
	// AppendEvent appends the event with which a stream breaks off that has begun.
	AppendEvent(dst []byte, f *fault.Fault) []byte
	// AppendEventOf appends the event that says what body, of AppendBody, says: for a stream that had to begin before the error was known.
	AppendEventOf(dst, body []byte) []byte
}

// ErrorsOf gives those of a surface. An unknown one has OpenAI's.
func ErrorsOf(s contract.Surface) Errors {
	switch s {
	case contract.SurfaceChat:
	}
	return chat.Errors{}
}
