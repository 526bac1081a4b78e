package prompt

import (
	"hash/maphash"
	"strings"

	"hydrallm/shared/contract"
	"hydrallm/shared/openai/rawjson"
)

// Roles as far as they matter here.
const (
	roleSystem    = "system" // and developer
	roleUser      = "user"
	roleAssistant = "assistant"
	roleTool      = "tool"
)

// message is a message with what tells it from others.
type message struct {
	contract.Message

	original *original // that it is a part of; nil = there is none that the request could have
	sent     []byte    // in its place, nil = itself
	role     string
	key      uint64   // equal for messages that say the same
	calls    bool     // it calls tools
	called   []string // ids of these calls
	resultOf string   // id of the call that it answers
	history  bool     // the session has it
	summary  bool
}

// original is a message as the surface of the request has it, which may be several here.
type original struct{ messages int }

// of tells messages that follow one another which original they are parts of.
func of(list []contract.Message) []*original {
	all := make([]*original, len(list))
	for i := range list {
		switch m := &list[i]; {
		case m.Original != nil:
			all[i] = &original{messages: 1}
		case m.Within && i > 0 && all[i-1] != nil:
			all[i] = all[i-1]
			all[i].messages++
		}
	}
	return all
}

var seed = maphash.MakeSeed()

// newMessage reads a message. Clients send back what they keep of an answer, so that only what it says counts: role, text without white space around
// it, other parts, and calls, but not members that nobody has to send back, such as reasoning.
func newMessage(from contract.Message) message {
	m, raw := message{Message: from}, from.Body
	var h maphash.Hash
	h.SetSeed(seed)
	field := func(name byte, text string) {
		if text != "" {
			_ = h.WriteByte(name)
			_, _ = h.WriteString(text)
			_ = h.WriteByte(0) // in no text
		}
	}
	for member := range rawjson.Members(raw) {
		value := member.Value.Of(raw)
		switch string(member.Name()) {
		case "role":
			m.role = rawjson.Text(value)
		case "content":
			text, others := contentOf(value)
			field('t', text)
			field('p', others)
		case "tool_calls":
			for span := range rawjson.Elements(value) {
				call := span.Of(value)
				m.calls = true
				if id := textOf(rawjson.Get(call, "id")); id != "" {
					m.called = append(m.called, id)
				}
				field('c', callOf(call))
			}
		case "function_call":
			m.calls = m.calls || value[0] == '{'
			field('f', functionOf(value))
		case "tool_call_id":
			m.resultOf = textOf(value)
			field('i', m.resultOf)
		case "name":
			field('i', textOf(value))
		}
	}
	if m.role == "developer" {
		m.role = roleSystem
	}
	field('r', m.role)
	m.key = h.Sum64()
	return m
}

// textOf is the text of a JSON string; "" for anything else.
func textOf(raw []byte) string {
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	return rawjson.Text(raw)
}

// contentOf gives the text of a content, and its other parts in their canonical form.
func contentOf(raw []byte) (text, others string) {
	if raw[0] != '[' {
		return strings.TrimSpace(textOf(raw)), ""
	}
	var texts strings.Builder
	var parts []byte
	for span := range rawjson.Elements(raw) {
		part := span.Of(raw)
		if said := rawjson.Get(part, "text"); said != nil {
			texts.WriteString(textOf(said))
			continue
		}
		if part[0] == '"' {
			texts.WriteString(textOf(part))
			continue
		}
		parts = appendCanonical(parts, part)
	}
	return strings.TrimSpace(texts.String()), string(parts)
}

func callOf(call []byte) string {
	return textOf(rawjson.Get(call, "id")) + "\x01" + functionOf(rawjson.Get(call, "function")) + "\x01" + string(appendCanonical(nil, rawjson.Get(call, "custom")))
}

func functionOf(function []byte) string {
	if len(function) == 0 || function[0] != '{' {
		return ""
	}
	return textOf(rawjson.Get(function, "name")) + "\x01" + canonicalArguments(textOf(rawjson.Get(function, "arguments")))
}
