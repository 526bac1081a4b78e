package completions

import (
	"strconv"
	"unicode/utf8"

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
	asked        string      // model of the request, which is named when the provider names none
	offsets      map[int]int // of each choice: the characters of its text so far, for the probabilities
	body         []byte      // of the chunk at hand
}

// NewAnswer begins an answer. includeUsage is that of the request's stream_options.
func NewAnswer(d surface.Disclosure, includeUsage bool) *Answer {
	return &Answer{told: d, includeUsage: includeUsage, offsets: map[int]int{}}
}

// ContentType is that of an event stream.
func (*Answer) ContentType() string { return "text/event-stream; charset=utf-8" }

// Append appends a chunk as an event, if it brings anything that this protocol has a word for.
func (a *Answer) Append(dst []byte, c *answer.Chunk) []byte {
	if c.Kind == answer.Comment {
		return append(dst, c.Raw...)
	}
	a.head.Learn(c)
	told := false
	for i := range c.Choices {
		ch := &c.Choices[i]
		told = told || len(answer.Inner(textOf(ch))) > 0 || ch.Finished() || probabilities(ch) != nil
	}
	if !told {
		return dst
	}
	a.body = append(a.choices(a.begin(a.body[:0]), c), '}')
	return openai.AppendData(dst, a.body)
}

// End appends the usage, if it was asked for, and the end mark.
func (a *Answer) End(dst []byte, end stream.End) []byte {
	if usage := a.usage(end.Usage); a.includeUsage && usage != nil {
		a.body = append(a.begin(a.body[:0]), `[],"usage":`...)
		a.body = append(append(a.body, usage...), '}')
		dst = openai.AppendData(dst, a.body)
	}
	return append(dst, openai.Done...)
}

// Fail appends the error as an event, without an end mark.
func (*Answer) Fail(dst []byte, f *fault.Fault) []byte { return chat.Errors{}.AppendEvent(dst, f) }

// Whole gives a whole answer.
func (a *Answer) Whole(c *answer.Chunk) []byte {
	a.head.Learn(c)
	whole := a.choices(a.begin(nil), c)
	if usage := a.usage(c); usage != nil {
		whole = append(append(whole, `,"usage":`...), usage...)
	}
	if a.told.Session != "" {
		whole = rawjson.AppendString(append(whole, `,"session_id":`...), a.told.Session)
	}
	return append(whole, '}')
}

// begin appends the members before the choices.
func (a *Answer) begin(dst []byte) []byte {
	a.head.Complete(a.told.Model)
	if string(a.head.Model) == `""` {
		a.head.Model = rawjson.AppendString(nil, a.asked)
	}
	dst = append(append(dst, `{"id":`...), a.head.ID...)
	dst = append(append(dst, `,"object":"text_completion","created":`...), a.head.Created...)
	return append(append(append(dst, `,"model":`...), a.head.Model...), `,"choices":`...)
}

// choices appends the choices of a chunk.
func (a *Answer) choices(dst []byte, c *answer.Chunk) []byte {
	dst = append(dst, '[')
	for i := range c.Choices {
		if i > 0 {
			dst = append(dst, ',')
		}
		ch := &c.Choices[i]
		dst = append(append(dst, `{"text":`...), textOf(ch)...)
		dst = strconv.AppendInt(append(dst, `,"index":`...), int64(ch.Index), 10)
		dst = a.logprobs(append(dst, `,"logprobs":`...), ch)
		dst = append(append(append(dst, `,"finish_reason":`...), finish(ch)...), '}')
	}
	return append(dst, ']')
}

// usage gives the counts that a chunk, which may be nil, reports, with the members of the gateway; nil for none.
func (a *Answer) usage(c *answer.Chunk) []byte {
	var raw []byte
	if c != nil {
		raw = c.Usage
	}
	if raw == nil && len(a.told.Usage) > 0 {
		raw = []byte(`{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`)
	}
	for _, m := range a.told.Usage {
		raw = rawjson.AppendSet(nil, raw, m.Name, m.Value)
	}
	return raw
}

// textOf gives what the choice says, as a raw string. A refusal is text, too.
func textOf(ch *answer.Choice) []byte {
	for _, raw := range [][]byte{ch.Content, ch.Refusal} {
		if len(answer.Inner(raw)) > 0 {
			return raw
		}
	}
	return []byte(`""`)
}

// finish gives the finish reason. This protocol has three; a call of a tool, which nobody offered, ends the text.
func finish(ch *answer.Choice) []byte {
	switch {
	case !ch.Finished():
		return []byte("null")
	case rawjson.Is(ch.Finish, "length"), rawjson.Is(ch.Finish, "content_filter"):
		return ch.Finish
	}
	return []byte(`"stop"`)
}

// probabilities gives the list of tokens with their probabilities that a choice has; nil for none.
func probabilities(ch *answer.Choice) []byte {
	if list := rawjson.Get(ch.Logprobs, "content"); len(list) > 0 && list[0] == '[' {
		return list
	}
	return nil
}

// logprobs appends the probabilities in the form of this protocol: lists beside each other.
func (a *Answer) logprobs(dst []byte, ch *answer.Choice) []byte {
	list := probabilities(ch)
	if list == nil {
		return append(dst, "null"...)
	}
	var tokens, sure, top, offsets [][]byte
	at := a.offsets[ch.Index]
	for span := range rawjson.Elements(list) {
		entry := rawjson.Given(span.Of(list))
		token := rawjson.Text(entry["token"])
		tokens = append(tokens, rawjson.AppendString(nil, token))
		sure = append(sure, orNull(entry["logprob"]))
		top = append(top, alternatives(entry["top_logprobs"]))
		offsets = append(offsets, strconv.AppendInt(nil, int64(at), 10))
		at += utf8.RuneCountInString(token)
	}
	a.offsets[ch.Index] = at
	return append(dst, rawjson.Object(nil).Set("tokens", rawjson.Array(tokens)).Set("token_logprobs", rawjson.Array(sure)).
		Set("top_logprobs", rawjson.Array(top)).Set("text_offset", rawjson.Array(offsets)).End()...)
}

// alternatives gives tokens with their probabilities as one object.
func alternatives(list []byte) []byte {
	out := []byte{'{'}
	for span := range rawjson.Elements(list) {
		entry := rawjson.Given(span.Of(list))
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(rawjson.AppendString(out, rawjson.Text(entry["token"])), ':')
		out = append(out, orNull(entry["logprob"])...)
	}
	return append(out, '}')
}

func orNull(raw []byte) []byte {
	if raw == nil {
		return []byte("null")
	}
	return raw
}
