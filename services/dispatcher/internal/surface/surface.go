// Package surface says what the dispatcher wants of a protocol that clients speak. A surface puts the client's request into the hub, which is Chat
// Completions, and writes answers, events and errors as its clients expect them. Which provider answers is known per attempt only, so that this
// is done here and not where the client is. Each protocol has a package below; what all services need of it is in shared/surface.
package surface

import (
	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
	"hydrallm/shared/surface"
)

// Surface is a protocol. It is safe for concurrent use.
type Surface interface {
	// Read puts a client's body into the hub. Neither body nor envelope may change while the Request is in use. The error is an
	// *openai.RequestError.
	Read(envelope *contract.Request, body []byte) (Request, error)
	// Errors writes errors before anything of an answer was sent.
	Errors() surface.Errors
}

// Request is one request of a client, with what its answers depend on. It is safe for concurrent use.
type Request interface {
	// Chat is the request in the hub. Whether it is streamed holds for the client as well. The error is an *openai.RequestError: the hub has no words for
	// what the client asks for.
	Chat() (*openai.Request, error)
	// Answer begins an answer. One that is not sent to its end may be thrown away, and another begun.
	Answer(d Disclosure) Answer
}

// Native is a Request that a provider which speaks the same protocol may get as it is.
type Native interface {
	Request

	// AppendNative appends the body for such a provider. Of the rewrite, only that is used which is said in words of the protocol.
	AppendNative(dst []byte, w openai.Rewrite) []byte
}

// Spoken is a Request that providers which speak its protocol understand better than others, also in the hub.
type Spoken interface {
	// Spoken is the request in the hub for such a provider, with what its dialect takes as it is. The error is an *openai.RequestError.
	Spoken() (*openai.Request, error)
}

// Answer writes one answer. It is not safe for concurrent use. Chunks are only read, and nothing of them is kept.
type Answer interface {
	// ContentType is that of a stream.
	ContentType() string
	// Append appends what the client gets for a chunk: a piece of the answer, or a comment. It may be nothing.
	Append(dst []byte, c *answer.Chunk) []byte
	// End appends the end of a complete stream.
	End(dst []byte, end stream.End) []byte
	// Fail appends the end of a stream that broke off after it had begun.
	Fail(dst []byte, f *fault.Fault) []byte
	// Whole gives the JSON of a whole answer. It may share the chunk's memory.
	Whole(c *answer.Chunk) []byte
}

// Keeping is an Answer that keeps what it passed on of an answer in a session, where the hub does not have all of it.
type Keeping interface {
	// Original gives the message as the surface has it, nil when the hub has all that there is of it.
	Original() []byte
}

// Disclosure is what a routed answer tells of itself. The zero value leaves the answer to the provider's own words.
type Disclosure struct {
	Model   string   // name that the whole answer and every chunk state, with one id for all of them (C-07)
	Usage   []Member // members of the usage, which there is then in any case
	Session string   // id, for whole answers and for what is kept; "" = none
	Native  bool     // chunks have the provider's own events in the client's protocol, or its whole answer, which pass as they are but for the model
	Parts   []byte   // array of what was read and tried before, for the message of a whole answer; nil for none
	Sources []byte   // array of what was read, for the last delta of a stream; nil for none
}

// Member is a named raw JSON value.
type Member struct {
	Name  string
	Value []byte
}
