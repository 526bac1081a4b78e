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
	HeaderBody      = "Hydra-Body"     // object name of a body that is offloaded to the object store
)

// Operation is what a request asks for.
type Operation string

// Operations.
const (
	Chat       Operation = "chat" // an answer of a model to messages
	Embeddings Operation = "embeddings"
)

// Surface is the protocol that the client speaks. Embeddings have OpenAI's own, which shares its errors with chat.
type Surface string

// Surfaces.
const SurfaceChat Surface = "chat" // Chat Completions

// Request is the envelope of a work message: everything the pipeline knows about a request except the client's body, which is the payload
// and stays as the client sent it (R-024..R-030).
type Request struct {
	ID      string
	StartBy time.Time // no worker may begin later; the ingress has answered 503 by then

	Ingress      string // id of the ingress that owns the client's connection
	Operation    Operation
	Surface      Surface
	Model        string
	Stream       bool
	IncludeUsage bool // stream_options.include_usage
	SessionID    string
	ReceivedAt   time.Time
	Decision     *Decision // set by the analyzer
}

// Decision is what the analyzer decided; later stages never change it. A configured model has neither Provider nor Agent; every
// other request has one of them, the one to call first.
type Decision struct {
	Provider    string // id of the provider to call first
	Agent       string // id of the local agent to call first
	Model       string // a configured model; else the model at Provider or Agent, "" when the dispatcher is to choose its default
	Reason      string
	PinProvider bool   // no other provider may answer
	PinModel    bool   // the client named the model: no other model may answer (R-077, C-04)
	Configured  bool   // Model is declared under models: in the configuration
	Premium     bool   // Model is of the premium tier and wants a key of that tier
	Images      bool   // the request holds images
	Search      bool   // the client asks for a web search
	Tokens      int64  // estimated size of the request
}

// Routing reasons.
const (
	ReasonModelHint       = "model_hint"       // the client named the model or the provider
	ReasonTokenCount      = "token_count"      // the size decided
	ReasonImagePresent    = "image_present"    // images decided
	ReasonKeyAvailability = "key_availability" // what should have served had no usable key, or failed
	ReasonRateLimit       = "rate_limit"       // what should have served was at its limit
)

// shownReasons are the words for people and clients.
var shownReasons = map[string]string{ //nolint:gosec // words, no credentials
	ReasonModelHint:    "USER_HINT",
	ReasonTokenCount:   "TOKEN_OPTIMIZED",
	ReasonImagePresent: "MULTIMODAL_ANALYSIS",
}

// ShowReason is a reason as answers and headers show it; others are in upper case.
func ShowReason(reason string) string {
	if shown, ok := shownReasons[reason]; ok {
		return shown
	}
	return strings.ToUpper(reason)
}

// Endpoint names what was called, for the ledger.
func (r *Request) Endpoint() Endpoint {
	if r.Operation == Embeddings {
		return EndpointEmbeddings
	}
	return EndpointChat
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
	dst = rawjson.AppendString(append(dst, `,"operation":`...), string(r.Operation))
	dst = rawjson.AppendString(append(dst, `,"surface":`...), string(r.Surface))
	if !r.ReceivedAt.IsZero() {
		dst = strconv.AppendInt(append(dst, `,"received_at":`...), r.ReceivedAt.UnixNano(), 10)
	}
	dst = appendText(dst, "model", r.Model)
	dst = appendText(dst, "session_id", r.SessionID)
	dst = appendTrue(dst, "stream", r.Stream)
	dst = appendTrue(dst, "include_usage", r.IncludeUsage)
	if d := r.Decision; d != nil {
		dst = d.appendJSON(append(dst, `,"decision":`...))
	}
	return append(dst, '}')
}

func (d *Decision) appendJSON(dst []byte) []byte {
	dst = rawjson.AppendString(append(dst, `{"model":`...), d.Model)
	dst = appendText(dst, "provider", d.Provider)
	dst = appendText(dst, "agent", d.Agent)
	dst = appendText(dst, "reason", d.Reason)
	dst = appendTrue(dst, "pin_provider", d.PinProvider)
	dst = appendTrue(dst, "pin_model", d.PinModel)
	dst = appendTrue(dst, "configured", d.Configured)
	dst = appendTrue(dst, "premium", d.Premium)
	dst = appendTrue(dst, "images", d.Images)
	dst = appendTrue(dst, "search", d.Search)
	if d.Tokens != 0 {
		dst = strconv.AppendInt(append(dst, `,"tokens":`...), d.Tokens, 10)
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
		case "operation":
			ok = readText(&r.Operation, value) && ok
		case "surface":
			ok = readText(&r.Surface, value) && ok
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
		case "provider":
			ok = readText(&d.Provider, value) && ok
		case "agent":
			ok = readText(&d.Agent, value) && ok
		case "reason":
			ok = readText(&d.Reason, value) && ok
		case "pin_provider":
			ok = readBool(&d.PinProvider, value) && ok
		case "pin_model":
			ok = readBool(&d.PinModel, value) && ok
		case "configured":
			ok = readBool(&d.Configured, value) && ok
		case "premium":
			ok = readBool(&d.Premium, value) && ok
		case "images":
			ok = readBool(&d.Images, value) && ok
		case "search":
			ok = readBool(&d.Search, value) && ok
		case "tokens":
			n, err := strconv.ParseInt(string(value), 10, 64)
			ok = err == nil && ok
			d.Tokens = n
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
