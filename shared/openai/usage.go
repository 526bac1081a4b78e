package openai

import (
	"strconv"

	"hydrallm/shared/openai/rawjson"
)

// Usage is the number of tokens of an answer.
type Usage struct {
	Prompt, Completion, Total int64
	Cached                    int64 // part of Prompt
}

// ParseUsage reads a usage object, with the names of Chat Completions or those of newer operations. A missing total is the sum; what is no number
// counts as 0.
func ParseUsage(raw []byte) Usage {
	var u Usage
	var input, output int64
	for m := range rawjson.Members(raw) {
		n := tokens(m.Value.Of(raw))
		switch string(m.Name()) {
		case "prompt_tokens":
			u.Prompt = n
		case "completion_tokens":
			u.Completion = n
		case "input_tokens":
			input = n
		case "output_tokens":
			output = n
		case "total_tokens":
			u.Total = n
		case "prompt_tokens_details", "input_tokens_details":
			u.Cached = max(u.Cached, tokens(rawjson.Get(m.Value.Of(raw), "cached_tokens")))
		case "prompt_cache_hit_tokens": // DeepSeek
			u.Cached = n
		}
	}
	if u.Prompt == 0 && u.Completion == 0 {
		u.Prompt, u.Completion = input, output
	}
	if u.Total == 0 {
		u.Total = u.Prompt + u.Completion
	}
	return u
}

// maxTokens bounds a count, so that sums of a few don't overflow.
const maxTokens = 1 << 60

// tokens reads a count. Nobody sends more tokens than a float64 holds exactly, so larger numbers are nonsense, like negative ones.
func tokens(raw []byte) int64 {
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || !(f > 0) {
		return 0
	}
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return min(n, maxTokens)
	}
	return int64(min(f, 1<<53))
}
