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
	key      uint64 // equal for messages that say the same
	calls    bool   // it calls tools
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
				m.calls = true
				field('c', callOf(span.Of(value)))
			}
		case "function_call":
			m.calls = m.calls || value[0] == '{'
			field('f', functionOf(value))
		case "tool_call_id", "name":
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

// contentOf gives the text of a content, and its other parts as they are.
func contentOf(raw []byte) (text, others string) {
	if raw[0] != '[' {
		return strings.TrimSpace(textOf(raw)), ""
	}
	var texts, parts strings.Builder
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
		parts.Write(part)
	}
	return strings.TrimSpace(texts.String()), parts.String()
}

func callOf(call []byte) string {
	return textOf(rawjson.Get(call, "id")) + "\x01" + functionOf(rawjson.Get(call, "function")) + "\x01" + string(rawjson.Get(call, "custom"))
}

func functionOf(function []byte) string {
	if len(function) == 0 || function[0] != '{' {
		return ""
	}
	return textOf(rawjson.Get(function, "name")) + "\x01" + textOf(rawjson.Get(function, "arguments"))
}
