package classify

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// problem is an error as an upstream words it, whatever the shape.
type problem struct {
	found   bool
	status  int    // HTTP status that the body states, 0 without one
	base    int    // inner status of MiniMax, 0 without one
	code    string // text code, never a bare HTTP status
	typ     string
	gstatus string // Google's status name, such as RESOURCE_EXHAUSTED
	name    string // OpenCode's name of the error, or the type of Amazon's
	message string
	param   string
	obj     gjson.Result // the error object, for provider-specific details
	root    gjson.Result // the body
	header  http.Header  // headers of the provider behind the upstream, nil when the body holds none
}

// codes gives what a table of codes can be asked with, the most specific first.
func (p *problem) codes() [6]string {
	return [...]string{p.obj.Get("details.error_code").Str, p.reason(), p.code, p.typ, p.gstatus, p.name}
}

// reason is the reason inside Google's list of details.
func (p *problem) reason() string {
	if d := p.obj.Get("details"); d.IsArray() {
		return d.Get(`#(reason).reason`).Str
	}
	return ""
}

// members are the top-level members that can say that a JSON body is an error, collected in one pass.
type members struct {
	err, errs, message, detail, typ, object, name, data              gjson.Result
	statusCode, choices, candidates, xGroq, baseResp, info, response gjson.Result

	answer bool // a member is there that only answers have
}

func (m *members) read(root gjson.Result) {
	root.ForEach(func(key, value gjson.Result) bool {
		if f := m.field(key.Str); f != nil {
			*f = value
		}
		return true
	})
	m.answer = m.choices.IsArray() || m.candidates.IsArray() || m.message.IsObject() && m.message.Get("role").Exists()
}

func (m *members) field(name string) *gjson.Result {
	switch name {
	case "error":
		return &m.err
	case "errors":
		return &m.errs
	case "message":
		return &m.message
	case "detail":
		return &m.detail
	case "type":
		return &m.typ
	case "object":
		return &m.object
	case "name":
		return &m.name
	case "data":
		return &m.data
	case "status_code":
		return &m.statusCode
	case "choices":
		return &m.choices
	case "candidates":
		return &m.candidates
	case "x_groq":
		return &m.xGroq
	case "base_resp":
		return &m.baseResp
	case "info":
		return &m.info
	case "response":
		return &m.response
	}
	return nil
}

// readProblem looks for an error in a body or in the data of a stream event. Truncated JSON is read as far as it goes.
func readProblem(body []byte) problem {
	body = jsonPart(body)
	if len(body) == 0 {
		return problem{}
	}
	root := gjson.ParseBytes(body)
	if root.IsArray() {
		root = root.Get("0")
	}
	if !root.IsObject() {
		return problem{}
	}
	var m members
	m.read(root)
	p := problem{root: root}
	switch {
	case failing(m.err):
		p.fill(m.err, 0)
	case failing(m.xGroq.Get("error")):
		p.fill(m.xGroq.Get("error"), 0)
	case failing(m.response.Get("error")):
		p.fill(m.response.Get("error"), 0)
	case failing(m.info.Get("error")):
		p.fillOpenCode(m.info.Get("error"))
	case failing(m.choices.Get("#.error|0")):
		p.fill(m.choices.Get("#.error|0"), 0)
	case m.baseResp.Get("status_code").Int() != 0:
		p.found, p.base = true, int(m.baseResp.Get("status_code").Int())
		p.message = m.baseResp.Get("status_msg").String()
	case m.errs.IsArray() && failing(m.errs.Get("0")):
		p.fill(m.errs.Get("0"), 0)
	case !m.answer && m.name.Type == gjson.String && m.data.Get("message").Exists():
		p.fillOpenCode(root)
	case !m.answer && (m.message.Type == gjson.String || m.object.Str == "error" || m.typ.Str == "error"):
		p.fill(root, 0)
	case !m.answer && m.detail.Exists():
		p.found, p.message, p.param = true, text(m.detail), place(m.detail.Get("0.loc"))
	}
	if p.found && p.status == 0 {
		p.status = httpStatus(m.statusCode)
	}
	if kind := root.Get("__type").Str; kind != "" && p.name == "" {
		p.found, p.name = true, kind[strings.LastIndexByte(kind, '#')+1:]
		if p.message == "" {
			p.message = text(root.Get("Message"))
		}
	}
	return p
}

// failing tells whether the value of an error member says that there is an error: providers send null, "", {} and false as well.
func failing(v gjson.Result) bool {
	switch v.Type {
	case gjson.Null, gjson.False:
		return false
	case gjson.String:
		return v.Str != ""
	case gjson.JSON:
		return len(strings.TrimSpace(v.Raw)) > len("{}")
	case gjson.Number, gjson.True:
	}
	return true
}

// maxNesting bounds how many errors inside error messages are unwrapped.
const maxNesting = 3

// fill reads an error object, or an error that is only a text.
func (p *problem) fill(v gjson.Result, depth int) {
	p.found = true
	if !v.IsObject() {
		p.message = text(v)
		p.unwrap(depth)
		return
	}
	p.obj = v
	p.typ, p.param = v.Get("type").Str, v.Get("param").Str
	p.status = max(httpStatus(v.Get("code")), httpStatus(v.Get("http_code")), httpStatus(v.Get("status")))
	if c := v.Get("code"); httpStatus(c) == 0 && (c.Type == gjson.String || c.Type == gjson.Number) {
		p.code = c.String()
	}
	p.gstatus = v.Get("status").Str
	for _, key := range [...]string{"message", "msg", "detail", "error"} {
		if p.message = text(v.Get(key)); p.message != "" {
			break
		}
	}
	if raw := v.Get("metadata.raw"); raw.Exists() && strings.HasPrefix(p.message, "Provider returned") {
		p.message = text(raw) // OpenRouter: the real reason
	}
	p.header = headerOf(v.Get("metadata.headers"))
	if v.Get("http_code").Exists() {
		p.base = baseCode(p.message)
	}
	p.unwrap(depth)
}

// fillOpenCode reads {name, data: {message, statusCode, responseHeaders}}.
func (p *problem) fillOpenCode(v gjson.Result) {
	data := v.Get("data")
	p.found, p.obj, p.name = true, data, v.Get("name").Str
	p.status, p.message = httpStatus(data.Get("statusCode")), text(data.Get("message"))
	p.header = headerOf(data.Get("responseHeaders"))
}

// unwrap replaces a message that is itself a JSON error by the message inside.
func (p *problem) unwrap(depth int) {
	inner := strings.TrimSpace(p.message)
	if depth == maxNesting || !strings.HasPrefix(inner, "{") && !strings.HasPrefix(inner, "[") || !gjson.Valid(inner) {
		return
	}
	v := gjson.Parse(inner)
	if v.IsArray() {
		v = v.Get("0")
	}
	if e := v.Get("error"); failing(e) {
		v = e
	}
	var q problem
	if q.fill(v, depth+1); q.message == "" || !v.IsObject() {
		return
	}
	p.message = q.message
	if p.status == 0 {
		p.status = q.status
	}
	if p.code == "" {
		p.code = q.code
	}
	if p.typ == "" {
		p.typ = q.typ
	}
}

// text finds the readable part of a message that may be a string, an object, or a list of problems.
func text(v gjson.Result) string {
	for range maxNesting {
		switch {
		case v.IsArray():
			v = v.Get("0")
		case v.IsObject():
			next := v.Get("message")
			for _, key := range [...]string{"msg", "detail", "error"} {
				if !next.Exists() {
					next = v.Get(key)
				}
			}
			v = next
		case v.Type == gjson.String:
			return v.Str
		default:
			return ""
		}
	}
	return v.Str
}

// place gives the path of a member that a list of problems names, as FastAPI does: ["body", "messages", 0, "role"].
func place(loc gjson.Result) string {
	var words []string
	for i, word := range loc.Array() {
		if i > 0 || word.Str != "body" {
			words = append(words, word.String())
		}
	}
	return strings.Join(words, ".")
}

// httpStatus reads an error status that a body gives as a number or as digits; 0 when it is none.
func httpStatus(v gjson.Result) int {
	n := 0
	switch v.Type {
	case gjson.Number:
		n = int(v.Num)
	case gjson.String:
		n, _ = strconv.Atoi(v.Str) // not a number: not a status
	case gjson.Null, gjson.False, gjson.True, gjson.JSON:
	}
	if n < 400 || n > 599 {
		return 0
	}
	return n
}

// baseCode is the inner status that MiniMax appends to a message: "usage limit exceeded (2056)".
func baseCode(message string) int {
	open := strings.LastIndexByte(message, '(')
	if open < 0 || !strings.HasSuffix(message, ")") {
		return 0
	}
	n, _ := strconv.Atoi(message[open+1 : len(message)-1]) // not a number: no code
	return n
}

const maxInnerHeaders = 64

func headerOf(v gjson.Result) http.Header {
	if !v.IsObject() {
		return nil
	}
	h := http.Header{}
	v.ForEach(func(key, value gjson.Result) bool {
		h.Set(key.Str, value.String())
		return len(h) < maxInnerHeaders
	})
	return h
}

// jsonPart gives the JSON of a body: all of it, or the data of the first event when the body is an event stream. Nil when there is none.
func jsonPart(body []byte) []byte {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))
	for len(body) > 0 && body[0] != '{' && body[0] != '[' {
		line, rest, more := bytes.Cut(body, []byte("\n"))
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch string(name) {
		case "data", "error":
			if value = bytes.TrimSpace(value); len(value) > 0 && (value[0] == '{' || value[0] == '[') {
				return value
			}
		case "event", "id", "retry", "":
		default:
			return nil
		}
		if !more {
			return nil
		}
		body = bytes.TrimSpace(rest)
	}
	return body
}
