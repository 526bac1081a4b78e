package messages

import (
	"bytes"

	"hydrallm/shared/openai/rawjson"
)

// AppendNative appends a body of Scan as a provider gets it that speaks the protocol. It keeps its bytes, but for the model, the members of the gateway,
// and thinking without a signature, which is that of another provider and would be refused. front is a system message of the hub, which goes to the
// member system; nil = none.
func AppendNative(dst, body []byte, model string, front []byte) []byte {
	text := textOf(rawjson.Get(front, "content"))
	c := rawjson.Copy(dst, body)
	hasModel, hasSystem := model == "", text == ""
	for m := range rawjson.Members(body) {
		name, value := string(m.Name()), m.Value.Of(body)
		if c.Member(m.Key.Start, m.Value.End, !ofGateway(name)); ofGateway(name) {
			continue
		}
		var instead []byte
		switch {
		case name == "model" && model != "":
			instead, hasModel = rawjson.AppendString(nil, model), true
		case name == "system" && text != "":
			instead, hasSystem = withSystem(value, text), true
		case name == "messages":
			instead = signedOnly(value)
		}
		if instead != nil {
			out := c.Edit(m.Value.Start, m.Value.End)
			*out = append(*out, instead...)
		}
	}
	if !hasModel {
		c.Add([]byte(`"model":`), rawjson.AppendString(nil, model))
	}
	if !hasSystem {
		c.Add([]byte(`"system":`), withSystem(nil, text))
	}
	return c.End()
}

// AsChat gives a body of Scan as a request to Chat Completions for a provider that speaks the protocol and gets it through the hub all the same: blocks, tools
// and settings stay as the client wrote them, which the dialect of such a provider understands. So prompts stay in its cache, and thinking is signed.
func AsChat(body []byte) ([]byte, error) {
	if thread := rawjson.Get(body, "thread"); len(thread) > 0 && thread[0] != 'n' {
		return nil, noThread()
	}
	c := rawjson.Copy(nil, body)
	for m := range rawjson.Members(body) {
		name := string(m.Name())
		if c.Member(m.Key.Start, m.Value.End, !ofGateway(name)); ofGateway(name) {
			continue
		}
		switch name {
		case "stop_sequences":
			out := c.Edit(m.Key.Start, m.Key.End)
			*out = append(*out, `"stop"`...)
		case "messages":
			if signed := signedOnly(m.Value.Of(body)); signed != nil {
				out := c.Edit(m.Value.Start, m.Value.End)
				*out = append(*out, signed...)
			}
		}
	}
	return c.End(), nil
}

// ofGateway says whether a member is for the gateway alone.
func ofGateway(name string) bool {
	switch name {
	case "session_id", "fork_from", "compress_context", "has_search", "web_fetch", "auto_web_fetch":
		return true
	}
	return false
}

var thinkingType = []byte(`"thinking"`)

// signedOnly gives messages without unsigned thinking; nil when there is none in them.
func signedOnly(messages []byte) []byte {
	if !bytes.Contains(messages, thinkingType) {
		return nil
	}
	changed := false
	c := rawjson.Copy(nil, messages)
	for span := range rawjson.Elements(messages) {
		message := span.Of(messages)
		blocks, signed := withoutUnsigned(message)
		c.Member(span.Start, span.End, signed || blocks != nil)
		changed = changed || !signed
		if blocks != nil {
			out := c.Edit(span.Start, span.End)
			*out = rawjson.AppendSet(*out, message, "content", blocks)
		}
	}
	if !changed {
		return nil
	}
	return c.End()
}

// withoutUnsigned gives the content of a message without unsigned thinking; nil when nothing else is in it. signed says that none is in it.
func withoutUnsigned(message []byte) (blocks []byte, signed bool) {
	content := rawjson.Get(message, "content")
	var kept [][]byte
	signed = true
	for _, b := range elements(content) {
		if rawjson.Is(rawjson.Get(b, "type"), "thinking") && len(inner(rawjson.Get(b, "signature"))) == 0 {
			signed = false
		} else {
			kept = append(kept, b)
		}
	}
	if signed || len(kept) == 0 {
		return nil, signed
	}
	return rawjson.Array(kept), false
}
