// Package reply makes answers of agents that speak in words of their own: as events of a stream, or whole.
package reply

import (
	"strconv"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// Head is what all chunks of an answer have in common.
type Head struct {
	ID      string
	Model   string
	Created int64 // Unix seconds
}

// Usage counts tokens. Cached and Reasoning are parts of Prompt and Completion.
type Usage struct {
	Prompt, Completion, Cached, Reasoning int64
}

// Answer is a whole answer.
type Answer struct {
	Head
	Text, Reasoning string
	Finish          string
	Usage           Usage
}

// Response gives the answer as the response of a call whose own has no body: as a stream, or whole.
func (a Answer) Response(resp *upstream.Response, stream bool) *dialect.Response {
	if stream {
		return &dialect.Response{Response: resp, Kind: dialect.Events, Events: func(*openai.Reader) answer.Source { return a.Events() }}
	}
	return &dialect.Response{Response: resp, Kind: dialect.JSON, Completion: func(out *answer.Chunk, _ []byte) bool {
		a.Fill(out)
		return true
	}}
}

// Fill makes an empty whole answer this one.
func (a Answer) Fill(out *answer.Chunk) {
	a.head(out)
	out.Usage = a.Usage.raw()
	ch := out.Choose(0)
	ch.Role, ch.Content, ch.Refusal, ch.Logprobs, ch.Finish = assistant, raw(a.Text), null, null, raw(a.Finish)
	if a.Reasoning != "" {
		ch.ReasoningContent = raw(a.Reasoning)
	}
}

// Events gives the answer as a stream.
func (a Answer) Events() *answer.Queue {
	var q answer.Queue
	a.Start(&q)
	if a.Reasoning != "" {
		a.AddReasoning(&q, a.Reasoning)
	}
	if a.Text != "" {
		a.AddText(&q, a.Text)
	}
	a.End(&q, a.Finish, a.Usage)
	return &q
}

// Start adds the chunk with which an answer begins.
func (h Head) Start(q *answer.Queue) {
	ch := h.add(q)
	ch.Role, ch.Content = assistant, noText
}

// AddText adds a chunk with more text.
func (h Head) AddText(q *answer.Queue, text string) { h.add(q).Content = raw(text) }

// AddReasoning adds a chunk with more of what the model thinks.
func (h Head) AddReasoning(q *answer.Queue, text string) { h.add(q).ReasoningContent = raw(text) }

// End adds the events with which a whole answer ends.
func (h Head) End(q *answer.Queue, finish string, u Usage) {
	h.add(q).Finish = raw(finish)
	c := q.Add(answer.Piece)
	h.head(c)
	c.Usage = u.raw()
	q.Add(answer.Done)
}

// Failed adds the event of an answer that breaks off. Its code is a status.
func Failed(q *answer.Queue, status int, kind, message string) {
	b := rawjson.AppendString([]byte(`{"error":{"message":`), message)
	b = rawjson.AppendString(append(b, `,"type":`...), kind)
	b = strconv.AppendInt(append(b, `,"param":null,"code":`...), int64(status), 10)
	q.Problem(append(b, `}}`...))
}

var assistant, noText, null = []byte(`"assistant"`), []byte(`""`), []byte("null")

func raw(text string) []byte { return rawjson.AppendString(nil, text) }

// add gives the choice of a further chunk.
func (h Head) add(q *answer.Queue) *answer.Choice {
	c := q.Add(answer.Piece)
	h.head(c)
	ch := c.Choose(0)
	ch.Logprobs = null
	return ch
}

func (h Head) head(c *answer.Chunk) {
	c.ID, c.Created, c.Model = raw(h.ID), strconv.AppendInt(nil, h.Created, 10), raw(h.Model)
}

func (u Usage) raw() (dst []byte) {
	for _, m := range [...]struct {
		before string
		n      int64
	}{
		{`{"prompt_tokens":`, u.Prompt},
		{`,"completion_tokens":`, u.Completion},
		{`,"total_tokens":`, u.Prompt + u.Completion},
		{`,"prompt_tokens_details":{"cached_tokens":`, u.Cached},
		{`},"completion_tokens_details":{"reasoning_tokens":`, u.Reasoning},
	} {
		dst = strconv.AppendInt(append(dst, m.before...), m.n, 10)
	}
	return append(dst, `}}`...)
}
