package stream

import (
	"strconv"

	"github.com/tidwall/gjson"

	"hydrallm/shared/openai/rawjson"
)

// UsageOf reads the usage of a JSON answer.
func UsageOf(body []byte) Usage {
	c := readChunk(body)
	if !c.usage.IsObject() {
		return Usage{}
	}
	return usageOf(c.usage)
}

// Completion gives a JSON answer as the client gets it: think tags handled, and the same repairs as in a stream. A sound answer is returned
// as it is.
func Completion(body []byte, opts Options) []byte {
	out := body
	for i, c := range gjson.GetBytes(body, "choices").Array() {
		if fixed, changed := completionChoice(c, opts); changed {
			out = replaceChoice(out, i, fixed)
		}
	}
	if readChunk(body).nullError {
		out = rawjson.AppendDelete(nil, out, "error")
	}
	return out
}

func replaceChoice(body []byte, i int, choice []byte) []byte {
	list := []byte{'['}
	for j, c := range gjson.GetBytes(body, "choices").Array() {
		if j > 0 {
			list = append(list, ',')
		}
		if j == i {
			list = append(list, choice...)
		} else {
			list = append(list, c.Raw...)
		}
	}
	return rawjson.AppendSet(nil, body, "choices", append(list, ']'))
}

func completionChoice(c gjson.Result, opts Options) (raw []byte, changed bool) {
	raw = []byte(c.Raw)
	message := c.Get("message")
	text := []byte(message.Raw)
	edited := false
	if opts.Think != ThinkOff {
		text, edited = thinkMessage(message, opts.Think)
	}
	tools := message.Get("tool_calls").Array()
	for i, t := range tools {
		if args := t.Get("function.arguments"); t.Get("function").Exists() && args.String() == "" {
			text, edited = setArguments(text, i), true
		}
	}
	if edited {
		raw, changed = rawjson.AppendSet(nil, raw, "message", text), true
	}
	switch finish := c.Get("finish_reason"); {
	case finish.Str == "stop" && len(tools) > 0:
		raw, changed = rawjson.AppendSet(nil, raw, "finish_reason", []byte(`"tool_calls"`)), true
	case finish.Type == gjson.String && finish.Str == "":
		raw, changed = rawjson.AppendSet(nil, raw, "finish_reason", []byte(`"stop"`)), true
	}
	return raw, changed
}

// setArguments makes the arguments of one call an empty object (TOOL-07).
func setArguments(message []byte, i int) []byte {
	var list []byte
	for j, t := range gjson.GetBytes(message, "tool_calls").Array() {
		entry := []byte(t.Raw)
		if j == i {
			function := rawjson.AppendSet(nil, []byte(t.Get("function").Raw), "arguments", []byte(`"{}"`))
			entry = rawjson.AppendSet(nil, entry, "function", function)
		}
		list = append(append(list, ','), entry...)
	}
	list[0] = '['
	return rawjson.AppendSet(nil, message, "tool_calls", append(list, ']'))
}

// thinkMessage splits the content of a whole message.
func thinkMessage(message gjson.Result, mode Think) (raw []byte, changed bool) {
	raw = []byte(message.Raw)
	content := message.Get("content")
	reasoning := message.Get("reasoning_content").Str
	if alternate := message.Get("reasoning"); alternate.Type == gjson.String {
		if reasoning == "" {
			reasoning = alternate.Str
		}
		raw, changed = rawjson.AppendDelete(nil, raw, "reasoning"), true
	}
	if content.Type == gjson.String {
		var s splitter
		text, thought := s.feed(content.Str)
		restText, restThought := s.flush()
		text, thought = text+restText, thought+restThought
		if text != content.Str {
			raw, changed = setText(raw, "content", text, true), true
			if mode == ThinkSplit {
				reasoning += thought
			}
		}
	}
	if !changed {
		return raw, false
	}
	return setText(raw, "reasoning_content", reasoning, false), true
}

// Synthesize appends a JSON answer as the event stream that the client asked for (STR-10).
func Synthesize(dst, body []byte, opts Options) []byte {
	body = Completion(body, opts)
	var f Filter
	f.noteEnvelope(readChunk(body))
	choices := gjson.GetBytes(body, "choices").Array()
	for i, c := range choices {
		message, index := c.Get("message"), strconv.Itoa(i)
		if given := c.Get("index"); given.Type == gjson.Number {
			index = given.Raw
		}
		send := func(delta, finish string) {
			dst = f.own(dst, `"choices":[{"index":`+index+`,"delta":{`+delta+`},"finish_reason":`+finish+`}]`)
		}
		send(`"role":"assistant","content":""`, "null")
		for _, name := range []string{"reasoning_content", "reasoning", "content", "refusal"} {
			if v := message.Get(name); filled(v) {
				send(`"`+name+`":`+v.Raw, "null")
			}
		}
		if tools := message.Get("tool_calls"); filled(tools) {
			send(`"tool_calls":`+indexed(tools), "null")
		}
		finish := c.Get("finish_reason").Raw
		if finish == "" || finish == "null" {
			finish = `"stop"`
		}
		send("", finish)
	}
	if usage := gjson.GetBytes(body, "usage"); opts.IncludeUsage && usage.IsObject() {
		dst = f.own(dst, `"choices":[]`, `"usage":`+usage.Raw)
	}
	return append(dst, "data: [DONE]\n\n"...)
}

// indexed gives each call its index.
func indexed(tools gjson.Result) string {
	var list []byte
	for i, t := range tools.Array() {
		list = append(append(list, ','), rawjson.AppendSet(nil, []byte(t.Raw), "index", []byte(strconv.Itoa(i)))...)
	}
	list[0] = '['
	return string(append(list, ']'))
}
