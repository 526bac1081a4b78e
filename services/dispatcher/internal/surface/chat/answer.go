package chat

import (
	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/services/dispatcher/internal/surface"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
	"hydrallm/shared/surface/chat"
)

// Answer writes one answer.
type Answer struct {
	told         surface.Disclosure
	includeUsage bool
	head         answer.Head
	body         []byte // of the chunk at hand
}

// NewAnswer begins an answer. includeUsage is that of the request's stream_options: exactly one chunk with the usage at the end of a stream,
// otherwise none (STR-07).
func NewAnswer(d surface.Disclosure, includeUsage bool) *Answer {
	return &Answer{told: d, includeUsage: includeUsage}
}

// ContentType is that of an event stream.
func (*Answer) ContentType() string { return "text/event-stream; charset=utf-8" }

// Append appends a chunk as an event. Without anything to change, it passes as it came.
func (a *Answer) Append(dst []byte, c *answer.Chunk) []byte {
	if c.Kind == answer.Comment {
		if c.Of != "" {
			return dst
		}
		return append(dst, c.Raw...)
	}
	a.head.Learn(c)
	sources := a.sources(c)
	if c.Data != nil && !c.Edited && !c.NullError && c.HasChoices && a.told.Model == "" && sources == nil {
		if c.Raw != nil && c.Of == "" {
			return append(dst, c.Raw...)
		}
		return openai.AppendData(dst, c.Data)
	}
	w := writer{answer: a, chunk: c, dropUsage: len(a.told.Usage) > 0, parts: sources}
	a.body = w.append(a.body[:0])
	return openai.AppendData(dst, a.body)
}

// sources gives what was read for the answer when c finishes it; once.
func (a *Answer) sources(c *answer.Chunk) (parts []byte) {
	if a.told.Sources == nil || len(c.Choices) == 0 || c.Choices[0].Finish == nil {
		return nil
	}
	parts, a.told.Sources = a.told.Sources, nil
	return parts
}

// End appends the usage, if it was asked for, and the end mark.
func (a *Answer) End(dst []byte, end stream.End) []byte {
	switch {
	case !a.includeUsage:
	case len(a.told.Usage) > 0:
		var c answer.Chunk
		c.Reset(answer.Piece)
		w := writer{answer: a, chunk: &c, usage: a.fullUsage(end.Usage)}
		a.body = w.append(a.body[:0])
		dst = openai.AppendData(dst, a.body)
	case end.Usage != nil:
		dst = a.Append(dst, end.Usage)
	}
	if end.Raw != nil {
		return append(dst, end.Raw...)
	}
	return append(dst, openai.Done...)
}

// Fail appends the error as an event, without an end mark.
func (*Answer) Fail(dst []byte, f *fault.Fault) []byte { return chat.Errors{}.AppendEvent(dst, f) }

// Whole gives a whole answer. One that needs no change is returned as it is, without a copy.
func (a *Answer) Whole(c *answer.Chunk) []byte {
	whole := a.whole(c)
	if a.told.Session != "" {
		whole = rawjson.AppendSet(nil, whole, "session_id", rawjson.AppendString(nil, a.told.Session))
	}
	return whole
}

func (a *Answer) whole(c *answer.Chunk) []byte {
	disclosed := len(a.told.Usage) > 0 || a.told.Parts != nil
	if c.Data != nil && !c.Edited && !c.NullError && !disclosed && (a.told.Model == "" || !c.HasChoices) {
		return c.Data
	}
	a.head.Learn(c)
	w := writer{answer: a, chunk: c, parts: a.told.Parts}
	if len(a.told.Usage) > 0 {
		w.usage = a.fullUsage(c)
	}
	return w.append(nil)
}

// noUsage is the usage of an answer whose provider told none.
var noUsage = []byte(`{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`)

// fullUsage gives the usage of a chunk, which may be nil, with the members of the gateway.
func (a *Answer) fullUsage(c *answer.Chunk) []byte {
	raw := noUsage
	if c != nil && c.Usage != nil {
		raw = c.Usage
	}
	for _, m := range a.told.Usage {
		raw = rawjson.AppendSet(nil, raw, m.Name, m.Value)
	}
	return raw
}
