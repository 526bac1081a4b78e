// Package completions is what all services need of the surface of Completions, OpenAI's older protocol, which shares its errors with chat.
package completions

import (
	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
	"hydrallm/shared/surface/chat"
)

// Form is how requests are written. The zero value is ready for use.
type Form struct{}

// ScanClient reads a body that a client sent: messages in the place of the prompt are WithMessages' alone.
func ScanClient(body []byte, r *contract.Request) error {
	return read(body, r, false)
}

// Scan reads a body in one pass. One with messages in the place of its prompt is measured as what it is, a conversation.
func (Form) Scan(body []byte, r *contract.Request) error {
	return read(body, r, true)
}

func read(body []byte, r *contract.Request, edited bool) error {
	scan, err := openai.ScanCompletion(body)
	switch {
	case err != nil:
		return err
	case !scan.History.IsZero() && !edited:
		return &openai.RequestError{
			Message: "'messages' is not known here: it belongs to /v1/chat/completions.", Param: "messages", Code: openai.CodeInvalidValue,
		}
	case !scan.History.IsZero():
		return chat.Form{}.Scan(scan.Chat(), r)
	}
	r.Model, r.Stream, r.IncludeUsage = scan.Model, scan.Stream, scan.IncludeUsage
	r.Traits = contract.Traits{Tokens: scan.Tokens, UserText: scan.UserText, URL: scan.URL}
	r.SessionID, r.ForkFrom, r.CompressContext = scan.SessionID, scan.ForkFrom, scan.CompressContext
	r.Web = contract.Web{Search: scan.HasSearch, Fetch: scan.WebFetch, Auto: scan.AutoWebFetch}
	return nil
}

// Chat translates a request. What a chat model can't do is an error.
func (Form) Chat(body []byte) ([]byte, error) {
	scan, err := openai.ScanCompletion(body)
	switch {
	case err != nil:
		return nil, err
	case scan.Demand != nil:
		return nil, scan.Demand
	}
	return scan.Chat(), nil
}

// Messages gives the prompt as a message of the user, or what WithMessages put in its place. A request that no chat model can serve has none.
func (Form) Messages(body []byte) ([]contract.Message, error) {
	scan, err := openai.ScanCompletion(body)
	switch {
	case err != nil:
		return nil, err
	case !scan.History.IsZero():
		return chat.Form{}.Messages(body)
	case scan.Demand != nil:
		at := scan.Demand.Param
		return nil, &openai.RequestError{
			Param: at, Code: scan.Demand.Code, Message: "'" + at + "' as it is given has no place in a session, which is a conversation: it has one text and is answered by the next.",
		}
	}
	return []contract.Message{{Body: scan.UserMessage()}}, nil
}

// WithMessages puts messages in the place of the prompt. No client sends them here.
func (Form) WithMessages(body []byte, list []contract.Message) []byte {
	if len(list) == 0 { // they would be no messages
		return body
	}
	return rawjson.AppendDelete(nil, chat.Form{}.WithMessages(body, list), "prompt")
}

// WithContext puts the message before the last one. A request that no chat model can serve has no place for it.
func (f Form) WithContext(body, message []byte) []byte {
	if scan, err := openai.ScanCompletion(body); err != nil || scan.Demand != nil {
		return body
	}
	list, err := f.Messages(body)
	if err != nil || len(list) == 0 {
		return body
	}
	last := len(list) - 1
	return f.WithMessages(body, append(list[:last:last], contract.Message{Body: message}, list[last]))
}
