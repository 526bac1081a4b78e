package ollama

import (
	"strconv"

	"github.com/tidwall/gjson"

	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// Request translates a request to Chat Completions into one of the native chat operation, with a context window of so many tokens. What the
// other endpoint ignores is ignored here too. The error is an *openai.RequestError that names what can't be translated.
//
// A prompt that does not fit even so is refused by the server instead of being cut.
func Request(body []byte, window int, stream bool) ([]byte, error) {
	root := gjson.ParseBytes(body)
	if !rawjson.Valid(body) || !root.IsObject() {
		return nil, &openai.RequestError{Message: "The request body must be a JSON object.", Code: openai.CodeInvalidJSON}
	}
	think, err := thinking(root)
	if err != nil {
		return nil, err
	}
	out := append([]byte(`{"model":`), orEmpty([]byte(root.Get("model").Raw))...)
	if out, err = appendMessages(append(out, `,"messages":`...), root.Get("messages")); err != nil {
		return nil, err
	}
	if tools := root.Get("tools"); tools.IsArray() && len(tools.Array()) > 0 && root.Get("tool_choice").Str != "none" {
		out = append(append(out, `,"tools":`...), tools.Raw...)
	}
	if f := format(root.Get("response_format")); f != "" {
		out = append(append(out, `,"format":`...), f...)
	}
	if think != "" {
		out = append(append(out, `,"think":`...), think...)
	}
	for _, name := range [...]string{"keep_alive", "logprobs", "top_logprobs"} {
		if v := root.Get(name); given(v) {
			out = append(append(out, `,"`+name+`":`...), v.Raw...)
		}
	}
	out = append(out, `,"options":`...)
	out = appendOptions(out, root, window)
	out = append(out, `,"truncate":false,"stream":`...)
	return append(strconv.AppendBool(out, stream), '}'), nil
}

func given(v gjson.Result) bool { return v.Exists() && v.Type != gjson.Null }

// appendOptions adds the sampling parameters. Those that the other endpoint sets when the client does not are set here too, so that an
// answer does not depend on the length of the prompt.
func appendOptions(dst []byte, root gjson.Result, window int) []byte {
	dst = strconv.AppendInt(append(dst, `{"num_ctx":`...), int64(window), 10)
	for _, option := range [...]struct{ name, standard string }{
		{"temperature", "1.0"}, {"top_p", "1.0"}, {"seed", ""}, {"frequency_penalty", ""}, {"presence_penalty", ""},
	} {
		value := option.standard
		if v := root.Get(option.name); v.Type == gjson.Number {
			value = v.Raw
		}
		if value != "" {
			dst = append(append(dst, `,"`+option.name+`":`...), value...)
		}
	}
	if n := limit(root); n > 0 {
		dst = strconv.AppendInt(append(dst, `,"num_predict":`...), int64(n), 10)
	}
	switch stop := root.Get("stop"); {
	case stop.Type == gjson.String:
		dst = append(append(append(dst, `,"stop":[`...), stop.Raw...), ']')
	case stop.IsArray():
		dst = append(append(dst, `,"stop":`...), stop.Raw...)
	}
	return append(dst, '}')
}

// format gives the native word for a response format: "json", a schema, or nothing.
func format(f gjson.Result) string {
	if !f.IsObject() {
		return ""
	}
	schema := f.Get("schema")
	switch f.Get("type").Str {
	case "json_schema":
		schema = f.Get("json_schema.schema")
	case "json_object":
		if !schema.IsObject() {
			return `"json"`
		}
	default:
		return ""
	}
	if schema.IsObject() {
		return schema.Raw
	}
	return ""
}

// thinking gives the native word for how much to think, or nothing.
func thinking(root gjson.Result) (string, error) {
	effort, param := root.Get("reasoning_effort"), "reasoning_effort"
	if effort.Str == "" {
		effort, param = root.Get("reasoning.effort"), "reasoning.effort"
	}
	switch effort.Str {
	case "":
		return "", nil
	case "none":
		return "false", nil
	case "minimal", "low":
		return `"low"`, nil
	case "medium", "high":
		return effort.Raw, nil
	case "xhigh", "ultra", "max":
		return `"max"`, nil
	}
	return "", &openai.RequestError{
		Message: "'" + param + "' must be one of none, minimal, low, medium, high, xhigh and max.", Param: param, Code: openai.CodeInvalidValue,
	}
}
