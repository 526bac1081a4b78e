package stream

import (
	"bytes"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/shared/openai/rawjson"
)

// isArray says whether a raw value is an array.
func isArray(raw []byte) bool { return len(raw) > 0 && raw[0] == '[' }

// take reads a content that comes in parts, as models of Mistral give it that reason. Parts that are neither text nor thought are left out.
func (s *split) take(content []byte) {
	s.reset()
	for span := range rawjson.Elements(content) {
		part := span.Of(content)
		switch string(answer.Inner(rawjson.Get(part, "type"))) {
		case "text", "output_text":
			s.content = append(s.content, textOf(rawjson.Get(part, "text"))...)
		case "thinking", "reasoning":
			for _, name := range []string{"thinking", "reasoning", "text"} {
				s.reasoning = append(s.reasoning, textOf(rawjson.Get(part, name))...)
			}
		case "":
			s.content = append(append(s.content, textOf(part)...), textOf(rawjson.Get(part, "text"))...)
		}
	}
}

// textOf is the inner part of a text, or of those in an array of parts.
func textOf(raw []byte) (text []byte) {
	if !isArray(raw) {
		return answer.Inner(raw)
	}
	for span := range rawjson.Elements(raw) {
		text = append(text, answer.Inner(rawjson.Get(span.Of(raw), "text"))...)
	}
	return text
}

// detailed gives what is new in reasoning_details, where MiniMax puts the thoughts: the texts, which repeat what was said before in some
// versions and go on in others.
func (s *splitter) detailed(array []byte) (text []byte) {
	for span := range rawjson.Elements(array) {
		text = append(text, answer.Inner(rawjson.Get(span.Of(array), "text"))...)
	}
	if len(text) == 0 {
		return nil
	}
	fresh, repeated := bytes.CutPrefix(text, s.details)
	s.details = text
	if !repeated {
		return text
	}
	return fresh
}
