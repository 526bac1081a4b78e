package compat

import (
	"hydrallm/services/dispatcher/internal/dialect/gemini"
	"hydrallm/shared/openai/rawjson"
)

// fitGoogle takes out of a request what Google's endpoint refuses for this model, whoever chose it, and gives the conversation the form that the
// model wants: the user speaks first, and models without system instructions hear them from the user. Members that keep knows stay. renamed says that
// functions have other names than the client's.
func fitGoogle(body []byte, keep func(name string) bool) (fitted []byte, renamed bool) {
	var members []rawjson.Member
	var family gemini.Family
	hasTools := false
	for m := range rawjson.Members(body) {
		members = append(members, m)
		switch string(m.Name()) {
		case "model":
			family = gemini.FamilyOf(rawjson.Text(m.Value.Of(body)))
		case "tools":
			hasTools = m.Value.End-m.Value.Start > len("[]")
		}
	}
	var e edits
	var c items
	names := naming{body: body, edits: &e}
	for _, m := range members {
		stays := true
		switch string(m.Name()) {
		case "messages":
			fitTurns(&e, body, m.Value, family.Instructed())
			names.messages(m.Value)
		case "tools":
			names.walk(m.Value, toolNames)
		case "tool_choice":
			names.walk(m.Value, choiceNames)
			names.walk(m.Value, choosable)
		case "presence_penalty", "frequency_penalty":
			stays = family.Penalizes()
		case "response_format":
			stays = family.Formats() && (!hasTools || family.FormatsCalls()) || rawjson.Is(rawjson.Get(m.Value.Of(body), "type"), "text")
		}
		if stays || keep != nil && keep(string(m.Name())) {
			c.keep(&e, m.Key.Start, m.Value.End)
		} else {
			c.drop(&e, m.Key.Start, m.Value.End)
		}
	}
	return e.apply(body), names.renamed
}

// fitTurns brings the messages into the form that the model wants.
func fitTurns(e *edits, body []byte, messages rawjson.Span, instructed bool) {
	begun := false // somebody spoke
	for span := range rawjson.Elements(messages.Of(body)) {
		message := rawjson.Span{Start: messages.Start + span.Start, End: messages.Start + span.End}
		value := roleSpan(body, message)
		switch roleOf(value.Of(body)) {
		case systemRole, developerRole:
			if !instructed {
				begun = true
				e.replace(value.Start, value.End, `"user"`)
			}
		case assistantRole:
			if !begun {
				e.replace(message.Start, message.Start, `{"role":"user","content":"."},`)
			}
			begun = true
		default:
			begun = true
		}
		if begun && instructed {
			return
		}
	}
}

// roleSpan is the place of the role of a message.
func roleSpan(body []byte, message rawjson.Span) (role rawjson.Span) {
	for m := range rawjson.Members(message.Of(body)) {
		if string(m.Name()) == "role" {
			role = rawjson.Span{Start: message.Start + m.Value.Start, End: message.Start + m.Value.End}
		}
	}
	return role
}
