package opencode

import (
	"hydrallm/services/dispatcher/internal/agent/prompt"
	"hydrallm/shared/openai/rawjson"
)

// session is the body that opens a session. Without a title OpenCode has a model make one.
const session = `{"title":"gateway"}`

// message is the body that asks. Tools that are switched off are denied as well.
func message(p prompt.Prompt, m model) []byte {
	b := []byte{'{'}
	if m != (model{}) {
		b = rawjson.AppendString(append(b, `"model":{"providerID":`...), m.provider)
		b = rawjson.AppendString(append(b, `,"modelID":`...), m.id)
		b = append(b, `},`...)
	}
	if p.System != "" {
		b = rawjson.AppendString(append(b, `"system":`...), p.System)
		b = append(b, ',')
	}
	b = append(b, `"tools":{"*":false},"parts":[{"type":"text","text":`...)
	b = append(rawjson.AppendString(b, p.Text()), '}')
	for _, f := range p.Files {
		b = rawjson.AppendString(append(b, `,{"type":"file","mime":`...), f.Type)
		b = rawjson.AppendString(append(b, `,"filename":`...), f.Name)
		b = rawjson.AppendString(append(b, `,"url":`...), f.URL)
		b = append(b, '}')
	}
	return append(b, `]}`...)
}
