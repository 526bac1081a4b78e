package gemini

import (
	"strconv"

	"hydrallm/shared/openai/rawjson"
)

// usage is what a usageMetadata counts. Gemini counts thoughts beside the answer, and what tools put into the prompt beside the prompt.
type usage struct {
	known                                          bool
	prompt, tools, answer, thoughts, cached, total int64
}

// take reads the metadata of the next event. They are running totals; a zero says nothing about a count that is known.
func (u *usage) take(metadata []byte) {
	u.known, u.total = true, 0
	for m := range rawjson.Members(metadata) {
		n := number(m.Value.Of(metadata))
		if n == 0 {
			continue
		}
		switch string(m.Name()) {
		case "promptTokenCount":
			u.prompt = n
		case "toolUsePromptTokenCount":
			u.tools = n
		case "candidatesTokenCount":
			u.answer = n
		case "thoughtsTokenCount":
			u.thoughts = n
		case "cachedContentTokenCount":
			u.cached = n
		case "totalTokenCount":
			u.total = n
		}
	}
}

// appendTo appends the object as OpenAI has it. What is known of a search goes with it.
func (u *usage) appendTo(dst, grounding []byte) []byte {
	prompt, answer := u.prompt+u.tools, u.answer+u.thoughts
	field := func(name string, n int64) { dst = strconv.AppendInt(append(dst, name...), n, 10) }
	field(`{"prompt_tokens":`, prompt)
	field(`,"completion_tokens":`, answer)
	field(`,"total_tokens":`, max(u.total, prompt+answer))
	field(`,"prompt_tokens_details":{"cached_tokens":`, u.cached)
	field(`},"completion_tokens_details":{"reasoning_tokens":`, u.thoughts)
	dst = append(dst, '}')
	if grounding != nil {
		dst = append(append(dst, `,"grounding":`...), grounding...)
	}
	return append(dst, '}')
}

// number reads a count; 0 for what is none. It is capped so that sums can't overflow.
func number(raw []byte) int64 {
	n, err := strconv.ParseUint(string(raw), 10, 48)
	if err != nil {
		return 0
	}
	return int64(n)
}
