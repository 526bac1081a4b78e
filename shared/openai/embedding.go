package openai

import (
	"fmt"
	"slices"

	"hydrallm/shared/openai/rawjson"
)

// MaxInputs is the largest number of inputs of one embeddings request.
const MaxInputs = 2048

// EmbeddingRequest is an embeddings request of a client, read but not decoded. It aliases the body, which must not change while the request
// is in use. It is safe for concurrent use.
type EmbeddingRequest struct {
	Model  string
	Base64 bool // the client wants vectors as base64; else as arrays of numbers
	Inputs int  // how many vectors the answer must hold
	Tokens bool // the inputs are token numbers, which only the maker of a model understands

	request Request
}

// Body is the client's body.
func (r *EmbeddingRequest) Body() []byte { return r.request.body }

// AppendUpstream appends the body for an upstream to dst, by the rules of Request.AppendUpstream: the model is replaced, the fields of the
// gateway are dropped, the patch is merged in, and everything else stays as the client sent it. Nothing is added.
func (r *EmbeddingRequest) AppendUpstream(dst []byte, w Rewrite) []byte {
	return r.request.AppendUpstream(dst, w)
}

// ScanEmbeddings reads a client's body in one pass. The body must be one JSON object in UTF-8 that names a model and holds between
// one and MaxInputs inputs, none of them empty; what the gateway reads may occur once (REQ-07). The error is a *RequestError.
func ScanEmbeddings(body []byte) (*EmbeddingRequest, error) {
	r := &embeddingScan{requestScan: requestScan{
		Request: Request{Choices: 1, body: body, members: make([]member, 0, 8)},
		s:       rawjson.Scan(body),
	}}
	if err := r.scan(); err != nil {
		return nil, err
	}
	return &EmbeddingRequest{Model: r.Model, Base64: r.base64, Inputs: r.inputs, Tokens: r.tokens, request: r.Request}, nil
}

// embeddingScan is an EmbeddingRequest while it is being read.
type embeddingScan struct {
	requestScan
	base64 bool
	inputs int
	tokens bool
}

func (r *embeddingScan) scan() error {
	if err := r.object(r.member); err != nil {
		return err
	}
	switch {
	case r.Model == "":
		return &RequestError{Message: "'model' is missing: embeddings need the name of a model.", Param: "model", Code: CodeMissing}
	case r.inputs == 0:
		return &RequestError{Message: "'input' is missing.", Param: paramInput, Code: CodeMissing}
	}
	return nil
}

const paramInput = "input"

// member reads one top-level member.
func (r *embeddingScan) member() {
	m := member{name: r.s.Key(), key: r.s.KeySpan()}
	start := r.s.Pos()
	once := true
	switch string(m.name) {
	case "model":
		m.field = fieldModel
		r.Model = r.text("model")
	case paramInput:
		r.input()
	case "encoding_format":
		r.format()
	case "session_id", "has_search", "auto_web_fetch", "web_fetch", "compress_context", "fork_from", "prompt":
		m.field = fieldGateway
		once = false
		r.s.Skip()
	default:
		once = false
		r.otherSpelling(requestNames, "", 0)
		r.s.Skip()
	}
	if r.s.Failed() {
		return
	}
	m.value = rawjson.Span{Start: start, End: r.s.Pos()}
	if once {
		r.checkOnce(m.name)
	}
	r.members = append(r.members, m)
}

// format reads encoding_format.
func (r *embeddingScan) format() {
	kind, value := r.s.Kind(), r.s.Skip().Of(r.body)
	switch {
	case kind == 'n':
	case kind != '"':
		r.wrongType("encoding_format", "a string")
	case rawjson.Is(value, "base64"):
		r.base64 = true
	case !rawjson.Is(value, "float"):
		r.fail(CodeInvalidValue, "encoding_format", "'encoding_format' must be 'float' or 'base64'.")
	}
}

// input reads the member of that name: a string, an array of strings, an array of token numbers, or an array of arrays of token numbers.
func (r *embeddingScan) input() {
	switch r.s.Kind() {
	case '"':
		r.inputText(0, false)
		r.inputs = 1
	case 'n':
		r.s.Skip()
	case '[':
		r.inputArray()
	default:
		r.s.Skip()
		r.badInput()
	}
}

func (r *embeddingScan) inputArray() {
	r.s.Enter('[')
	n := 0
	var first byte // kind of the elements
	for ; r.s.Element(); n++ {
		kind := r.s.Kind()
		if '0' <= kind && kind <= '9' {
			kind = '0'
		}
		if n == 0 {
			first = kind
		}
		switch {
		case kind != first:
			r.s.Skip()
			r.badInput()
		case kind == '"':
			r.inputText(n, true)
		case kind == '0':
			r.token()
		case kind == '[':
			r.inputTokens(n)
		default:
			r.s.Skip()
			r.badInput()
		}
	}
	r.tokens = first == '0' || first == '['
	switch {
	case r.s.Failed():
	case n == 0:
		r.fail(CodeInvalidValue, paramInput, "'input' is an empty array.")
	case first == '0': // all of it is one text
		n = 1
	case n > MaxInputs:
		r.fail(CodeInvalidValue, paramInput, fmt.Sprintf("'input' holds %d inputs; %d is the most.", n, MaxInputs))
	}
	r.inputs = max(n, 1)
}

// inputText reads one text.
func (r *embeddingScan) inputText(n int, inArray bool) {
	value := r.s.Skip()
	if value.End-value.Start != len(`""`) {
		return
	}
	if inArray {
		r.fail(CodeInvalidValue, paramInput, fmt.Sprintf("'input[%d]' is an empty string.", n))
	} else {
		r.fail(CodeInvalidValue, paramInput, "'input' is an empty string.")
	}
}

// inputTokens reads one text that is an array of token numbers.
func (r *embeddingScan) inputTokens(n int) {
	r.s.Enter('[')
	empty := true
	for r.s.Element() {
		empty = false
		r.token()
	}
	if empty {
		r.fail(CodeInvalidValue, paramInput, fmt.Sprintf("'input[%d]' is an empty array.", n))
	}
}

// token reads one token number.
func (r *embeddingScan) token() {
	value := r.s.Skip().Of(r.body)
	if slices.ContainsFunc(value, func(c byte) bool { return c < '0' || c > '9' }) {
		r.badInput()
	}
}

func (r *embeddingScan) badInput() {
	r.wrongType(paramInput, "a string, an array of strings, an array of token numbers, or an array of such arrays")
}
