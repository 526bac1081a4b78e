package mockllm

import (
	"net/http"
	"strconv"
	"time"
)

// failure is an error instead of an answer, in OpenAI's form.
type failure struct {
	status     int
	typ, code  string // code "" is null
	param      string // "" is null
	message    string
	retryAfter time.Duration // 0: nothing is said
}

// failures are what OpenAI says with these statuses; others have the words of HTTP.
var failures = map[int]failure{
	http.StatusUnauthorized:        {typ: "invalid_request_error", code: "invalid_api_key", message: "Incorrect API key provided."},
	http.StatusPaymentRequired:     {typ: "insufficient_quota", code: "insufficient_quota", message: "You exceeded your current quota, please check your plan and billing details."},
	http.StatusForbidden:           {typ: "invalid_request_error", code: "forbidden", message: "Your project does not have access to this model."},
	http.StatusNotFound:            {typ: "invalid_request_error", code: "model_not_found", message: "The model does not exist or you do not have access to it."},
	http.StatusTooManyRequests:     {typ: "requests", code: "rate_limit_exceeded", message: "Rate limit reached for requests per minute."},
	http.StatusInternalServerError: {typ: "server_error", message: "The server had an error while processing your request."},
	http.StatusServiceUnavailable:  {typ: "server_error", message: "The server is overloaded or not ready yet."},
}

func failureOf(status int) *failure {
	f, ok := failures[status]
	if !ok {
		f = failure{typ: "invalid_request_error", message: "The mock was asked to fail: " + http.StatusText(status) + "."}
		if status >= http.StatusInternalServerError {
			f.typ = "server_error"
		}
	}
	f.status = status
	return &f
}

// invalid blames the request.
func invalid(param, message string) *failure {
	return &failure{status: http.StatusBadRequest, typ: "invalid_request_error", param: param, message: message}
}

// body is the error as JSON.
func (f *failure) body() []byte {
	optional := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	type inner struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}
	return encode(struct {
		Error inner `json:"error"`
	}{inner{f.message, f.typ, optional(f.param), optional(f.code)}})
}

func (f *failure) send(w http.ResponseWriter) {
	if f.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((f.retryAfter+time.Second-1)/time.Second)))
	}
	send(w, f.status, f.body())
}

func send(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may have left
}
