package messages

import (
	"bytes"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/services/dispatcher/internal/surface"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai/rawjson"
	"hydrallm/shared/surface/messages"
)

// nativeAnswer passes on what a provider says that speaks Messages itself, byte for byte. Of a routed request it only changes the name of the model.
type nativeAnswer struct {
	told    surface.Disclosure
	stopped bool // message_stop was passed on
	failed  bool // an error was
	kept    blocks
}

var _ surface.Keeping = (*nativeAnswer)(nil)

// Original gives the message with the provider's own blocks.
func (a *nativeAnswer) Original() []byte { return a.kept.message() }

// ContentType is that of an event stream.
func (*nativeAnswer) ContentType() string { return "text/event-stream; charset=utf-8" }

var messageStart = []byte("message_start")

// Append appends the event of a chunk.
func (a *nativeAnswer) Append(dst []byte, c *answer.Chunk) []byte {
	if c.Of != contract.SurfaceMessages {
		return dst
	}
	a.failed = a.failed || c.Kind == answer.Problem
	a.stopped = a.stopped || c.Kind == answer.Done
	if a.told.Session != "" {
		a.kept.event(c.Raw)
	}
	if a.told.Model != "" && bytes.Contains(c.Raw, messageStart) {
		return a.appendStart(dst, c.Raw)
	}
	return append(dst, c.Raw...)
}

// dataOf gives the data of an event, which are an object or nothing, with what stands before and behind them.
func dataOf(raw []byte) (before, data, after []byte) {
	before, rest, _ := bytes.Cut(raw, []byte("data:"))
	data, after, _ = bytes.Cut(rest, []byte("\n"))
	if !rawjson.Valid(data) {
		return before, []byte("{}"), after
	}
	return before, data, after
}

// appendStart appends the event message_start with the name of the model that the client asked for.
func (a *nativeAnswer) appendStart(dst, raw []byte) []byte {
	before, data, after := dataOf(raw)
	message := rawjson.Get(data, "message")
	if !rawjson.Is(rawjson.Get(data, "type"), "message_start") || rawjson.Get(message, "model") == nil {
		return append(dst, raw...)
	}
	data = rawjson.AppendSet(nil, data, "message", rawjson.AppendSet(nil, message, "model", rawjson.AppendString(nil, a.told.Model)))
	dst = append(append(append(dst, before...), "data:"...), data...)
	return append(append(dst, '\n'), after...)
}

// End appends the last event, which some servers leave out.
func (a *nativeAnswer) End(dst []byte, _ stream.End) []byte {
	if a.stopped {
		return dst
	}
	return append(dst, stopEvent...)
}

const stopEvent = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"

// Fail appends an error, unless the provider's own was passed on.
func (a *nativeAnswer) Fail(dst []byte, f *fault.Fault) []byte {
	if a.failed {
		return dst
	}
	return messages.Errors{}.AppendEvent(dst, f)
}

// Whole gives the message of the provider.
func (a *nativeAnswer) Whole(c *answer.Chunk) []byte {
	whole := c.Raw
	if a.told.Session != "" {
		a.kept.whole(rawjson.Get(whole, "content"))
	}
	if a.told.Model != "" {
		whole = rawjson.AppendSet(nil, whole, "model", rawjson.AppendString(nil, a.told.Model))
	}
	if a.told.Session != "" {
		whole = rawjson.AppendSet(nil, whole, "session_id", rawjson.AppendString(nil, a.told.Session))
	}
	return whole
}
