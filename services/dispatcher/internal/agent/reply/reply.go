// Package reply writes chat completions for agents that answer in words of their own: as one JSON text, or as the events of a stream.
package reply

import (
	"strconv"

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

// JSON is the answer as a chat completion.
func (a Answer) JSON() []byte {
	b := a.open(nil, "chat.completion")
	b = append(b, `[{"index":0,"message":{"role":"assistant","content":`...)
	b = rawjson.AppendString(b, a.Text)
	if a.Reasoning != "" {
		b = append(b, `,"reasoning_content":`...)
		b = rawjson.AppendString(b, a.Reasoning)
	}
	b = append(b, `,"refusal":null},"logprobs":null,"finish_reason":`...)
	b = rawjson.AppendString(b, a.Finish)
	b = append(b, `}],"usage":`...)
	return append(a.Usage.append(b), '}')
}

// Stream is the answer as an event stream.
func (a Answer) Stream() []byte {
	b := a.AppendStart(nil)
	if a.Reasoning != "" {
		b = a.AppendReasoning(b, a.Reasoning)
	}
	if a.Text != "" {
		b = a.AppendText(b, a.Text)
	}
	return a.AppendEnd(b, a.Finish, a.Usage)
}

// AppendStart appends the event with which an answer begins.
func (h Head) AppendStart(dst []byte) []byte {
	return h.chunk(dst, `{"role":"assistant","content":""}`, "null")
}

// AppendText appends an event with more text.
func (h Head) AppendText(dst []byte, text string) []byte {
	return h.chunk(dst, member("content", text), "null")
}

// AppendReasoning appends an event with more of what the model thinks.
func (h Head) AppendReasoning(dst []byte, text string) []byte {
	return h.chunk(dst, member("reasoning_content", text), "null")
}

// AppendEnd appends the events with which a whole answer ends.
func (h Head) AppendEnd(dst []byte, finish string, u Usage) []byte {
	dst = h.chunk(dst, `{}`, string(rawjson.AppendString(nil, finish)))
	usage := append(h.open(nil, "chat.completion.chunk"), `[],"usage":`...)
	dst = openai.AppendData(dst, append(u.append(usage), '}'))
	return append(dst, openai.Done...)
}

// AppendError appends the event of an answer that breaks off. Its code is a status.
func AppendError(dst []byte, status int, kind, message string) []byte {
	b := append([]byte(nil), `{"error":{"message":`...)
	b = append(rawjson.AppendString(b, message), `,"type":`...)
	b = append(rawjson.AppendString(b, kind), `,"param":null,"code":`...)
	b = append(strconv.AppendInt(b, int64(status), 10), `}}`...)
	return openai.AppendData(dst, b)
}

func member(name, text string) string {
	return `{"` + name + `":` + string(rawjson.AppendString(nil, text)) + `}`
}

func (h Head) chunk(dst []byte, delta, finish string) []byte {
	b := h.open(nil, "chat.completion.chunk")
	b = append(b, `[{"index":0,"delta":`+delta+`,"logprobs":null,"finish_reason":`+finish+`}]}`...)
	return openai.AppendData(dst, b)
}

// open appends the members up to the choices.
func (h Head) open(dst []byte, object string) []byte {
	dst = append(dst, `{"id":`...)
	dst = rawjson.AppendString(dst, h.ID)
	dst = append(dst, `,"object":"`+object+`","created":`...)
	dst = strconv.AppendInt(dst, h.Created, 10)
	dst = append(dst, `,"model":`...)
	dst = rawjson.AppendString(dst, h.Model)
	return append(dst, `,"choices":`...)
}

func (u Usage) append(dst []byte) []byte {
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
