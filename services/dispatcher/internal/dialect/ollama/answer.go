package ollama

import (
	"bytes"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"hydrallm/shared/openai/rawjson"
)

// answer is a native answer being translated.
type answer struct {
	id      string // without a prefix
	created int64
	model   string // JSON string
	calls   int    // tool calls so far
}

// learn takes the model and the time from the first part of the answer.
func (a *answer) learn(line gjson.Result) {
	if a.model != "" {
		return
	}
	a.model = string(orEmpty([]byte(line.Get("model").Raw)))
	if at, err := time.Parse(time.RFC3339, line.Get("created_at").Str); err == nil {
		a.created = at.Unix()
	}
}

// appendHead begins an object that carries choices.
func (a *answer) appendHead(dst []byte, object string) []byte {
	dst = append(append(append(dst, `{"id":"chatcmpl-`...), a.id...), `","object":"`...)
	dst = append(append(dst, object...), `","created":`...)
	dst = append(strconv.AppendInt(dst, a.created, 10), `,"model":`...)
	return append(append(dst, a.model...), `,"choices":[`...)
}

// appendCalls adds the tool calls of a message. Arguments become a string, and every call gets an id.
func (a *answer) appendCalls(dst []byte, calls []gjson.Result, indexed bool) []byte {
	dst = append(dst, '[')
	for i, call := range calls {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '{')
		if indexed {
			dst = append(strconv.AppendInt(append(dst, `"index":`...), int64(a.calls), 10), ',')
		}
		id := "call_" + a.id + "_" + strconv.Itoa(a.calls)
		if given := call.Get("id").Str; given != "" {
			id = given
		}
		a.calls++
		dst = rawjson.AppendString(append(dst, `"id":`...), id)
		dst = append(append(dst, `,"type":"function","function":{"name":`...), orEmpty([]byte(call.Get("function.name").Raw))...)
		dst = append(appendArguments(append(dst, `,"arguments":`...), call.Get("function.arguments")), `}}`...)
	}
	return append(dst, ']')
}

// appendArguments adds the text of an object as a string; its numbers keep their spelling.
func appendArguments(dst []byte, v gjson.Result) []byte {
	switch {
	case v.Type == gjson.Null, v.Type == gjson.String && v.Str == "":
		return append(dst, `"{}"`...)
	case v.Type == gjson.String:
		return append(dst, v.Raw...)
	}
	return rawjson.AppendString(dst, v.Raw)
}

// callsOf gives the tool calls of a message that are ones.
func callsOf(message gjson.Result) []gjson.Result {
	var calls []gjson.Result
	for _, c := range message.Get("tool_calls").Array() {
		if c.IsObject() && c.Get("function").IsObject() {
			calls = append(calls, c)
		}
	}
	return calls
}

// finish gives the finish reason of the last part. The native one does not tell of tool calls.
func (a *answer) finish(line gjson.Result) string {
	switch {
	case line.Get("done_reason").Str == "length":
		return "length"
	case a.calls > 0:
		return "tool_calls"
	}
	return "stop"
}

// appendUsage adds the token counts; a count is missing when the prompt was known already.
func appendUsage(dst []byte, line gjson.Result) []byte {
	prompt, completion := int64(tokens(line.Get("prompt_eval_count"))), int64(tokens(line.Get("eval_count")))
	dst = strconv.AppendInt(append(dst, `{"prompt_tokens":`...), prompt, 10)
	dst = strconv.AppendInt(append(dst, `,"completion_tokens":`...), completion, 10)
	return append(strconv.AppendInt(append(dst, `,"total_tokens":`...), prompt+completion, 10), '}')
}

// counted says whether the last part tells the token counts.
func counted(line gjson.Result) bool {
	return line.Get("eval_count").Exists() || line.Get("prompt_eval_count").Exists()
}

// appendLogprobs adds the log probabilities, if there are any.
func appendLogprobs(dst []byte, line gjson.Result) []byte {
	if probs := line.Get("logprobs"); probs.IsArray() && len(probs.Array()) > 0 {
		dst = append(append(append(dst, `,"logprobs":{"content":`...), probs.Raw...), `,"refusal":null}`...)
	}
	return dst
}

// Completion translates a whole answer; id names it. A body that is no answer is returned as it is.
func Completion(body []byte, id string) []byte {
	text := bytes.TrimSpace(body)
	if !rawjson.Valid(text) || text[0] != '{' {
		return body
	}
	line := gjson.ParseBytes(text)
	message := line.Get("message")
	if !message.IsObject() || failed(line) {
		return body
	}
	a := answer{id: id}
	a.learn(line)
	out := append(a.appendHead(nil, "chat.completion"), `{"index":0,"message":{"role":"assistant","content":`...)
	calls, said := callsOf(message), orEmpty([]byte(message.Get("content").Raw))
	if len(calls) > 0 && string(said) == `""` {
		said = []byte("null")
	}
	out = append(out, said...)
	if thought := message.Get("thinking"); thought.Type == gjson.String && thought.Str != "" {
		out = append(append(out, `,"reasoning_content":`...), thought.Raw...)
	}
	if len(calls) > 0 {
		out = a.appendCalls(append(out, `,"tool_calls":`...), calls, false)
	}
	out = appendLogprobs(append(out, '}'), line)
	out = append(append(append(out, `,"finish_reason":"`...), a.finish(line)...), `"}]`...)
	if counted(line) {
		out = appendUsage(append(out, `,"usage":`...), line)
	}
	return append(out, '}')
}

// failed says whether a part is an error.
func failed(line gjson.Result) bool {
	e := line.Get("error")
	return e.Exists() && e.Type != gjson.Null && e.Type != gjson.False && e.Raw != `""`
}
