// Package messages is what all services need of the surface of Anthropic's Messages: requests, their translation into the hub, and errors.
package messages

import (
	"hydrallm/shared/contract"
	"hydrallm/shared/openai/rawjson"
)

// Roles of messages.
const (
	roleUser      = "user"
	roleAssistant = "assistant"
	roleSystem    = "system"
)

// Form is how requests are written. The zero value is ready for use.
type Form struct{}

// Scan reads a body in one pass. The estimated size holds the tokens that the answer may have.
func (Form) Scan(body []byte, r *contract.Request) error {
	maxTokens, err := measure(body, r)
	r.Traits.Tokens += maxTokens
	r.IncludeUsage = true // the protocol always has it
	return err
}

// ScanCount reads the body of a request to count tokens: the estimated size is the count. It belongs to no session, and has no stream.
func ScanCount(body []byte, r *contract.Request) error {
	var all contract.Request
	_, err := measure(body, &all)
	r.Model, r.Traits = all.Model, all.Traits
	return err
}

func measure(body []byte, r *contract.Request) (maxTokens int64, err error) {
	s := scan{body: body, s: rawjson.Scan(body), req: r}
	err = s.run()
	return s.maxTokens, err
}

// Messages gives the messages. Blocks that the hub has no words for are in the originals alone, those of the user named by a text.
func (Form) Messages(body []byte) ([]contract.Message, error) {
	array := rawjson.Get(body, "messages")
	var list []contract.Message
	n := 0
	for span := range rawjson.Elements(array) {
		original := span.Of(array)
		m, err := readLeniently(place(n), original)
		if err != nil {
			return nil, err
		}
		n++
		for i, hub := range m.all() {
			if i == 0 {
				list = append(list, contract.Message{Body: hub, Original: original})
			} else {
				list = append(list, contract.Message{Body: hub, Within: true})
			}
		}
	}
	return list, nil
}

// WithMessages writes messages with their originals, others as this surface has them: results of tools that follow each other are one message, as the
// protocol wants it, and what the user says next is in it too. What the system says in a history goes to the member system.
func (f Form) WithMessages(body []byte, list []contract.Message) []byte {
	var all, system [][]byte
	var results [][]byte // the blocks of the message that was written last, if it is made of results
	for i := range list {
		m := &list[i]
		switch {
		case m.Original != nil:
			all, results = append(all, m.Original), nil
			continue
		case m.Within:
			continue
		case rawjson.Is(rawjson.Get(m.Body, "role"), roleSystem), rawjson.Is(rawjson.Get(m.Body, "role"), "developer"):
			system = append(system, m.Body)
			continue
		}
		role, blocks := fromHub(m.Body)
		if len(blocks) == 0 {
			continue
		}
		if role == roleUser && results != nil {
			all, blocks = all[:len(all)-1], append(results, blocks...)
		}
		results = nil
		if rawjson.Is(rawjson.Get(blocks[len(blocks)-1], "type"), "tool_result") {
			results = blocks
		}
		all = append(all, rawjson.Object(nil).Text("role", role).Set("content", rawjson.Array(blocks)).End())
	}
	body = rawjson.AppendSet(nil, body, "messages", rawjson.Array(all))
	for _, m := range system {
		body = f.WithContext(body, m)
	}
	return body
}

// WithContext adds the message to the member system: a provider that speaks the protocol takes no system message among the others.
func (Form) WithContext(body, message []byte) []byte {
	text := textOf(rawjson.Get(message, "content"))
	if text == "" {
		return body
	}
	return rawjson.AppendSet(nil, body, "system", withSystem(rawjson.Get(body, "system"), text))
}

// withSystem gives the member system with a further text.
func withSystem(system []byte, text string) []byte {
	block := typed("text").Text("text", text).End()
	switch {
	case len(system) > 0 && system[0] == '"' && len(system) > len(`""`):
		return rawjson.Array([][]byte{typed("text").Set("text", system).End(), block})
	case len(system) > 0 && system[0] == '[':
		return rawjson.Array(append(elements(system), block))
	}
	return rawjson.AppendString(nil, text)
}

// elements gives the elements of an array.
func elements(array []byte) (list [][]byte) {
	for span := range rawjson.Elements(array) {
		list = append(list, span.Of(array))
	}
	return list
}

// typed begins an object with a member "type".
func typed(kind string) rawjson.Object { return rawjson.Object(nil).Text("type", kind) }
