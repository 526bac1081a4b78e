package stream

import (
	"bytes"

	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// appendChunk appends the chunk at hand as an event: with the choices in f.parts if they changed, without an "error" that is none, and with
// the model's name if one is set. If nothing of that applies to a sound event, its bytes pass as they came (C-22, SSE-20).
func (f *Filter) appendChunk(dst []byte, e *openai.Event, choicesChanged bool) []byte {
	c := &f.chunk
	if !choicesChanged && !c.NullError && f.opts.Model == "" && c.HasChoices {
		if wellformed(e) {
			return append(dst, e.Raw...)
		}
		return openai.AppendData(dst, c.Data)
	}
	f.body = f.appendTop(f.body[:0], choicesChanged, len(f.opts.Usage) == 0)
	return openai.AppendData(dst, f.body)
}

// appendTop appends the chunk with new top-level members. Without its usage a chunk is one of a routed stream, which has that once, at its end.
func (f *Filter) appendTop(dst []byte, choicesChanged, withUsage bool) []byte {
	data := f.chunk.Data
	rename := f.opts.Model != ""
	if rename {
		f.head.complete(f.opts.Model)
	}
	c := rawjson.Copy(dst, data)
	hasID, hasCreated, hasModel, hasChoices := false, false, false, false
	for m := range rawjson.Members(data) {
		name := string(m.Name())
		c.Member(m.Key.Start, m.Value.End, (name != "error" || !f.chunk.NullError) && (!rename || !private(name)) && (withUsage || name != "usage"))
		switch name {
		case "choices":
			hasChoices = true
			if choicesChanged {
				f.editChoices(c.Edit(m.Value.Start, m.Value.End))
			} else if !f.chunk.HasChoices {
				replace(c.Edit(m.Value.Start, m.Value.End), noChoices)
			}
		case "id":
			if hasID = true; rename {
				replace(c.Edit(m.Value.Start, m.Value.End), f.head.id)
			}
		case "created":
			if hasCreated = true; rename {
				replace(c.Edit(m.Value.Start, m.Value.End), f.head.created)
			}
		case "model":
			if hasModel = true; rename {
				replace(c.Edit(m.Value.Start, m.Value.End), f.head.model)
			}
		}
	}
	if !hasChoices {
		c.Add([]byte(`"choices":`), noChoices)
	}
	if rename && !hasID {
		c.Add([]byte(`"id":`), f.head.id)
	}
	if rename && !hasCreated {
		c.Add([]byte(`"created":`), f.head.created)
	}
	if rename && !hasModel {
		c.Add([]byte(`"model":`), f.head.model)
	}
	return c.End()
}

// private says whether vendors report on themselves in a member. A routed answer has no such one: what they say of tokens is in its usage.
func private(name string) bool {
	switch name {
	case "x_groq", "time_info", "base_resp":
		return true
	}
	return false
}

var noChoices = []byte("[]")

func replace(out *[]byte, value []byte) { *out = append(*out, value...) }

// editChoices appends the choices that are left.
func (f *Filter) editChoices(out *[]byte) {
	*out = append(*out, '[')
	first := true
	for i, p := range f.parts {
		if p.gone {
			continue
		}
		if !first {
			*out = append(*out, ',')
		}
		first = false
		if p.text.IsZero() {
			*out = append(*out, f.chunk.Choices[i].Span.Of(f.chunk.Data)...)
		} else {
			*out = append(*out, p.text.Of(f.text)...)
		}
	}
	*out = append(*out, ']')
}

// UsageOf reads the usage of a JSON answer.
func UsageOf(body []byte) Usage {
	var c openai.Chunk
	c.Parse(bytes.TrimSpace(body))
	return openai.ParseUsage(c.Usage.Of(c.Data))
}
