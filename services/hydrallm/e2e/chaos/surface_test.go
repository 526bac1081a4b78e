//go:build e2e

package chaos

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// surface is a protocol of clients: how one asks in it, and what an answer has to be.
type surface struct {
	path string
	body string // with the model, whether to stream, and the question as a JSON string
	text string // of a whole answer, as a path of gjson

	delta string // text of an event
	done  string // the type of the last event, or [DONE]
	fails []string
}

var surfaces = map[string]surface{
	"chat": {
		path: "/v1/chat/completions", body: `{"model":%q,"stream":%t,"messages":[{"role":"user","content":%s}]}`,
		text: "choices.0.message.content", delta: "choices.0.delta.content", done: "[DONE]",
	},
	"completions": {
		path: "/v1/completions", body: `{"model":%q,"stream":%t,"prompt":%s}`,
		text: "choices.0.text", delta: "choices.0.text", done: "[DONE]",
	},
	"messages": {
		path: "/v1/messages", body: `{"model":%q,"stream":%t,"max_tokens":1000,"messages":[{"role":"user","content":%s}]}`,
		text: "content.0.text", delta: "delta.text", done: "message_stop", fails: []string{"error"},
	},
	"responses": {
		path: "/v1/responses", body: `{"model":%q,"stream":%t,"input":%s}`,
		text: "output.0.content.0.text", delta: "delta", done: "response.completed", fails: []string{"response.failed", "error"},
	},
	"embeddings": {
		path: "/v1/embeddings", body: `{"model":%q,"input":%[3]s}`,
		text: "data.0.embedding.0",
	},
}

// seen is a stream as far as it came.
type seen struct {
	text   string
	done   bool
	failed bool
}

// read takes in the body of a stream. An error says what is malformed.
func (s surface) read(body string) (r seen, err error) {
	events, whole := strings.CutSuffix(body, "\n\n")
	for event := range strings.SplitSeq(events, "\n\n") {
		data, ok := "", false
		for line := range strings.SplitSeq(event, "\n") {
			if text, is := strings.CutPrefix(line, "data: "); is {
				data, ok = text, true
			}
		}
		switch {
		case !ok:
			continue // a comment
		case r.done, r.failed:
			return r, fmt.Errorf("%q follows the end", data)
		case data == "[DONE]":
			r.done = s.done == data
			continue
		case !gjson.Valid(data):
			return r, fmt.Errorf("malformed event %q", data)
		}
		kind := gjson.Get(data, "type").Str
		switch {
		case gjson.Get(data, "error.message").Str != "" && (s.fails == nil || kind == "error"), kind != "" && slices.Contains(s.fails, kind):
			r.failed = true
		case kind == s.done:
			r.done = true
		case kind == "" || kind == "content_block_delta" || kind == "response.output_text.delta":
			r.text += gjson.Get(data, s.delta).Str
		}
	}
	if !whole {
		return r, errors.New("the stream ends within an event")
	}
	if !r.done && !r.failed {
		return r, errors.New("the stream has no end")
	}
	return r, nil
}

// checkRefusal says what is wrong with an error that came instead of an answer.
func (s surface) checkRefusal(status int, body string) error {
	if status < 400 || !gjson.Valid(body) || gjson.Get(body, "error.message").Str == "" || gjson.Get(body, "error.type").Str == "" {
		return fmt.Errorf("status %d with a malformed error: %.300s", status, body)
	}
	return nil
}
