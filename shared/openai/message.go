package openai

import (
	"fmt"

	"hydrallm/shared/openai/rawjson"
)

// messages reads the top-level member of that name.
func (r *requestScan) messages() {
	start, kind := r.s.Pos(), r.s.Kind()
	if !r.s.Enter('[') {
		if kind != 'n' {
			r.wrongType("messages", "an array")
		}
		return
	}
	for n := 0; r.s.Element(); n++ {
		at := r.s.Pos()
		r.message(n)
		r.hasMessages = true
		r.last = rawjson.Span{Start: at, End: r.s.Pos()}
	}
	r.Messages = rawjson.Span{Start: start, End: r.s.Pos()}
}

// message reads one message: the type of its role, whether its content is empty, and empty arguments of its tool calls.
func (r *requestScan) message(n int) {
	if !r.s.Enter('{') {
		r.wrongType(fmt.Sprintf("messages[%d]", n), "an object")
		return
	}
	hasRole, user, empty := false, false, true
	r.hasText = false
	for r.s.Member() {
		switch string(r.s.Key()) {
		case "role":
			kind, role := r.s.Kind(), r.s.Skip().Of(r.body)
			if kind != '"' {
				r.wrongType(fmt.Sprintf("messages[%d].role", n), "a string")
			}
			hasRole = true
			user = rawjson.Is(role, "user")
		case "content":
			empty = r.content(n)
		case "tool_calls":
			r.toolCalls(n)
		case "function_call":
			r.function(n)
		default:
			r.otherSpelling(messageNames, "messages[#].", n)
			r.s.Skip()
		}
	}
	if !hasRole {
		r.fail(CodeMissing, fmt.Sprintf("messages[%d].role", n), fmt.Sprintf("'messages[%d].role' is missing.", n))
	}
	if user {
		r.lastUser, r.lastEmpty = n, empty
	}
	r.UserText = user && r.hasText
}

// content reads the content of a message: a string, null, a part or an array of parts. It answers whether there is nothing in it:
// no text and no part of another kind.
func (r *requestScan) content(n int) (empty bool) {
	switch r.s.Kind() {
	case '"':
		return r.plainText()
	case 'n':
		r.s.Skip()
		return true
	case '{':
		return r.part(n)
	case '[':
		r.s.Enter('[')
		empty = true
		for r.s.Element() {
			empty = r.part(n) && empty
		}
		return empty
	default:
		r.s.Skip()
		r.wrongType(fmt.Sprintf("messages[%d].content", n), "a string or an array of parts")
		return false
	}
}

// plainText reads a text and answers whether it is without characters.
func (r *requestScan) plainText() (empty bool) {
	value := r.s.Skip()
	r.weighText(value.Of(r.body))
	empty = value.End-value.Start == len(`""`)
	r.hasText = r.hasText || !empty
	return empty
}

// part reads one part of the content of message n and answers whether it is a text without characters.
func (r *requestScan) part(n int) (empty bool) {
	if r.s.Kind() == '"' {
		r.plainText()
		return false
	}
	if !r.s.Enter('{') {
		return false
	}
	var kind, text rawjson.Span
	for r.s.Member() {
		switch string(r.s.Key()) {
		case "type":
			kind = r.s.Skip()
		case "text":
			text = r.s.Skip()
		default:
			r.otherSpelling(partNames, "messages[#].content[].", n)
			r.s.Skip()
		}
	}
	switch raw := kind.Of(r.body); {
	case rawjson.Is(raw, "image_url"):
		r.Images = true
		r.weigh(imageTokens)
		return false
	case rawjson.Is(raw, "input_audio"):
		r.Audio = true
	case rawjson.Is(raw, "file"):
		r.Files = true
	}
	raw := text.Of(r.body)
	r.weighText(raw)
	emptyText := len(raw) <= len(`""`) || raw[0] != '"'
	r.hasText = r.hasText || !emptyText
	return emptyText && rawjson.Is(kind.Of(r.body), "text")
}

// toolCalls looks for empty arguments in the tool calls of message n.
func (r *requestScan) toolCalls(n int) {
	if !r.s.Enter('[') {
		return
	}
	for r.s.Element() {
		if !r.s.Enter('{') {
			continue
		}
		for r.s.Member() {
			if string(r.s.Key()) == "function" {
				r.function(n)
			} else {
				r.otherSpelling(toolCallNames, "messages[#].tool_calls[].", n)
				r.s.Skip()
			}
		}
	}
}

func (r *requestScan) function(n int) {
	if !r.s.Enter('{') {
		return
	}
	for r.s.Member() {
		r.otherSpelling(functionNames, "messages[#].tool_calls[].function.", n)
		name := r.s.Key()
		value := r.s.Skip()
		if value.End-value.Start == len(`""`) && string(value.Of(r.body)) == `""` && string(name) == "arguments" {
			r.emptyArgs = append(r.emptyArgs, value)
		}
	}
}
