package completions

import (
	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/services/dispatcher/internal/surface"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
	"hydrallm/shared/surface/chat"
)

// nativeAnswer passes on what a provider says that has this protocol itself, byte for byte.
type nativeAnswer struct {
	told   surface.Disclosure
	done   bool // the end mark was passed on
	failed bool // an error was
}

// ContentType is that of an event stream.
func (*nativeAnswer) ContentType() string { return "text/event-stream; charset=utf-8" }

// Append appends the event of a chunk.
func (a *nativeAnswer) Append(dst []byte, c *answer.Chunk) []byte {
	if c.Of != contract.SurfaceCompletions {
		return dst
	}
	a.done, a.failed = a.done || c.Kind == answer.Done, a.failed || c.Kind == answer.Problem
	return append(dst, c.Raw...)
}

// End appends the end mark, which some servers leave out.
func (a *nativeAnswer) End(dst []byte, _ stream.End) []byte {
	if a.done {
		return dst
	}
	return append(dst, openai.Done...)
}

// Fail appends an error, unless the provider's own was passed on.
func (a *nativeAnswer) Fail(dst []byte, f *fault.Fault) []byte {
	if a.failed {
		return dst
	}
	return chat.Errors{}.AppendEvent(dst, f)
}

// Whole gives the body of the provider.
func (a *nativeAnswer) Whole(c *answer.Chunk) []byte {
	if a.told.Session == "" {
		return c.Raw
	}
	return rawjson.AppendSet(nil, c.Raw, "session_id", rawjson.AppendString(nil, a.told.Session))
}
