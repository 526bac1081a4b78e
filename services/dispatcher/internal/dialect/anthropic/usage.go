package anthropic

import (
	"strconv"

	"hydrallm/shared/openai/rawjson"
)

// usage is the number of tokens of an answer. Events repeat them as running totals, and not all each time (STR-15); some servers end with zeros,
// which say nothing about a count that is known.
type usage struct {
	input, cacheWrite, cacheRead, output, thinking count
}

type count struct {
	n     int64
	known bool
}

// maxCount is more than anybody counts; larger numbers are nonsense.
const maxCount = 1 << 53

func (c *count) take(raw []byte) {
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil && (n > 0 || n == 0 && !c.known) && n <= maxCount {
		*c = count{n, true}
	}
}

// take keeps what a raw object states.
func (u *usage) take(raw []byte) {
	for m := range rawjson.Members(raw) {
		value := m.Value.Of(raw)
		switch string(m.Name()) {
		case "input_tokens":
			u.input.take(value)
		case "cache_creation_input_tokens":
			u.cacheWrite.take(value)
		case "cache_read_input_tokens":
			u.cacheRead.take(value)
		case "output_tokens":
			u.output.take(value)
		case "output_tokens_details":
			u.thinking.take(rawjson.Get(value, "thinking_tokens"))
		}
	}
}

// known says whether anything was stated.
func (u *usage) known() bool { return u.input.known || u.output.known }

// appendTo appends the object as OpenAI has it, where cached tokens are part of the prompt.
func (u *usage) appendTo(dst []byte) []byte {
	prompt := u.input.n + u.cacheWrite.n + u.cacheRead.n
	for _, member := range []struct {
		name string
		n    int64
	}{
		{`{"prompt_tokens":`, prompt},
		{`,"completion_tokens":`, u.output.n},
		{`,"total_tokens":`, prompt + u.output.n},
		{`,"prompt_tokens_details":{"cached_tokens":`, u.cacheRead.n},
		{`,"cache_write_tokens":`, u.cacheWrite.n},
	} {
		dst = strconv.AppendInt(append(dst, member.name...), member.n, 10)
	}
	dst = append(dst, '}')
	if u.thinking.known {
		dst = strconv.AppendInt(append(dst, `,"completion_tokens_details":{"reasoning_tokens":`...), u.thinking.n, 10)
		dst = append(dst, '}')
	}
	return append(dst, '}')
}
