package ollama

import (
	"bytes"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/shared/openai/rawjson"
)

// reply is a native answer being translated.
type reply struct {
	id      string // without a prefix
	created int64
	model   string // JSON string
	calls   int    // tool calls so far
}

// learn takes the model and the time from the first part of the answer.
func (a *reply) learn(line gjson.Result) {
	if a.model != "" {
		return
	}
	a.model = string(orEmpty([]byte(line.Get("model").Raw)))
	if at, err := time.Parse(time.RFC3339, line.Get("created_at").Str); err == nil {
		a.created = at.Unix()
	}
}

// takeCalls gives the tool calls of a message. Arguments become a string, and every call gets an id.
func (a *reply) takeCalls(calls []gjson.Result) []answer.Call {
	var out []answer.Call
	for _, call := range calls {
		id := "call_" + a.id + "_" + strconv.Itoa(a.calls)
		if given := call.Get("id").Str; given != "" {
			id = given
		}
		out = append(out, answer.Call{
			Index: a.calls, PlainIndex: true, ID: rawjson.AppendString(nil, id), Type: []byte(`"function"`),
			Name: orEmpty([]byte(call.Get("function.name").Raw)), Args: appendArguments(nil, call.Get("function.arguments")),
		})
		a.calls++
	}
	return out
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

// finish gives the finish reason of the last part, raw. The native one does not tell of tool calls.
func (a *reply) finish(line gjson.Result) []byte {
	switch {
	case line.Get("done_reason").Str == "length":
		return []byte(`"length"`)
	case a.calls > 0:
		return []byte(`"tool_calls"`)
	}
	return []byte(`"stop"`)
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

// logprobs gives the log probabilities, nil if there are none.
func logprobs(line gjson.Result) []byte {
	probs := line.Get("logprobs")
	if !probs.IsArray() || len(probs.Array()) == 0 {
		return nil
	}
	return []byte(`{"content":` + probs.Raw + `,"refusal":null}`)
}

// Completion translates a whole answer; id names it. It is false when the body is no answer.
func Completion(out *answer.Chunk, body []byte, id string) bool {
	text := bytes.TrimSpace(body)
	if !rawjson.Valid(text) || text[0] != '{' {
		return false
	}
	line := gjson.ParseBytes(text)
	message := line.Get("message")
	if !message.IsObject() || failed(line) {
		return false
	}
	a := reply{id: id}
	a.learn(line)
	a.head(out)
	ch := out.Choose(0)
	ch.Role, ch.Content = assistant, orEmpty([]byte(message.Get("content").Raw))
	if thought := message.Get("thinking"); thought.Type == gjson.String && thought.Str != "" {
		ch.ReasoningContent = []byte(thought.Raw)
	}
	if ch.Calls = a.takeCalls(callsOf(message)); len(ch.Calls) > 0 && string(ch.Content) == `""` {
		ch.Content = []byte("null")
	}
	for i := range ch.Calls {
		ch.Calls[i].Index = -1 // which is for deltas
	}
	ch.Logprobs, ch.Finish = logprobs(line), a.finish(line)
	if counted(line) {
		out.Usage = appendUsage(nil, line)
	}
	return true
}

var assistant = []byte(`"assistant"`)

// head sets what all parts of an answer have in common.
func (a *reply) head(c *answer.Chunk) {
	c.ID, c.Created, c.Model = []byte(`"chatcmpl-`+a.id+`"`), strconv.AppendInt(nil, a.created, 10), []byte(a.model)
}

// failed says whether a part is an error.
func failed(line gjson.Result) bool {
	e := line.Get("error")
	return e.Exists() && e.Type != gjson.Null && e.Type != gjson.False && e.Raw != `""`
}
