// Package contract defines what the services say to each other: the envelope of a work message, the reply frames that carry an answer
// back to the ingress, and the facts. It knows no transport.
package contract

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"hydrallm/shared/openai/rawjson"
)

// Header names of work messages.
const (
	HeaderRequestID = "Hydra-Request-Id"
	HeaderDeadline  = "Hydra-Deadline" // Unix milliseconds by which a worker must have taken the request
	HeaderRequest   = "Hydra-Request"  // the rest of Request, as JSON
	HeaderBody      = "Hydra-Body"     // object name of a body that travels as a claim check
)

// Endpoint names the operation that a request asks for.
type Endpoint string

// Chat is POST /v1/chat/completions.
const Chat Endpoint = "chat.completions"

// Request is the envelope of a work message: everything the pipeline knows about a request except the client's body, which is the payload
// and stays as the client sent it (R-024..R-030).
type Request struct {
	ID      string
	StartBy time.Time // no worker may begin later; the ingress has answered 503 by then

	Ingress      string // id of the ingress that owns the client's connection
	Endpoint     Endpoint
	Model        string
	Stream       bool
	IncludeUsage bool // stream_options.include_usage
	SessionID    string
	ReceivedAt   time.Time
	Decision     *Decision // set by the analyzer
}

// Decision is what the analyzer decided; later stages never change it.
type Decision struct {
	Model     string // catalogue model whose chain of upstreams serves the request
	Reason    string
	Strict    bool   // no other provider may answer
	Catalogue bool   // Model is declared under models: in the configuration
}

// ReasonModelHint says that the client named the model.
const ReasonModelHint = "model_hint"

// shownReasons are the words for people and clients.
var shownReasons = map[string]string{
	ReasonModelHint: "USER_HINT",
}

// ShownReason is the reason as answers and headers show it; others are in upper case.
func (d *Decision) ShownReason() string {
	if shown, ok := shownReasons[d.Reason]; ok {
		return shown
	}
	return strings.ToUpper(d.Reason)
}

// Header gives the message headers of the envelope.
func (r *Request) Header() map[string][]string {
	return map[string][]string{
		HeaderRequestID: {r.ID},
		HeaderDeadline:  {strconv.FormatInt(r.StartBy.UnixMilli(), 10)},
		HeaderRequest:   {string(r.appendJSON(make([]byte, 0, 256)))},
	}
}

// appendJSON writes the envelope. It is on the way of every request three times, so that reflection would show.
func (r *Request) appendJSON(dst []byte) []byte {
	dst = rawjson.AppendString(append(dst, `{"ingress":`...), r.Ingress)
	dst = rawjson.AppendString(append(dst, `,"endpoint":`...), string(r.Endpoint))
	if !r.ReceivedAt.IsZero() {
		dst = strconv.AppendInt(append(dst, `,"received_at":`...), r.ReceivedAt.UnixNano(), 10)
	}
	dst = appendText(dst, "model", r.Model)
	dst = appendText(dst, "session_id", r.SessionID)
	dst = appendTrue(dst, "stream", r.Stream)
	dst = appendTrue(dst, "include_usage", r.IncludeUsage)
	if d := r.Decision; d != nil {
		dst = rawjson.AppendString(append(dst, `,"decision":{"model":`...), d.Model)
		dst = appendText(dst, "reason", d.Reason)
		dst = appendTrue(dst, "strict", d.Strict)
		dst = appendTrue(dst, "catalogue", d.Catalogue)
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

func appendText(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	dst = append(append(append(dst, `,"`...), name...), `":`...)
	return rawjson.AppendString(dst, value)
}

func appendTrue(dst []byte, name string, value bool) []byte {
	if !value {
		return dst
	}
	return append(append(append(dst, `,"`...), name...), `":true`...)
}

// ErrNotARequest says that a message has no readable request envelope.
var ErrNotARequest = errors.New("message has no request envelope")

// ParseRequest reads the envelope back from message headers. The error wraps ErrNotARequest.
func ParseRequest(h map[string][]string) (*Request, error) {
	var r Request
	get := func(name string) string {
		if v := h[name]; len(v) > 0 {
			return v[0]
		}
		return ""
	}
	if r.ID = get(HeaderRequestID); r.ID == "" {
		return nil, fmt.Errorf("%w: no request id", ErrNotARequest)
	}
	ms, err := strconv.ParseInt(get(HeaderDeadline), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%w: reading the deadline: %w", ErrNotARequest, err)
	}
	r.StartBy = time.UnixMilli(ms)
	text := []byte(get(HeaderRequest))
	if len(text) == 0 || text[0] != '{' || !rawjson.Valid(text) {
		return nil, fmt.Errorf("%w: the request is no JSON object", ErrNotARequest)
	}
	if !r.read(text) {
		return nil, fmt.Errorf("%w: a member of the request has the wrong type", ErrNotARequest)
	}
	return &r, nil
}

// read takes the members of a valid envelope; unknown ones are those of a later version and are left out. It is false when a member has the
// wrong type.
func (r *Request) read(text []byte) bool {
	ok := true
	for m := range rawjson.Members(text) {
		value := m.Value.Of(text)
		switch string(m.Name()) {
		case "ingress":
			ok = readText(&r.Ingress, value) && ok
		case "endpoint":
			ok = readText(&r.Endpoint, value) && ok
		case "received_at":
			ns, err := strconv.ParseInt(string(value), 10, 64)
			ok = err == nil && ok
			r.ReceivedAt = time.Unix(0, ns).UTC()
		case "model":
			ok = readText(&r.Model, value) && ok
		case "session_id":
			ok = readText(&r.SessionID, value) && ok
		case "stream":
			ok = readBool(&r.Stream, value) && ok
		case "include_usage":
			ok = readBool(&r.IncludeUsage, value) && ok
		case "decision":
			r.Decision = &Decision{}
			ok = r.Decision.read(value) && ok
		}
	}
	return ok
}

func (d *Decision) read(text []byte) bool {
	ok := text[0] == '{'
	for m := range rawjson.Members(text) {
		value := m.Value.Of(text)
		switch string(m.Name()) {
		case "model":
			ok = readText(&d.Model, value) && ok
		case "reason":
			ok = readText(&d.Reason, value) && ok
		case "strict":
			ok = readBool(&d.Strict, value) && ok
		case "catalogue":
			ok = readBool(&d.Catalogue, value) && ok
		}
	}
	return ok
}

func readText[T ~string](p *T, value []byte) bool {
	*p = T(rawjson.Text(value))
	return value[0] == '"'
}

func readBool(p *bool, value []byte) bool {
	*p = string(value) == "true"
	return *p || string(value) == "false"
}
