package stream

import (
	"bytes"

	"hydrallm/shared/openai/rawjson"
)

// Member is a named raw JSON value.
type Member struct {
	Name  string
	Value []byte
}

// noUsage is the usage of an answer whose upstream told none.
var noUsage = []byte(`{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`)

// fullUsage gives a usage with the members of the gateway.
func (f *Filter) fullUsage(raw []byte) []byte {
	if len(raw) == 0 || raw[0] != '{' {
		raw = noUsage
	}
	for _, m := range f.opts.Usage {
		raw = rawjson.AppendSet(nil, raw, m.Name, m.Value)
	}
	return raw
}

// disclose adds to a whole answer what the gateway tells about it: the members of the usage, and the parts of the first choice's message.
func (f *Filter) disclose(body []byte) []byte {
	if len(f.opts.Usage) > 0 {
		body = rawjson.AppendSet(nil, body, "usage", f.fullUsage(rawjson.Get(body, "usage")))
	}
	if f.opts.Parts == nil {
		return body
	}
	choices := rawjson.Get(body, "choices")
	for span := range rawjson.Elements(choices) {
		choice := span.Of(choices)
		message := rawjson.Get(choice, "message")
		if len(message) == 0 || message[0] != '{' {
			break
		}
		choice = rawjson.AppendSet(nil, choice, "message", rawjson.AppendSet(nil, message, "parts", f.opts.Parts))
		return rawjson.AppendSet(nil, body, "choices", bytes.Join([][]byte{choices[:span.Start], choice, choices[span.End:]}, nil))
	}
	return body
}
