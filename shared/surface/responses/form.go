package responses

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// Form is how requests are written. The zero value is ready for use.
type Form struct{}

// Scan reads a body and measures what it says.
func (Form) Scan(body []byte, r *contract.Request) error {
	req, err := Read(body)
	if err != nil {
		return err
	}
	if len(req.messages) == 0 && req.Previous == "" && len(req.References) == 0 {
		return &openai.RequestError{Message: "'input' must hold at least one item.", Param: "input", Code: openai.CodeMissing}
	}
	scan, err := openai.ScanRequest(req.measured())
	if err != nil {
		return told(err)
	}
	r.Model, r.Stream, r.IncludeUsage = scan.Model, scan.Stream, scan.IncludeUsage
	r.Traits = contract.Traits{Tokens: scan.Tokens, Images: scan.Images, Audio: scan.Audio, Files: scan.Files, Tools: scan.Tools, UserText: scan.UserText, URL: scan.URL, Searches: req.Tools.searches()}
	r.SessionID, r.ForkFrom, r.CompressContext = scan.SessionID, scan.ForkFrom, scan.CompressContext
	r.Store, r.Background, r.Previous, r.References = req.Store, req.Background, req.Previous, len(req.References) > 0
	r.Web = contract.Web{Search: scan.HasSearch, Tool: req.searches, Fetch: scan.WebFetch, Auto: scan.AutoWebFetch}
	return nil
}

// measured is the request in Chat Completions with the members of the gateway, and with a message in any case: it may follow a stored response.
func (r *Request) measured() []byte {
	out := bytes.Clone(r.chat[:len(r.chat)-1])
	for _, name := range gatewayMembers {
		if value := r.members[name]; value != nil {
			out = append(append(append(append(out, `,"`...), name...), `":`...), value...)
		}
	}
	if len(r.messages) == 0 {
		out = append(out, `,"prompt":"-"`...)
	}
	return append(out, '}')
}

// told says an error about messages in the words of this protocol.
func told(err error) error {
	bad, ok := errors.AsType[*openai.RequestError](err)
	if !ok || !strings.HasPrefix(bad.Param, "messages") {
		return err
	}
	return &openai.RequestError{Message: strings.ReplaceAll(bad.Message, "'messages'", "'input'"), Param: "input", Code: bad.Code}
}

// Chat gives the request in Chat Completions.
func (Form) Chat(body []byte) ([]byte, error) {
	req, err := Read(body)
	if err != nil {
		return nil, err
	}
	if err := req.Unresolved(); err != nil {
		return nil, err
	}
	return req.chat, nil
}

// Unresolved is the error of a request that refers to items which nobody has put in its place, nil when there is none.
func (r *Request) Unresolved() error {
	if len(r.References) == 0 {
		return nil
	}
	return NotFound(r.References[0])
}

// NotFound is the error about an item that is not stored.
func NotFound(ref Reference) error {
	return &openai.RequestError{
		Message: "Item with id '" + ref.Item + "' not found: items are kept as long as the response that they belong to is stored.",
		Param:   ref.At + ".id", Code: "item_not_found",
	}
}

// Messages gives the conversation. The originals are arrays of items. Instructions are no part of it. A result without its call is one nevertheless: the call
// is in the history of a session.
func (Form) Messages(body []byte) ([]contract.Message, error) {
	req, err := Read(body)
	if err != nil {
		return nil, err
	}
	list := make([]contract.Message, 0, len(req.messages))
	var media [][]byte // of results, behind all of which they stand
	for i, m := range req.messages {
		out := contract.Message{Body: m.body, Within: m.within}
		if !m.within {
			out.Original = appendArray(nil, m.items)
		}
		if m.result != nil {
			out.Body = m.result
		}
		list, media = append(list, out), append(media, m.media...)
		if last := i == len(req.messages)-1; len(media) > 0 && (last || req.messages[i+1].result == nil) {
			list, media = append(list, contract.Message{Body: withMedia(media), Within: true}), nil
		}
	}
	return list, nil
}

// WithMessages gives the body with another conversation. Tools that came as items stay.
func (Form) WithMessages(body []byte, list []contract.Message) []byte {
	var items [][]byte
	old := itemsOf(rawjson.Get(body, "input"))
	for span := range rawjson.Elements(old) {
		if it := span.Of(old); rawjson.Is(rawjson.Get(it, "type"), "additional_tools") {
			items = append(items, it)
		}
	}
	for i := range list {
		m := &list[i]
		switch {
		case m.Within:
		case len(m.Original) > 0 && m.Original[0] == '[':
			for span := range rawjson.Elements(m.Original) {
				items = append(items, span.Of(m.Original))
			}
		default:
			items = append(items, itemsFor(m.Body)...)
		}
	}
	return withInput(body, items)
}

func withInput(body []byte, items [][]byte) []byte {
	return rawjson.AppendSet(make([]byte, 0, 2*len(body)), body, "input", appendArray(nil, items))
}

// itemsFor says a message of Chat Completions in items. Contents stay as they are: they are read here alone.
func itemsFor(message []byte) (items [][]byte) {
	role, text := rawjson.Get(message, "role"), readable(rawjson.Get(message, "content"))
	if refusal := rawjson.Get(message, "refusal"); (len(text) == 0 || text[0] == 'n') && len(refusal) > len(`""`) && refusal[0] == '"' {
		text = append(append([]byte(`[{"type":"refusal","refusal":`), refusal...), "}]"...)
	}
	switch rawjson.Text(role) {
	case "tool":
		out := append([]byte(`{"type":"function_call_output","call_id":`), orText(rawjson.Get(message, "tool_call_id"))...)
		return append(items, append(append(append(out, `,"output":`...), orText(text)...), '}'))
	case "user", "system", "developer", "assistant":
	default:
		role = []byte(`"user"`)
	}
	calls := rawjson.Get(message, "tool_calls")
	if len(text) > 0 && text[0] != 'n' && (string(text) != `""` || len(calls) == 0) {
		out := append([]byte(`{"type":"message","role":`), role...)
		if name := rawjson.Get(message, "name"); isContext(role, name) {
			out = append(append(out, `,"name":`...), name...)
		}
		out = append(out, `,"content":`...)
		items = append(items, append(append(out, text...), '}'))
	}
	for span := range rawjson.Elements(calls) {
		call := span.Of(calls)
		kind, function, says := "function_call", rawjson.Get(call, "function"), "arguments"
		if custom := rawjson.Get(call, "custom"); custom != nil {
			kind, function, says = "custom_tool_call", custom, "input"
		}
		out := append([]byte(`{"type":"`+kind+`","call_id":`), orText(rawjson.Get(call, "id"))...)
		out = append(append(out, `,"name":`...), orText(rawjson.Get(function, "name"))...)
		out = append(append(out, `,"`+says+`":`...), orText(rawjson.Get(function, says))...)
		items = append(items, append(out, '}'))
	}
	return items
}

// readable gives a content of Chat Completions as it can be read here. A part that can't becomes a text that names it, and a thought is left out: no history
// is lost for one part.
func readable(text []byte) []byte {
	if len(text) == 0 || text[0] != '[' {
		return text
	}
	var parts [][]byte
	changed := false
	for span := range rawjson.Elements(text) {
		part := span.Of(text)
		kind := rawjson.Text(rawjson.Get(part, "type"))
		var r reader
		r.readPart(&content{}, part, "", 0)
		switch {
		case kind == "thinking" || kind == "reasoning":
			changed = true
			continue
		case r.err != nil:
			changed = true
			part = append(rawjson.AppendString([]byte(`{"type":"text","text":`), "["+kind+"]"), '}')
		}
		parts = append(parts, part)
	}
	if !changed {
		return text
	}
	return appendArray(nil, parts)
}

// orText is a raw value, or an empty text for none.
func orText(raw []byte) []byte {
	if len(raw) == 0 || raw[0] == 'n' {
		return []byte(`""`)
	}
	return raw
}

// IsContext says whether an item is what WithContext put in for text from the web, which belongs to the request and not to the conversation.
func IsContext(it []byte) bool { return isContext(rawjson.Get(it, "role"), rawjson.Get(it, "name")) }

func isContext(role, name []byte) bool {
	return rawjson.Is(role, "system") && rawjson.Is(name, contract.WebContextName)
}

// WithContext puts a system message before the last item of the user.
func (Form) WithContext(body, message []byte) []byte {
	old := itemsOf(rawjson.Get(body, "input"))
	var items [][]byte
	last := 0
	for span := range rawjson.Elements(old) {
		it := span.Of(old)
		if rawjson.Is(rawjson.Get(it, "role"), "user") {
			last = len(items)
		}
		items = append(items, it)
	}
	return withInput(body, slices.Insert(items, last, itemsFor(message)...))
}
