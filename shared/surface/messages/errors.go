package messages

import (
	"net/http"
	"strings"

	"hydrallm/shared/fault"
	"hydrallm/shared/openai/rawjson"
)

// Errors writes errors in Anthropic's form. The zero value is ready for use.
type Errors struct{}

// AppendBody appends Anthropic's envelope.
func (Errors) AppendBody(dst []byte, f *fault.Fault, requestID string) []byte {
	dst = appendError(dst, f)
	if requestID != "" {
		dst = rawjson.AppendString(append(dst, `,"request_id":`...), requestID)
	}
	return append(dst, '}')
}

// AppendEvent appends the fault as the event "error", after which nothing comes.
func (Errors) AppendEvent(dst []byte, f *fault.Fault) []byte {
	return append(appendError(append(dst, "event: error\ndata: "...), f), "}\n\n"...)
}

// AppendEventOf appends a body of AppendBody as the event "error".
func (Errors) AppendEventOf(dst, body []byte) []byte {
	return append(append(append(dst, "event: error\ndata: "...), body...), "\n\n"...)
}

// appendError appends the envelope without its end. A wait and a code are told as OpenAI's clients are told them: Anthropic's ignore them.
func appendError(dst []byte, f *fault.Fault) []byte {
	dst = rawjson.AppendString(append(dst, `{"type":"error","error":{"type":`...), typeOf(f.Status()))
	dst = rawjson.AppendString(append(dst, `,"message":`...), messageOf(f))
	switch {
	case len(f.Details) > 0:
		dst = append(append(dst, `,"details":`...), f.Details...)
	case f.Code == codeNoThread:
		dst = append(dst, `,"details":{"error_code":"`+codeNoThread+`"}`...)
	}
	return append(dst, '}')
}

// codeNoThread is how clients know that they can't leave messages out, and have to send all of them: their helpers for tools try a thread first.
const codeNoThread = "thread_unsupported_request"

// typeOf gives the type of an error with a status, from "Errors" in Anthropic's documentation of its API.
func typeOf(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusPaymentRequired:
		return "billing_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusServiceUnavailable, statusOverloaded:
		return "overloaded_error"
	case http.StatusGatewayTimeout:
		return "timeout_error"
	case http.StatusFailedDependency:
		return "api_error"
	}
	if status >= http.StatusInternalServerError {
		return "api_error"
	}
	return "invalid_request_error"
}

// statusOverloaded is Anthropic's own.
const statusOverloaded = 529

// tooLong begins the message of a prompt that exceeds the context of the model: agents look for these words to make it shorter.
const tooLong = "prompt is too long"

// messageOf gives the message, which begins with the words that agents look for where a context is exceeded, whoever said so in whatever words.
func messageOf(f *fault.Fault) string {
	if !f.TooLong || strings.HasPrefix(strings.ToLower(f.Message), tooLong) {
		return f.Message
	}
	return tooLong + ": " + f.Message
}
