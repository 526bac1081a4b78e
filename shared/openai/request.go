package openai

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"hydrallm/shared/openai/rawjson"
)

// RequestError says what is wrong with a client's request, in the terms of an OpenAI error. It is meant for the client (status 400).
type RequestError struct {
	Message string
	Param   string // path of the field at fault, or ""
	Code    string // machine-readable, or ""
}

// Error is the message.
func (e *RequestError) Error() string { return e.Message }

// Codes of RequestError.
const (
	CodeInvalidJSON  = "invalid_json"
	CodeInvalidType  = "invalid_type"
	CodeInvalidValue = "invalid_value"
	CodeMissing      = "missing_required_parameter"
	CodeDuplicate    = "duplicate_parameter"
)

// Request is a chat request of a client, read but not decoded. It aliases the body, which must not change while the Request is in use.
// It is safe for concurrent use, since nothing writes to it after the scan.
type Request struct {
	Model        string // "" when absent or null
	Stream       bool
	IncludeUsage bool // stream_options.include_usage, or usage.include

	// Fields of the gateway, which never reach an upstream.
	SessionID       string
	HasSearch       bool
	AutoWebFetch    *bool // nil when absent or null
	WebFetch        string
	CompressContext *bool // nil when absent or null
	ForkFrom        string

	Choices   int   // n; 1 when absent or senseless
	MaxTokens int64 // max_completion_tokens, else max_tokens; 0 when neither is a positive number

	Tokens   int64 // estimated size
	Images   bool  // it holds images
	Audio    bool  // it holds sound
	Files    bool  // it holds files
	Tools    bool  // the client offers tools
	UserText bool  // the last message is the user's and holds text
	URL      bool  // there may be an address of the web in the last message
	Searches bool  // the client offers a web search of the provider's own
	Demands  bool  // and demands it

	Messages rawjson.Span // the array; zero when there is none and Prompt is used
	Prompt   rawjson.Span // the string with quotes; zero when absent or null

	body      []byte
	members   []member
	emptyArgs []rawjson.Span // "" as arguments of tool calls in the history (TOOL-07)
}

// member is one top-level member of a request.
type member struct {
	name  []byte // with escapes resolved
	key   rawjson.Span
	value rawjson.Span
	field field
}

// field says what a top-level member means to the gateway.
type field uint8

const (
	fieldOther   field = iota
	fieldGateway       // removed on the way to an upstream
	fieldModel
	fieldStream
	fieldMessages
	fieldPrompt
)

// maxChoices is the largest n that OpenAI accepts.
const maxChoices = 128

// Body is the client's body.
func (r *Request) Body() []byte { return r.body }

// Value gives the raw value of the last top-level member called name, or nil.
func (r *Request) Value(name string) []byte {
	for i := len(r.members) - 1; i >= 0; i-- {
		if m := &r.members[i]; string(m.name) == name {
			return m.value.Of(r.body)
		}
	}
	return nil
}

// ScanRequest reads a client's body in one pass. The body must be one JSON object in UTF-8 in which the members that the gateway
// reads have the right type and occur once (REQ-07), and it must ask something. The error is a *RequestError.
func ScanRequest(body []byte) (*Request, error) {
	r := &requestScan{
		Request: Request{Choices: 1, body: body, members: make([]member, 0, 8)},
		s:       rawjson.Scan(body),
	}
	if err := r.scan(); err != nil {
		return nil, err
	}
	return &r.Request, nil
}

// requestScan is a Request while it is being read. The first error is kept and reported only if the body is valid JSON: a syntax error
// wins over an error of meaning.
type requestScan struct {
	Request
	s   rawjson.Scanner
	err *RequestError

	hasMessages bool         // a non-empty array
	lastUser    int          // index of the last message of the user, or -1
	lastEmpty   bool         // whether its content is empty
	hasText     bool         // the content that was read last holds text
	last        rawjson.Span // the last message
}

func (r *requestScan) scan() error {
	r.lastUser = -1
	if err := r.object(r.member); err != nil {
		return err
	}
	if !r.hasMessages {
		r.weighText(r.Prompt.Of(r.body))
		r.UserText = !r.Prompt.IsZero()
		r.last = r.Prompt
	}
	r.URL = r.UserText && MayHoldURL(r.last.Of(r.body))
	r.weigh(r.MaxTokens)
	return r.checkInput()
}

// object reads the body, which must be one JSON object, and calls member to read each of its members.
func (r *requestScan) object(member func()) error {
	if len(bytes.TrimSpace(r.body)) == 0 {
		return &RequestError{Message: "The request body is empty.", Code: CodeInvalidJSON}
	}
	if r.s.Enter('{') {
		for r.s.Member() {
			member()
		}
	} else if r.s.End() {
		return &RequestError{Message: "The request body must be a JSON object.", Code: CodeInvalidType}
	}
	if !r.s.End() {
		return r.syntaxError()
	}
	r.checkSpellings()
	if r.err != nil {
		return r.err
	}
	return nil
}

func (r *requestScan) syntaxError() error {
	if !utf8.Valid(r.body) {
		return &RequestError{Message: "The request body is not valid UTF-8.", Code: CodeInvalidJSON}
	}
	return &RequestError{Message: fmt.Sprintf("The request body is not valid JSON: %v.", r.s.Err()), Code: CodeInvalidJSON}
}

// fail keeps the first error of meaning.
func (r *requestScan) fail(code, param, message string) {
	if r.err == nil {
		r.err = &RequestError{Message: message, Param: param, Code: code}
	}
}

func (r *requestScan) wrongType(param, want string) {
	r.fail(CodeInvalidType, param, "'"+param+"' must be "+want+".")
}

// member reads one top-level member.
func (r *requestScan) member() {
	m := member{name: r.s.Key(), key: r.s.KeySpan()}
	start := r.s.Pos()
	once := true
	switch string(m.name) {
	case "model":
		m.field = fieldModel
		r.Model = r.text("model")
	case "stream":
		m.field = fieldStream
		r.Stream, _ = r.boolean("stream")
	case "messages":
		m.field = fieldMessages
		r.messages()
	case "prompt":
		m.field = fieldPrompt
		r.prompt()
	case "stream_options":
		r.streamOptions()
	case "usage":
		once = false
		r.usage()
	case "tools", "functions":
		once = false
		r.tools()
	case "tool_choice":
		once = false
		m.value = r.s.Skip()
		if choice := m.value.Of(r.body); IsSearchTool(choice) {
			r.Demands = true
		}
	case "web_search_options":
		once = false
		kind := r.s.Kind()
		m.value = r.s.Skip()
		r.Searches = r.Searches || kind == '{'
	case "session_id":
		m.field = fieldGateway
		r.SessionID = r.text("session_id")
	case "has_search":
		m.field = fieldGateway
		asked, _ := r.boolean("has_search")
		r.HasSearch = r.HasSearch || asked
	case "auto_web_fetch":
		m.field = fieldGateway
		r.AutoWebFetch = r.optional("auto_web_fetch")
	case "web_fetch":
		m.field = fieldGateway
		r.WebFetch = r.text("web_fetch")
	case "compress_context":
		m.field = fieldGateway
		r.CompressContext = r.optional("compress_context")
	case "fork_from":
		m.field = fieldGateway
		r.ForkFrom = r.text("fork_from")
	case "n":
		once = false
		r.Choices = int(min(max(r.number(), 1), maxChoices))
	case "max_tokens":
		once = false
		if n := r.number(); r.MaxTokens == 0 {
			r.MaxTokens = n
		}
	case "max_completion_tokens":
		once = false
		if n := r.number(); n > 0 {
			r.MaxTokens = n
		}
	default:
		once = false
		r.otherSpelling(requestNames, "", 0)
		m.value = r.s.Skip()
	}
	if r.s.Failed() {
		return
	}
	if m.value.IsZero() {
		m.value = rawjson.Span{Start: start, End: r.s.Pos()}
	}
	if once {
		r.checkOnce(m.name)
	}
	r.members = append(r.members, m)
}

// checkOnce refuses a second member of a name that the gateway reads: it would act on one value and the upstream on the other (REQ-07).
func (r *requestScan) checkOnce(name []byte) {
	for i := range r.members {
		if bytes.Equal(r.members[i].name, name) {
			r.fail(CodeDuplicate, string(name), "'"+string(name)+"' is given more than once.")
			return
		}
	}
}

// text reads a string or null.
func (r *requestScan) text(param string) string {
	kind, value := r.s.Kind(), r.s.Skip().Of(r.body)
	switch kind {
	case '"':
		return rawjson.Text(value)
	case 'n':
	default:
		r.wrongType(param, "a string")
	}
	return ""
}

// boolean reads a boolean or null.
func (r *requestScan) boolean(param string) (value, given bool) {
	kind := r.s.Kind()
	r.s.Skip()
	switch kind {
	case 't', 'f':
		return kind == 't', true
	case 'n':
	default:
		r.wrongType(param, "a boolean")
	}
	return false, false
}

func (r *requestScan) optional(param string) *bool {
	if value, given := r.boolean(param); given {
		return &value
	}
	return nil
}

// number reads a positive number and tolerates everything else, which is the upstream's business.
func (r *requestScan) number() int64 {
	raw := r.s.Skip().Of(r.body)
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return max(n, 0)
	}
	if f, err := strconv.ParseFloat(string(raw), 64); err == nil && f >= 1 && f < math.MaxInt64 {
		return int64(f)
	}
	return 0
}

func (r *requestScan) streamOptions() {
	kind := r.s.Kind()
	if !r.s.Enter('{') {
		if kind != 'n' {
			r.wrongType("stream_options", "an object")
		}
		return
	}
	asked := false
	for r.s.Member() {
		if string(r.s.Key()) == "include_usage" {
			asked, _ = r.boolean("stream_options.include_usage")
		} else {
			r.otherSpelling(streamOptionsNames, "stream_options.", 0)
			r.s.Skip()
		}
	}
	r.IncludeUsage = r.IncludeUsage || asked
}

// usage reads the words in which clients of OpenRouter ask for the usage. To other providers they mean nothing, whatever they are.
func (r *requestScan) usage() {
	value := r.s.Skip().Of(r.body)
	r.IncludeUsage = r.IncludeUsage || string(rawjson.Get(value, "include")) == "true"
}

// tools notes whether there are any.
func (r *requestScan) tools() {
	if !r.s.Enter('[') {
		return
	}
	for r.s.Element() {
		r.Searches = IsSearchTool(r.s.Skip().Of(r.body)) || r.Searches
		r.Tools = true
	}
}

func (r *requestScan) prompt() {
	kind, value := r.s.Kind(), r.s.Skip()
	switch kind {
	case '"':
		r.Prompt = value
	case 'n':
	default:
		r.wrongType("prompt", "a string")
	}
}

// checkInput applies: messages win over a prompt, and one of them must hold something.
func (r *requestScan) checkInput() error {
	switch {
	case r.hasMessages && r.lastUser >= 0 && r.lastEmpty:
		param := fmt.Sprintf("messages[%d].content", r.lastUser)
		return &RequestError{Message: "The content of the last user message is empty.", Param: param, Code: CodeInvalidValue}
	case r.hasMessages:
		return nil
	case r.Prompt.IsZero():
		return &RequestError{Message: "'messages' must hold at least one message.", Param: "messages", Code: CodeMissing}
	case blank(r.Prompt.Of(r.body)):
		return &RequestError{Message: "'prompt' is empty.", Param: "prompt", Code: CodeInvalidValue}
	}
	r.Messages = rawjson.Span{}
	return nil
}

// blank says whether a JSON string is empty or white space. Only one that begins with white space or an unusual character is decoded.
func blank(raw []byte) bool {
	if c := raw[1]; c > ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' {
		return false
	}
	return strings.TrimSpace(rawjson.Text(raw)) == ""
}
