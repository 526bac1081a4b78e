// Package contract defines what the services say to each other: the envelope of a work message, the reply frames that carry an answer
// back to the ingress, and the facts. It knows no transport.
package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Header names of work messages.
const (
	HeaderRequestID = "Hydra-Request-Id"
	HeaderDeadline  = "Hydra-Deadline" // Unix milliseconds by which a worker must have taken the request
	HeaderRequest   = "Hydra-Request"  // JSON of Request without id and deadline
	HeaderBody      = "Hydra-Body"     // object name of a body that travels as a claim check
)

// Endpoint names the operation that a request asks for.
type Endpoint string

// Chat is POST /v1/chat/completions.
const Chat Endpoint = "chat.completions"

// Request is the envelope of a work message: everything the pipeline knows about a request except the client's body, which is the payload
// and stays as the client sent it (R-024..R-030).
type Request struct {
	ID      string    `json:"-"`
	StartBy time.Time `json:"-"` // no worker may begin later; the ingress has answered 503 by then

	Ingress      string    `json:"ingress"`  // id of the ingress that owns the client's connection
	Endpoint     Endpoint  `json:"endpoint"` //
	Model        string    `json:"model,omitempty"`
	Stream       bool      `json:"stream,omitempty"`
	IncludeUsage bool      `json:"include_usage,omitempty"` // stream_options.include_usage
	SessionID    string    `json:"session_id,omitempty"`
	ReceivedAt   time.Time `json:"received_at"`
	Decision     *Decision `json:"decision,omitempty"` // set by the analyzer
}

// Decision is what the analyzer decided; later stages never change it.
type Decision struct {
	Model     string `json:"model"`               // catalogue model whose chain of upstreams serves the request
	Reason    string `json:"reason"`
	Strict    bool   `json:"strict"`              // no other provider may answer
	Catalogue bool   `json:"catalogue,omitempty"` // Model is declared under models: in the configuration
}

// ReasonModelHint says that the client named the model.
const ReasonModelHint = "model_hint"

// Header gives the message headers of the envelope.
func (r *Request) Header() map[string][]string {
	body, err := json.Marshal(r)
	if err != nil { // strings, booleans and times always marshal
		panic(fmt.Sprintf("encoding a request envelope: %v", err))
	}
	return map[string][]string{
		HeaderRequestID: {r.ID},
		HeaderDeadline:  {strconv.FormatInt(r.StartBy.UnixMilli(), 10)},
		HeaderRequest:   {string(body)},
	}
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
	if err := json.Unmarshal([]byte(get(HeaderRequest)), &r); err != nil {
		return nil, fmt.Errorf("%w: reading the request: %w", ErrNotARequest, err)
	}
	return &r, nil
}
