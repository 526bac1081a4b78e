package compat

import (
	"bytes"
	"slices"

	"hydrallm/shared/openai/rawjson"
)

const thoughtName = "reasoning_content"

// RefusesThoughts says whether a vendor is known to refuse what a model thought in a message of the history, under the name that most have for it.
func RefusesThoughts(vendor string) bool {
	r := vendors[vendor]
	if r == nil {
		return false
	}
	takes := r.inMessage[assistantRole]
	return slices.Contains(r.foreign, thoughtName) || takes != nil && !slices.Contains(takes, thoughtName)
}

// WithoutThoughts leaves out what a model thought in the messages of a request. had says whether there was any; else the body is returned as it is.
func WithoutThoughts(body []byte) (out []byte, had bool) {
	if !HasThoughts(body) {
		return body, false
	}
	messages := rawjson.Get(body, "messages")
	array := append(make([]byte, 0, len(messages)), '[')
	for span := range rawjson.Elements(messages) {
		if len(array) > 1 {
			array = append(array, ',')
		}
		m := span.Of(messages)
		if rawjson.Get(m, thoughtName) == nil {
			array = append(array, m...)
			continue
		}
		array, had = rawjson.AppendDelete(array, m, thoughtName), true
	}
	if !had {
		return body, false
	}
	return rawjson.AppendSet(make([]byte, 0, len(body)), body, "messages", append(array, ']')), true
}

// HasThoughts says whether a request may hold what a model thought.
func HasThoughts(body []byte) bool { return bytes.Contains(body, []byte(`"`+thoughtName+`"`)) }
