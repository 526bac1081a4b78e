package responses

import (
	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
	"hydrallm/shared/surface/chat"
)

// Errors writes errors: bodies in OpenAI's form, which Chat Completions has too, and events of this protocol. The zero value is ready for use.
type Errors struct{ chat.Errors }

// AppendEvent appends the event with which a stream breaks off whose end nobody could write: nobody knows what number it would have.
func (e Errors) AppendEvent(dst []byte, f *fault.Fault) []byte {
	return e.AppendEventOf(dst, e.AppendBody(nil, f, ""))
}

// AppendEventOf appends the event of a body of AppendBody. What it says stands in it twice: as OpenAI documents it, and in a member "error", for which its SDKs
// throw; others would wait for events that do not come.
func (Errors) AppendEventOf(dst, body []byte) []byte {
	inner := rawjson.Get(body, "error")
	event := []byte(`{"type":"error"`)
	for _, name := range []string{"code", "message", "param"} {
		event = append(append(append(append(event, `,"`...), name...), `":`...), rawjson.Get(inner, name)...)
	}
	event = append(append(append(event, `,"error":`...), inner...), `,"sequence_number":0}`...)
	return openai.AppendData(append(dst, "event: error\n"...), event)
}
