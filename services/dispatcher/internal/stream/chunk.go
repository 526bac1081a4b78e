package stream

import (
	"bytes"
	"strconv"

	"github.com/tidwall/gjson"

	"hydrallm/shared/openai/rawjson"
)

// chunk are the members of a chat.completion.chunk that matter here, found in one pass.
type chunk struct {
	id, created, model, choices, usage, err, groq gjson.Result
	nullError                                     bool // "error":null, which some SDKs take for an error
}

func readChunk(data []byte) chunk {
	var c chunk
	gjson.ParseBytes(data).ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "id":
			c.id = value
		case "created":
			c.created = value
		case "model":
			c.model = value
		case "choices":
			c.choices = value
		case "usage":
			c.usage = value
		case "error":
			c.err, c.nullError = value, value.Type == gjson.Null
		case "x_groq":
			c.groq = value
		}
		return true
	})
	if !c.usage.IsObject() {
		c.usage = c.groq.Get("usage")
	}
	return c
}

// failed says that the chunk reports an error, whatever else it holds.
func (c chunk) failed() bool {
	return c.err.Exists() && !c.nullError || c.groq.Get("error").String() != ""
}

func (c chunk) empty() bool { return !c.choices.Get("0").Exists() }

// Usage is what an answer cost, in tokens.
type Usage struct{ Prompt, Completion, Total int64 }

func usageOf(u gjson.Result) Usage {
	usage := Usage{
		Prompt: u.Get("prompt_tokens").Int(), Completion: u.Get("completion_tokens").Int(), Total: u.Get("total_tokens").Int(),
	}
	if usage.Total == 0 {
		usage.Total = usage.Prompt + usage.Completion
	}
	return usage
}

func withoutError(data []byte, c chunk) []byte {
	if !c.nullError {
		return data
	}
	return rawjson.AppendDelete(nil, data, "error")
}

func quote(s string) string { return string(rawjson.AppendString(nil, s)) }

func itoa(i int64) string { return strconv.FormatInt(i, 10) }

// appendData appends an event with one line of data.
func appendData(dst, data []byte) []byte {
	if bytes.ContainsAny(data, "\r\n") { // white space between JSON values: the event came over several lines (SSE-08)
		data = bytes.Map(func(r rune) rune {
			if r == '\r' || r == '\n' {
				return ' '
			}
			return r
		}, data)
	}
	return append(append(append(dst, "data: "...), data...), "\n\n"...)
}
