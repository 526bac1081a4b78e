package stream

import (
	"bytes"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/shared/openai/rawjson"
)

// isArray says whether a raw value is an array.
func isArray(raw []byte) bool { return len(raw) > 0 && raw[0] == '[' }

// take reads a content that comes in parts, as models of Mistral give it that reason. It is false, and s is empty, when a part is something
// else than text or thought.
func (s *split) take(content []byte) bool {
	s.reset()
	for span := range rawjson.Elements(content) {
		part := span.Of(content)
		switch kind := rawjson.Get(part, "type"); {
		case rawjson.Is(kind, "text"):
			s.content = append(s.content, answer.Inner(rawjson.Get(part, "text"))...)
		case rawjson.Is(kind, "thinking"):
			s.reasoning = append(s.reasoning, thoughtOf(rawjson.Get(part, "thinking"))...)
		default:
			s.reset()
			return false
		}
	}
	return true
}

// thoughtOf is the inner part of a thought, which is a text or an array of parts with texts.
func thoughtOf(raw []byte) (text []byte) {
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
