package stream

import (
	"bytes"
	"crypto/rand"
	"strconv"
	"strings"
	"time"

	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// head is what all chunks of a stream have in common, as raw values; nil while the upstream has stated none.
type head struct {
	id, created, model []byte
}

// learn takes what the first chunks state.
func (h *head) learn(c *openai.Chunk) {
	if h.id == nil {
		h.id = stated(c.ID.Of(c.Data), '"')
	}
	if h.created == nil {
		h.created = stated(c.Created.Of(c.Data), '1')
	}
	if h.model == nil {
		h.model = stated(c.Model.Of(c.Data), '"')
	}
}

// stated copies a raw value if it is of the kind: a string that is not empty, or a number.
func stated(raw []byte, kind byte) []byte {
	if len(raw) == 0 || (raw[0] == '"') != (kind == '"') || string(raw) == `""` {
		return nil
	}
	if kind == '1' && (raw[0] < '0' || raw[0] > '9') {
		return nil
	}
	return bytes.Clone(raw)
}

// complete fills in what the upstream left out.
func (h *head) complete(model string) {
	if h.id == nil {
		h.id = rawjson.AppendString(nil, "chatcmpl-"+strings.ToLower(rand.Text()))
	}
	if h.created == nil {
		h.created = strconv.AppendInt(nil, time.Now().Unix(), 10)
	}
	if model != "" || h.model == nil {
		h.model = rawjson.AppendString(nil, model)
	}
}

// append begins a JSON object of this kind ("chat.completion" or a chunk of it) with the common members. It is not closed.
func (h *head) append(dst []byte, object string) []byte {
	dst = append(append(dst, `{"id":`...), h.id...)
	dst = append(append(append(dst, `,"object":"`...), object...), '"')
	dst = append(append(dst, `,"created":`...), h.created...)
	return append(append(dst, `,"model":`...), h.model...)
}

const (
	chunkObject      = "chat.completion.chunk"
	completionObject = "chat.completion"
)

// ownChunk gives the JSON of a chunk of our own: the common members and the given ones.
func (f *Filter) ownChunk(members ...string) []byte {
	f.head.complete(f.opts.Model)
	f.body = append(f.head.append(f.body[:0], chunkObject), ',')
	for _, m := range members {
		f.body = append(f.body, m...)
	}
	f.body = append(f.body, '}')
	return f.body
}

// appendOwn appends an event of our own.
func (f *Filter) appendOwn(dst []byte, members ...string) []byte {
	return openai.AppendData(dst, f.ownChunk(members...))
}

// appendDelta appends an event of our own with a delta of one choice, whose members are given.
func (f *Filter) appendDelta(dst []byte, index int, members ...string) []byte {
	f.head.complete(f.opts.Model)
	f.body = f.head.append(f.body[:0], chunkObject)
	f.body = strconv.AppendInt(append(f.body, `,"choices":[{"index":`...), int64(index), 10)
	f.body = append(f.body, `,"delta":{`...)
	for _, m := range members {
		f.body = append(f.body, m...)
	}
	f.body = append(f.body, `},"finish_reason":null}]}`...)
	return openai.AppendData(dst, f.body)
}
