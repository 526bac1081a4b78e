package faulttest

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// statuses are those that a client may see with an error.
var statuses = []int{400, 402, 404, 413, 418, 422, 451, 503}

// judge says what an answer is: complete, or a well-formed error. Everything else is a fault of the gateway.
func (q *question) judge(status int, header http.Header, body string) (outcome, error) {
	contentType, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	switch {
	case strings.Contains(body, providerKey):
		return "", errors.New("the answer shows a key of a provider")
	case header.Get("X-Request-Id") == "":
		return "", errors.New("the answer has no request id")
	case status != http.StatusOK:
		return refused, checkRefusal(status, contentType, body)
	case !q.stream:
		return complete, q.checkCompletion(contentType, body)
	case contentType != contentEvents:
		return "", fmt.Errorf("a stream is labelled %q", contentType)
	}
	return q.checkStream(body)
}

// checkRefusal is about an error instead of an answer.
func checkRefusal(status int, contentType, body string) error {
	if !slices.Contains(statuses, status) {
		return fmt.Errorf("status %d: %.300s", status, body)
	}
	if contentType != contentJSON || !gjson.Valid(body) {
		return fmt.Errorf("status %d without JSON, %q: %.300s", status, contentType, body)
	}
	if err := checkError(body); err != nil {
		return err
	}
	if gjson.Get(body, "detail").Str != gjson.Get(body, "error.message").Str {
		return fmt.Errorf("detail and message differ: %.300s", body)
	}
	return nil
}

// checkError is about the envelope of an error: all members are there, and in the types that clients expect (FO-09).
func checkError(body string) error {
	e := gjson.Get(body, "error")
	code, param := e.Get("code"), e.Get("param")
	switch {
	case e.Get("message").Str == "", e.Get("type").Str == "":
		return fmt.Errorf("error without message or type: %.300s", body)
	case code.Type != gjson.String && (code.Type != gjson.Null || !code.Exists()):
		return fmt.Errorf("code of an error is neither text nor null: %.300s", body)
	case param.Type != gjson.String && (param.Type != gjson.Null || !param.Exists()):
		return fmt.Errorf("param of an error is neither text nor null: %.300s", body)
	case strings.Contains(body, "<html"), strings.Contains(body, "<body"): // FO-10
		return fmt.Errorf("error with markup: %.300s", body)
	}
	return nil
}

func (q *question) checkCompletion(contentType, body string) error {
	choice := gjson.Get(body, "choices.0")
	switch {
	case contentType != contentJSON || !gjson.Valid(body):
		return fmt.Errorf("no JSON, %q: %.300s", contentType, body)
	case choice.Get("message.content").Str != q.text():
		return fmt.Errorf("the answer is %.300s", body)
	case choice.Get("finish_reason").Str != "stop", gjson.Get(body, "object").Str != "chat.completion":
		return fmt.Errorf("not a whole answer: %.300s", body)
	}
	return nil
}

// reading is a stream as far as it was read.
type reading struct {
	text     string
	finished int
	usages   int
	torn     bool // the last event is not whole
	failed   bool
	done     bool
}

// checkStream accepts a complete stream with one [DONE], and one that broke off with exactly one error event at its end and no [DONE]
// . Before that, an event may be torn only where the answer was lost inside the gateway: a machine that is too busy for 10 MB within the
// limits brings that about.
func (q *question) checkStream(body string) (outcome, error) {
	var r reading
	events, whole := strings.CutSuffix(body, "\n\n")
	if !whole {
		return "", fmt.Errorf("the stream ends within an event: %q", tail(body))
	}
	for event := range strings.SplitSeq(events, "\n\n") {
		if r.failed || r.done {
			return "", fmt.Errorf("something follows the end of the stream: %q", tail(body))
		}
		if err := r.add(event); err != nil {
			return "", fmt.Errorf("%w in the stream that ends %q", err, tail(body))
		}
	}
	wanted := 0
	if q.includeUsage {
		wanted = 1
	}
	switch {
	case !strings.HasPrefix(q.text(), r.text):
		return "", fmt.Errorf("the stream says %q", r.text)
	case r.failed:
		return broken, nil
	case r.torn:
		return "", fmt.Errorf("the stream ends with half an event: %q", tail(body))
	case !r.done:
		return "", fmt.Errorf("the stream has no end: %q", tail(body))
	case r.text != q.text(), r.finished != 1:
		return "", fmt.Errorf("a stream of %d finish reasons says %q", r.finished, r.text)
	case r.usages > wanted: // STR-07
		return "", fmt.Errorf("%d usage chunks", r.usages)
	}
	return complete, nil
}

// add reads one event.
func (r *reading) add(event string) error {
	if strings.HasPrefix(event, ":") {
		return nil
	}
	data, ok := strings.CutPrefix(event, "data: ")
	switch {
	case !ok || strings.Contains(data, "\n"):
		return fmt.Errorf("malformed event %q", tail(event))
	case data == "[DONE]":
		r.done = true
		return nil
	case r.torn && gjson.Get(data, "error.code").Str != "answer_lost":
		return fmt.Errorf("an event without JSON before %q", tail(event))
	case !gjson.Valid(data):
		r.torn = true
		return nil
	case gjson.Get(data, "error").Exists():
		r.failed = true
		return checkError(data)
	}
	choices := gjson.Get(data, "choices")
	switch {
	case !choices.IsArray():
		return fmt.Errorf("event without choices %q", tail(event))
	case !choices.Get("0").Exists() && gjson.Get(data, "usage").IsObject():
		r.usages++
	}
	r.text += choices.Get("0.delta.content").Str
	if choices.Get("0.finish_reason").Str != "" {
		r.finished++
	}
	return nil
}

// tail is the end of a text, for messages.
func tail(s string) string {
	const most = 300
	return s[max(0, len(s)-most):]
}
