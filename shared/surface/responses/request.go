package responses

import (
	"bytes"
	"fmt"
	"slices"
	"unicode/utf8"

	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// Request is a request of a client. It aliases the body, which must not change while the Request is in use. It is safe for concurrent use.
type Request struct {
	Model      string // "" when absent or null
	Stream     bool
	Store      bool   // true when absent or null
	Background bool   //
	Previous   string // previous_response_id; "" = none
	Tools      Tools
	Encrypted  bool // the client asks for encrypted reasoning
	References []Reference

	searches string // the search of the web that the client demands; "" = none
	members  map[string][]byte
	inputRaw []byte // an array or a string
	messages []message
	chat     []byte
}

// Reference is an item of the input that stands for one of a stored response.
type Reference struct {
	Item string // id
	At   string // path of the reference
}

// Value gives a raw top-level member; nil when absent or null.
func (r *Request) Value(name string) []byte { return r.members[name] }

// Chat is the request as Chat Completions has it, without the members of the gateway.
func (r *Request) Chat() []byte { return r.chat }

// Items gives the input as an array of items. A text is one of the user.
func (r *Request) Items() []byte { return itemsOf(r.inputRaw) }

// itemsOf gives an input as an array of items.
func itemsOf(input []byte) []byte {
	if len(input) > 0 && input[0] == '[' {
		return input
	}
	out := append([]byte(`[{"type":"message","role":"user","content":`), input...)
	return append(out, "}]"...)
}

// Gateway members travel in a body and reach no upstream.
var gatewayMembers = []string{"session_id", "has_search", "auto_web_fetch", "web_fetch", "compress_context", "fork_from"}

// once are members that the gateway reads: a second one would mean something else to somebody else (REQ-07).
var once = append([]string{
	"model", "stream", "store", "background", "input", "instructions", "previous_response_id", "conversation", "prompt", "tools", "tool_choice", "text",
	"reasoning", "max_output_tokens", "metadata", "include", "truncation", "parallel_tool_calls",
}, gatewayMembers...)

// Read reads a body, which must be one JSON object in UTF-8, and says it in Chat Completions. The error is an *openai.RequestError.
func Read(body []byte) (*Request, error) {
	r := &reader{body: body}
	r.Store = true
	if err := r.scan(); err != nil {
		return nil, err
	}
	r.params()
	r.input()
	if r.err != nil {
		return nil, r.err
	}
	r.write()
	if r.err != nil {
		return nil, r.err
	}
	return &r.Request, nil
}

// reader is a Request while it is being read. The first error is kept.
type reader struct {
	Request
	body    []byte
	thought thought // before the item at hand
	err     *openai.RequestError
}

func (r *reader) fail(code, param, format string, args ...any) {
	if r.err == nil {
		r.err = &openai.RequestError{Message: fmt.Sprintf(format, args...), Param: param, Code: code}
	}
}

func (r *reader) wrongType(param, want string) {
	r.fail(openai.CodeInvalidType, param, "'%s' must be %s.", param, want)
}

// scan finds the members of the body.
func (r *reader) scan() error {
	if len(bytes.TrimSpace(r.body)) == 0 {
		return &openai.RequestError{Message: "The request body is empty.", Code: openai.CodeInvalidJSON}
	}
	r.members = make(map[string][]byte, 16)
	s := rawjson.Scan(r.body)
	if s.Enter('{') {
		for s.Member() {
			name := string(s.Key())
			value := s.Skip().Of(r.body)
			if _, twice := r.members[name]; twice && slices.Contains(once, name) {
				r.fail(openai.CodeDuplicate, name, "'%s' is given more than once.", name)
			}
			if other := openai.OtherSpelling([]byte(name), once); other != "" {
				r.fail(openai.CodeAmbiguous, name, "'%s' is '%s' to servers that read names in any case: write '%s'.", name, other, other)
			}
			r.members[name] = value
		}
	} else if s.End() {
		return &openai.RequestError{Message: "The request body must be a JSON object.", Code: openai.CodeInvalidType}
	}
	switch {
	case !s.End() && !utf8.Valid(r.body):
		return &openai.RequestError{Message: "The request body is not valid UTF-8.", Code: openai.CodeInvalidJSON}
	case !s.End():
		return &openai.RequestError{Message: fmt.Sprintf("The request body is not valid JSON: %v.", s.Err()), Code: openai.CodeInvalidJSON}
	case r.err != nil:
		return r.err
	}
	for name, value := range r.members {
		if value[0] == 'n' {
			delete(r.members, name)
		}
	}
	return nil
}

// text gives a member that is a string.
func (r *reader) text(name string) string {
	raw := r.members[name]
	if raw != nil && raw[0] != '"' {
		r.wrongType(name, "a string")
	}
	return rawjson.Text(raw)
}

// boolean gives a member that is true or false.
func (r *reader) boolean(name string, absent bool) bool {
	raw := r.members[name]
	switch {
	case raw == nil:
		return absent
	case raw[0] != 't' && raw[0] != 'f':
		r.wrongType(name, "a boolean")
	}
	return raw[0] == 't'
}

// wantObject checks a member that has to be an object when it is there.
func (r *reader) wantObject(name string) {
	if raw := r.members[name]; raw != nil && raw[0] != '{' {
		r.wrongType(name, "an object")
	}
}

// params reads what is not the input.
func (r *reader) params() {
	r.Model, r.Previous = r.text("model"), r.text("previous_response_id")
	r.Stream, r.Store, r.Background = r.boolean("stream", false), r.boolean("store", true), r.boolean("background", false)
	r.boolean("parallel_tool_calls", true)
	r.text("instructions")
	r.text("truncation")
	r.wantObject("metadata")
	r.wantObject("text")
	r.wantObject("reasoning")
	if raw := r.members["max_output_tokens"]; raw != nil && (raw[0] < '1' || raw[0] > '9') {
		r.fail(openai.CodeInvalidValue, "max_output_tokens", "'max_output_tokens' must be a positive number.")
	}
	for _, name := range []string{"conversation", "prompt"} {
		if r.members[name] != nil {
			r.fail("unsupported_parameter", name, "'%s' is not supported: what it stands for is not stored here.", name)
		}
	}
	include := r.members["include"]
	if include != nil && include[0] != '[' {
		r.wrongType("include", "an array")
	}
	for span := range rawjson.Elements(include) {
		r.Encrypted = r.Encrypted || rawjson.Is(span.Of(include), "reasoning.encrypted_content")
	}
	if r.Background && !r.Store {
		r.fail(openai.CodeInvalidValue, "background", "A response in the background has to be stored: 'store' must not be false.")
	}
}

// logprobs says whether the client asks for the probabilities of tokens.
func (r *Request) logprobs() bool {
	include := r.members["include"]
	for span := range rawjson.Elements(include) {
		if rawjson.Is(span.Of(include), "message.output_text.logprobs") {
			return true
		}
	}
	return r.members["top_logprobs"] != nil
}
