package chat

import (
	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// Form is how requests are written: they are in the hub already. The zero value is ready for use.
type Form struct{}

// Scan reads a body in one pass.
func (Form) Scan(body []byte, r *contract.Request) error {
	scan, err := openai.ScanRequest(body)
	if err != nil {
		return err
	}
	r.Model, r.Stream, r.IncludeUsage = scan.Model, scan.Stream, scan.IncludeUsage
	r.Traits = contract.Traits{Tokens: scan.Tokens, Images: scan.Images, Audio: scan.Audio, Files: scan.Files, Tools: scan.Tools, UserText: scan.UserText, URL: scan.URL, Searches: scan.Searches}
	r.SessionID, r.ForkFrom, r.CompressContext = scan.SessionID, scan.ForkFrom, scan.CompressContext
	r.Web = contract.Web{Search: scan.HasSearch, Fetch: scan.WebFetch, Auto: scan.AutoWebFetch}
	if scan.Demands {
		r.Web.Tool = "web_search"
	}
	return nil
}

// Chat gives the body itself. The dispatcher leaves the members of the gateway out when it writes the body for an upstream.
func (Form) Chat(body []byte) ([]byte, error) { return body, nil }

// Messages gives the messages; a prompt is one of the user.
func (Form) Messages(body []byte) ([]contract.Message, error) {
	scan, err := openai.ScanRequest(body)
	if err != nil {
		return nil, err
	}
	if scan.Messages.IsZero() {
		return []contract.Message{{Body: append(append([]byte(`{"role":"user","content":`), scan.Prompt.Of(body)...), '}')}}, nil
	}
	array := scan.Messages.Of(body)
	var list []contract.Message
	for span := range rawjson.Elements(array) {
		list = append(list, contract.Message{Body: span.Of(array)})
	}
	return list, nil
}

// WithMessages edits the array of messages and nothing else.
func (Form) WithMessages(body []byte, list []contract.Message) []byte {
	array := make([]byte, 0, 2*len(body))
	array = append(array, '[')
	for i := range list {
		if i > 0 {
			array = append(array, ',')
		}
		array = append(array, list[i].Body...)
	}
	array = append(array, ']')
	return rawjson.AppendSet(make([]byte, 0, len(body)+len(array)), body, "messages", array)
}

// WithContext puts the message before the last one.
func (f Form) WithContext(body, message []byte) []byte {
	list, err := f.Messages(body)
	if err != nil || len(list) == 0 {
		return body
	}
	last := len(list) - 1
	return f.WithMessages(body, append(list[:last:last], contract.Message{Body: message}, list[last]))
}
