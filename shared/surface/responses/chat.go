package responses

import (
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// sameNames are parameters that both protocols, or servers of both, call the same.
var sameNames = []string{
	"temperature", "top_p", "top_k", "min_p", "stop", "seed", "presence_penalty", "frequency_penalty", "logit_bias", "user",
}

// write says the request in Chat Completions.
func (r *reader) write() {
	dst := append(make([]byte, 0, len(r.body)+256), '{')
	member := func(name string, value []byte) {
		if value == nil {
			return
		}
		if len(dst) > 1 {
			dst = append(dst, ',')
		}
		dst = append(append(append(append(dst, '"'), name...), `":`...), value...)
	}
	member("model", r.members["model"])
	if r.Stream {
		member("stream", []byte("true"))
		member("stream_options", []byte(`{"include_usage":true}`))
	}
	member("messages", r.allMessages())
	choice := r.choice() // which may leave tools out
	if tools := r.Tools.appendChat(nil); tools != nil {
		member("tools", tools)
		member("tool_choice", choice)
		member("parallel_tool_calls", r.members["parallel_tool_calls"])
	}
	member("response_format", r.format())
	if effort := rawjson.Get(r.members["reasoning"], "effort"); len(effort) > 0 && effort[0] == '"' {
		member("reasoning_effort", effort)
	}
	member("max_tokens", r.members["max_output_tokens"])
	for _, name := range sameNames {
		member(name, r.members[name])
	}
	if r.logprobs() {
		member("logprobs", []byte("true"))
		member("top_logprobs", r.members["top_logprobs"])
	}
	r.chat = append(dst, '}')
}

// allMessages gives the array of messages: the instructions, then the conversation.
func (r *reader) allMessages() []byte {
	dst := append(make([]byte, 0, len(r.inputRaw)+256), '[')
	if instructions := r.members["instructions"]; len(instructions) > len(`""`) {
		dst = append(append(append(dst, `{"role":"system","content":`...), instructions...), '}')
	}
	for i := range r.messages {
		if len(dst) > 1 {
			dst = append(dst, ',')
		}
		dst = append(dst, r.messages[i].body...)
	}
	return append(dst, ']')
}

// format gives response_format; nil when none is asked for.
func (r *reader) format() []byte {
	format := rawjson.Get(r.members["text"], "format")
	if format == nil || format[0] == 'n' {
		return nil
	}
	kind := rawjson.Get(format, "type")
	switch rawjson.Text(kind) {
	case "text":
	case "json_object":
		return []byte(`{"type":"json_object"}`)
	case "json_schema":
		if inner := rawjson.Get(format, "json_schema"); inner != nil { // as Chat Completions has it
			return format
		}
		out := append([]byte(`{"type":"json_schema","json_schema":`), rawjson.AppendDelete(nil, format, "type")...)
		return append(out, '}')
	default:
		r.fail(openai.CodeInvalidValue, "text.format.type", "'text.format.type' must be 'text', 'json_object' or 'json_schema'.")
	}
	return nil
}
