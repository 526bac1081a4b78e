// Package fault is the vocabulary of errors that a client may see. Everything that is not a fault is "Internal server error" to the
// client and a log line to the operator.
package fault

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// Kind is a class of error with one HTTP status.
type Kind string

// Kinds.
const (
	Invalid        Kind = "invalid_request"
	Unauthorized   Kind = "unauthorized"
	Forbidden      Kind = "forbidden"
	ModelNotFound  Kind = "model_not_found"
	NotFound       Kind = "not_found"
	MethodNot      Kind = "method_not_allowed"
	TooLarge       Kind = "request_too_large"
	BadEncoding    Kind = "unsupported_encoding"
	HeaderTooLarge Kind = "header_too_large"
	Timeout        Kind = "request_timeout"
	Conflict       Kind = "conflict"               // with something that is under way
	KeyReused      Kind = "idempotency_key_reused" // for another request
	RateLimited    Kind = "rate_limit_exceeded"
	Busy           Kind = "all_upstreams_busy"
	Failed         Kind = "all_upstreams_failed"
	UpstreamAuth   Kind = "upstream_auth"        // providers refuse the gateway's keys; nothing that the client could do, or wait for
	PremiumKey     Kind = "premium_key_required" // the model wants a key that the gateway does not have
	Unavailable    Kind = "service_unavailable"
	Internal       Kind = "internal_error"
	Refused        Kind = "upstream_refused" // the upstream blames the request; Fault.HTTPStatus says how
)

type kindInfo struct {
	status int
	typ    string
}

var kinds = map[Kind]kindInfo{
	Invalid:        {http.StatusBadRequest, "invalid_request_error"},
	Unauthorized:   {http.StatusUnauthorized, "authentication_error"},
	Forbidden:      {http.StatusForbidden, "permission_error"},
	ModelNotFound:  {http.StatusNotFound, "invalid_request_error"},
	NotFound:       {http.StatusNotFound, "invalid_request_error"},
	MethodNot:      {http.StatusMethodNotAllowed, "invalid_request_error"},
	TooLarge:       {http.StatusRequestEntityTooLarge, "invalid_request_error"},
	BadEncoding:    {http.StatusUnsupportedMediaType, "invalid_request_error"},
	HeaderTooLarge: {http.StatusRequestHeaderFieldsTooLarge, "invalid_request_error"},
	Timeout:        {http.StatusRequestTimeout, "invalid_request_error"},
	Conflict:       {http.StatusConflict, "conflict_error"},
	KeyReused:      {http.StatusUnprocessableEntity, "invalid_request_error"},
	RateLimited:    {http.StatusTooManyRequests, "rate_limit_error"},
	Busy:           {http.StatusServiceUnavailable, "service_unavailable"},
	Failed:         {http.StatusServiceUnavailable, "service_unavailable"},
	UpstreamAuth:   {http.StatusFailedDependency, "upstream_error"},
	PremiumKey:     {http.StatusFailedDependency, "upstream_error"},
	Unavailable:    {http.StatusServiceUnavailable, "service_unavailable"},
	Internal:       {http.StatusInternalServerError, "server_error"},
	Refused:        {http.StatusBadRequest, "invalid_request_error"},
}

// Fault is an error with a public face. Message, Param and Code reach the client as they are; Cause never does. The tags are for the way between
// services; what a client gets is AppendJSON's.
type Fault struct { //nolint:errname // the package says it
	Kind       Kind   `json:"kind"`
	Message    string `json:"message"`
	Param      string `json:"param,omitempty"`       // name of the request field at fault, or ""
	Code       string `json:"code,omitempty"`        // machine-readable code; "" means the kind's name
	HTTPStatus int    `json:"http_status,omitempty"` // of Refused: what the upstream said; 0 = the status of the kind
	ErrorType  string `json:"error_type,omitempty"`  // of Refused: what the upstream said; "" = the type of the kind
	// Details are what the upstream says beside the message, JSON in the client's own protocol; nil = nothing.
	Details    json.RawMessage `json:"details,omitempty"`
	TooLong    bool            `json:"too_long,omitempty"`    // of Refused: the prompt exceeds the context of the model
	RetryAfter time.Duration   `json:"retry_after,omitempty"` // wait that makes sense before a retry, in nanoseconds; 0 = not stated, Never = none does
	Cause      error           `json:"-"`                     // for the log
}

// New makes a fault without a cause.
func New(kind Kind, message string) *Fault { return &Fault{Kind: kind, Message: message} }

// Error gives the public message and the cause; it is for logs.
func (f *Fault) Error() string {
	if f.Cause != nil {
		return f.Message + ": " + f.Cause.Error()
	}
	return f.Message
}

// Is says whether target is a fault of the same kind and code, so that a declared fault is known again after it came over the wire.
func (f *Fault) Is(target error) bool {
	t, ok := target.(*Fault)
	return ok && t.Kind == f.Kind && t.PublicCode() == f.PublicCode()
}

// Unwrap gives the cause.
func (f *Fault) Unwrap() error { return f.Cause }

// Status is the HTTP status of the fault.
func (f *Fault) Status() int {
	if f.HTTPStatus != 0 {
		return f.HTTPStatus
	}
	return f.Kind.Status()
}

// Type is the OpenAI error type of the fault.
func (f *Fault) Type() string {
	if f.ErrorType != "" {
		return f.ErrorType
	}
	if k, ok := kinds[f.Kind]; ok {
		return k.typ
	}
	return "server_error"
}

// PublicCode is the code that the client sees; "" means null. What an upstream refused keeps the upstream's code.
func (f *Fault) PublicCode() string {
	if f.Code != "" || f.Kind == Refused {
		return f.Code
	}
	return string(f.Kind)
}

// Status is the HTTP status of the kind.
func (k Kind) Status() int {
	if i, ok := kinds[k]; ok {
		return i.status
	}
	return http.StatusInternalServerError
}

// From gives the fault inside err, or an internal one that hides err from the client.
func From(err error) *Fault {
	if f, ok := errors.AsType[*Fault](err); ok {
		return f
	}
	return &Fault{Kind: Internal, Message: "Internal server error", Cause: err}
}
