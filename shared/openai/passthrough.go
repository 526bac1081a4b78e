package openai

import (
	"hydrallm/shared/openai/rawjson"
)

// PassthroughRequest is a request whose body is passed as it is, but for the model's name: a JSON object, or a form of type
// multipart/form-data. It aliases the body, which must not change while the request is in use. It is safe for concurrent use.
type PassthroughRequest struct {
	Model string // "" when the body names none

	request Request      // of a JSON object
	form    []byte       // nil for a JSON object
	name    rawjson.Span // of the model in the form
}

// ScanPassthrough reads a client's body in one pass. contentType is that of a form; "" is JSON. An object must be JSON in UTF-8 and hold a
// model once, or none (REQ-07), and so must a form, which is read as strictly. The error is a *RequestError.
func ScanPassthrough(body []byte, contentType string) (*PassthroughRequest, error) {
	if contentType != "" {
		name, err := scanForm(body, contentType)
		if err != nil {
			return nil, err
		}
		return &PassthroughRequest{Model: string(name.Of(body)), form: body, name: name}, nil
	}
	r := &requestScan{Request: Request{Choices: 1, body: body, members: make([]member, 0, 8)}, s: rawjson.Scan(body)}
	if err := r.object(r.passthroughMember); err != nil {
		return nil, err
	}
	return &PassthroughRequest{Model: r.Model, request: r.Request}, nil
}

// passthroughMember reads one top-level member.
func (r *requestScan) passthroughMember() {
	m := member{name: r.s.Key(), key: r.s.KeySpan()}
	start := r.s.Pos()
	switch string(m.name) {
	case "model":
		m.field = fieldModel
		r.Model = r.text("model")
		r.checkOnce(m.name)
	case "session_id", "has_search", "auto_web_fetch", "web_fetch", "compress_context", "fork_from":
		m.field = fieldGateway
		r.s.Skip()
	default:
		r.otherSpelling(passthroughNames, "", 0)
		r.s.Skip()
	}
	if r.s.Failed() {
		return
	}
	m.value = rawjson.Span{Start: start, End: r.s.Pos()}
	r.members = append(r.members, m)
}

// passthroughNames are those that the gateway acts on.
var passthroughNames = []string{"model"}

// AppendUpstream appends the body for an upstream to dst: of a JSON object by the rules of EmbeddingRequest.AppendUpstream, of a form with the
// value of its model replaced in place and every other byte as it came.
func (r *PassthroughRequest) AppendUpstream(dst []byte, w Rewrite) []byte {
	switch {
	case r.form == nil:
		return r.request.AppendUpstream(dst, w)
	case w.Model == "" || r.name.IsZero():
		return append(dst, r.form...)
	}
	if dst == nil {
		dst = make([]byte, 0, len(r.form)+len(w.Model))
	}
	dst = append(append(dst, r.form[:r.name.Start]...), w.Model...)
	return append(dst, r.form[r.name.End:]...)
}
