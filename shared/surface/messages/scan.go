package messages

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// scan is a body while it is being read: what stages want to know of it, without decoding it. The first error of meaning is kept, and reported only
// if the body is valid JSON.
type scan struct {
	body []byte
	s    rawjson.Scanner
	req  *contract.Request
	err  *openai.RequestError
	seen []string // members that may be there once

	characters int64 // of texts, for the estimate
	images     int64
	maxTokens  int64
	messages   int
	thread     bool   // the provider has the messages before
	tools      []byte // raw, like the choice among them
	choice     []byte
}

// The estimate of R-089, as for Chat Completions.
const (
	charactersPerToken = 4
	imageTokens        = 256
)

// once are the members that the gateway reads, and so may be there only once (REQ-07).
var once = []string{
	"model", "stream", "messages", "system", "session_id", "fork_from", "compress_context", "has_search", "web_fetch", "auto_web_fetch",
}

// run reads the body.
func (r *scan) run() error {
	if !r.s.Enter('{') {
		if r.s.End() {
			return &openai.RequestError{Message: "The request body must be a JSON object.", Code: openai.CodeInvalidType}
		}
		return r.syntaxError()
	}
	for r.s.Member() {
		r.member()
	}
	switch {
	case !r.s.End():
		return r.syntaxError()
	case r.err != nil:
		return r.err
	case r.messages == 0 && !r.thread:
		return &openai.RequestError{Message: "messages: at least one message is required", Param: "messages", Code: openai.CodeMissing}
	}
	r.search()
	r.req.Traits.Tokens = max(1, r.characters/charactersPerToken) + r.images*imageTokens
	return nil
}

func (r *scan) syntaxError() error {
	if len(r.body) == 0 {
		return &openai.RequestError{Message: "The request body is empty.", Code: openai.CodeInvalidJSON}
	}
	return &openai.RequestError{Message: fmt.Sprintf("The request body is not valid JSON: %v.", r.s.Err()), Code: openai.CodeInvalidJSON}
}

func (r *scan) fail(code, at, format string, args ...any) {
	if r.err == nil {
		r.err = refuse(code, at, format, args...)
	}
}

// refuse says what is wrong at a place, in the form in which Anthropic says it.
func refuse(code, at, format string, args ...any) *openai.RequestError {
	return &openai.RequestError{Code: code, Param: at, Message: at + ": " + fmt.Sprintf(format, args...)}
}

func (r *scan) member() {
	name := string(r.s.Key())
	if slices.Contains(once, name) {
		if slices.Contains(r.seen, name) {
			r.fail(openai.CodeDuplicate, name, "is given more than once")
		}
		r.seen = append(r.seen, name)
	}
	switch name {
	case "model":
		r.req.Model = r.text(name)
	case "stream":
		r.req.Stream = r.boolean(name) == yes
	case "messages":
		r.list()
	case "system":
		r.content(name)
	case "max_tokens":
		n, _ := strconv.ParseInt(string(r.s.Skip().Of(r.body)), 10, 64)
		r.maxTokens = max(n, 0)
	case "tools":
		value := r.value(name, '[', "an array of tools")
		if len(value) > 0 && len(bytes.TrimSpace(value[1:len(value)-1])) > 0 {
			r.req.Traits.Tools, r.tools = true, value
			r.characters += int64(len(value))
		}
	case "tool_choice":
		r.choice = r.value(name, '{', "an object")
	case "stop_sequences":
		for n, sequence := range elements(r.value(name, '[', "an array of strings")) {
			if !isString(sequence) {
				r.fail(openai.CodeInvalidType, name+"."+strconv.Itoa(n), "must be a string")
			}
		}
	case "thread":
		r.thread = r.s.Kind() == '{'
		r.s.Skip()
	case "session_id":
		r.req.SessionID = r.text(name)
	case "fork_from":
		r.req.ForkFrom = r.text(name)
	case "compress_context":
		r.req.CompressContext = r.boolean(name).given()
	case "has_search":
		r.req.Web.Search = r.boolean(name) == yes
	case "web_fetch":
		r.req.Web.Fetch = r.text(name)
	case "auto_web_fetch":
		r.req.Web.Auto = r.boolean(name).given()
	default:
		if other := openai.OtherSpelling([]byte(name), once); other != "" {
			r.fail(openai.CodeAmbiguous, name, "is '%s' to servers that read names in any case", other)
		}
		r.s.Skip()
	}
}

// value gives a member that is an array ('[') or an object ('{'), and nil for null and for anything else, which is refused.
func (r *scan) value(name string, first byte, want string) []byte {
	kind, value := r.s.Kind(), r.s.Skip().Of(r.body)
	if kind == first {
		return value
	}
	if kind != 'n' {
		r.fail(openai.CodeInvalidType, name, "must be %s", want)
	}
	return nil
}

func (r *scan) text(name string) string {
	kind, value := r.s.Kind(), r.s.Skip().Of(r.body)
	if kind != '"' && kind != 'n' {
		r.fail(openai.CodeInvalidType, name, "must be a string")
	}
	if kind != '"' {
		return ""
	}
	return rawjson.Text(value)
}

// answer is a boolean that may be absent.
type answer uint8

const (
	absent answer = iota
	yes
	no
)

func (a answer) given() *bool {
	if a == absent {
		return nil
	}
	is := a == yes
	return &is
}

func (r *scan) boolean(name string) answer {
	kind := r.s.Kind()
	switch r.s.Skip(); kind {
	case 't':
		return yes
	case 'f':
		return no
	case 'n':
	default:
		r.fail(openai.CodeInvalidType, name, "must be a boolean")
	}
	return absent
}

// list reads the messages.
func (r *scan) list() {
	if !r.s.Enter('[') {
		r.fail(openai.CodeInvalidType, "messages", "must be an array")
		return
	}
	for ; r.s.Element(); r.messages++ {
		from := r.s.Pos()
		r.message("messages." + strconv.Itoa(r.messages))
		last := rawjson.Span{Start: from, End: r.s.Pos()}
		r.req.Traits.URL = r.req.Traits.UserText && openai.MayHoldURL(last.Of(r.body))
	}
}

func (r *scan) message(at string) {
	if !r.s.Enter('{') {
		r.fail(openai.CodeInvalidType, at, "must be an object")
		return
	}
	role, hasContent, hasText := "", false, false
	for r.s.Member() {
		switch string(r.s.Key()) {
		case "role":
			role = rawjson.Text(r.s.Skip().Of(r.body))
		case "content":
			hasContent, hasText = true, r.content(at+".content")
		default:
			r.s.Skip()
		}
	}
	switch {
	case role != roleUser && role != roleAssistant && role != roleSystem:
		r.fail(openai.CodeInvalidValue, at+".role", "must be one of user, assistant and system")
	case !hasContent:
		r.fail(openai.CodeMissing, at+".content", "Field required")
	}
	r.req.Traits.UserText = role == roleUser && hasText
}

// content reads a string or an array of blocks, and says whether it holds text of whoever speaks.
func (r *scan) content(at string) (hasText bool) {
	switch kind := r.s.Kind(); kind {
	case '"':
		return r.weigh(r.s.Skip().Of(r.body))
	case '[':
		r.s.Enter('[')
		for n := 0; r.s.Element(); n++ {
			hasText = r.block(at, n) || hasText
		}
		return hasText
	default:
		if r.s.Skip(); kind != 'n' || at != "system" {
			r.fail(openai.CodeInvalidType, at, "must be a string or an array of content blocks")
		}
		return false
	}
}

// weigh counts the characters of a string and says whether it has any.
func (r *scan) weigh(raw []byte) bool {
	if len(raw) <= len(`""`) || raw[0] != '"' {
		return false
	}
	r.characters += openai.Characters(raw)
	return true
}

// block reads one block of a content. What kinds there are is known only to who gets the request; here it has to have one.
func (r *scan) block(at string, n int) (hasText bool) {
	if !r.s.Enter('{') {
		r.fail(openai.CodeInvalidType, at+"."+strconv.Itoa(n), "must be an object")
		return false
	}
	var kind []byte
	for r.s.Member() {
		switch string(r.s.Key()) {
		case "type":
			kind = r.s.Skip().Of(r.body)
		case "text":
			hasText = r.weigh(r.s.Skip().Of(r.body))
		case "thinking":
			r.weigh(r.s.Skip().Of(r.body))
		case "input":
			r.characters += int64(len(r.s.Skip().Of(r.body)))
		case "source": // of a document
			source := r.s.Skip().Of(r.body)
			if rawjson.Is(rawjson.Get(source, "type"), "text") {
				r.weigh(rawjson.Get(source, "data"))
			}
		case "content": // of a result of a tool, or of a document
			if open := r.s.Kind(); open == '"' || open == '[' {
				r.content(at + "." + strconv.Itoa(n) + ".content")
			} else {
				r.s.Skip()
			}
		default:
			r.s.Skip()
		}
	}
	switch rawjson.Text(kind) {
	case "":
		if len(kind) == 0 || kind[0] != '"' {
			r.fail(openai.CodeMissing, at+"."+strconv.Itoa(n)+".type", "Field required")
		}
	case "image":
		r.req.Traits.Images = true
		r.images++
	case "document":
		r.req.Traits.Files = true
	}
	return hasText
}
