package stream

import (
	"strings"

	"hydrallm/shared/openai/rawjson"
)

// finishReason gives the reason that a client gets for the raw one of an upstream, as raw JSON: one of the five that clients know, and never
// "stop" after a call (STR-09). nil says that the value is none: absent, null, false, empty
// or no plain value. A number is a reason that is not known.
func finishReason(raw []byte, calls, functionCall, output bool) []byte {
	switch string(raw) {
	case "", "null", `""`, `"null"`:
		return nil
	case `"stop"`:
		switch {
		case calls:
			return finishToolCalls
		case functionCall:
			return finishFunctionCall
		}
		return raw
	case `"length"`, `"tool_calls"`, `"content_filter"`, `"function_call"`:
		return raw
	}
	if raw[0] == 'f' || raw[0] == '{' || raw[0] == '[' {
		return nil
	}
	known := knownReason(strings.ToLower(rawjson.Text(raw)), output)
	if string(known) == `"stop"` {
		return finishReason(known, calls, functionCall, output)
	}
	return known
}

var (
	finishStop         = []byte(`"stop"`)
	finishLength       = []byte(`"length"`)
	finishToolCalls    = []byte(`"tool_calls"`)
	finishFilter       = []byte(`"content_filter"`)
	finishFunctionCall = []byte(`"function_call"`)
)

// knownReason maps what other APIs call their reasons.
func knownReason(reason string, output bool) []byte {
	switch reason {
	case "stop", "end_turn", "eos", "eos_token", "stop_sequence", "end", "complete", "completed", "done":
		return finishStop
	case "length", "max_tokens", "max_output_tokens", "max_completion_tokens", "model_length":
		return finishLength
	case "tool_calls", "tool_call", "tool_use":
		return finishToolCalls
	case "function_call":
		return finishFunctionCall
	}
	for _, blocked := range []string{"content_filter", "safety", "recitation", "blocklist", "prohibited_content", "spii", "refusal", "sensitive"} {
		if strings.HasPrefix(reason, blocked) {
			return finishFilter
		}
	}
	if output {
		return finishStop
	}
	return finishFilter
}
