package gemini

import (
	"strconv"

	"hydrallm/shared/openai/rawjson"
)

// appendUsage appends the usage object for a raw usageMetadata. Gemini counts thoughts beside the answer, and what tools put into the prompt
// beside the prompt. What is known of a search goes with it.
func appendUsage(dst, metadata, grounding []byte) []byte {
	var prompt, tools, answer, thoughts, cached, total int64
	for m := range rawjson.Members(metadata) {
		n := number(m.Value.Of(metadata))
		switch string(m.Name()) {
		case "promptTokenCount":
			prompt = n
		case "toolUsePromptTokenCount":
			tools = n
		case "candidatesTokenCount":
			answer = n
		case "thoughtsTokenCount":
			thoughts = n
		case "cachedContentTokenCount":
			cached = n
		case "totalTokenCount":
			total = n
		}
	}
	prompt, answer = prompt+tools, answer+thoughts
	if total == 0 {
		total = prompt + answer
	}
	field := func(name string, n int64) { dst = strconv.AppendInt(append(dst, name...), n, 10) }
	field(`{"prompt_tokens":`, prompt)
	field(`,"completion_tokens":`, answer)
	field(`,"total_tokens":`, total)
	field(`,"prompt_tokens_details":{"cached_tokens":`, cached)
	field(`},"completion_tokens_details":{"reasoning_tokens":`, thoughts)
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
