package opencode

import (
	"bytes"
	"cmp"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/agent/reply"
	"hydrallm/services/dispatcher/internal/agent/task"
	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/shared/openai/rawjson"
)

// failure is why a turn brought no answer.
type failure struct {
	status  int
	name    string
	message string
	body    []byte // in OpenCode's words
}

// newFailure makes a failure that OpenCode did not word itself.
func newFailure(status int, name, message string) failure {
	body := rawjson.AppendString([]byte(`{"name":`), name)
	body = rawjson.AppendString(append(body, `,"data":{"message":`...), message)
	return failure{status: status, name: name, message: message, body: append(body, `}}`...)}
}

// statuses are those of failures that state none.
var statuses = map[string]int{
	"ProviderAuthError":          http.StatusUnauthorized,
	"ContextOverflowError":       http.StatusBadRequest,
	"ContentFilterError":         http.StatusBadRequest,
	"StructuredOutputError":      http.StatusUnprocessableEntity,
	"NotFoundError":              http.StatusNotFound,
	"ProviderModelNotFoundError": http.StatusNotFound,
	"MessageAbortedError":        http.StatusServiceUnavailable, // by somebody else
}

// readFailure reads an error of OpenCode, {"name","data":{"message",...}}.
func readFailure(v gjson.Result) failure {
	data := v.Get("data")
	f := failure{name: v.Get("name").Str, message: data.Get("message").String(), body: []byte(v.Raw)}
	switch stated := int(data.Get("statusCode").Int()); {
	case stated >= 400 && stated <= 599:
		f.status = stated
	case strings.HasPrefix(f.message, "Model not found"): // an UnknownError
		f.status = http.StatusNotFound
	case data.Get("isRetryable").Bool():
		f.status = busyStatus(f.message)
	default:
		f.status = cmp.Or(statuses[f.name], http.StatusBadGateway)
	}
	return f
}

// repeated is the failure of a call that OpenCode is going to repeat at a certain time.
func repeated(message string, at time.Time) failure {
	f := newFailure(busyStatus(message), "APIError", message)
	if wait := time.Until(at); wait > 0 {
		seconds := strconv.FormatFloat(math.Ceil(wait.Seconds()), 'f', -1, 64)
		f.body = append(bytes.TrimSuffix(f.body, []byte("}}")), `,"isRetryable":true,"responseHeaders":{"retry-after":"`+seconds+`"}}}`...)
	}
	return f
}

// busyStatus tells a limit of a key from an overload.
func busyStatus(message string) int {
	message = strings.ToLower(message)
	for _, words := range [...]string{"rate limit", "rate-limit", "too many requests", "usage limit", "quota", "429"} {
		if strings.Contains(message, words) {
			return http.StatusTooManyRequests
		}
	}
	return http.StatusServiceUnavailable
}

func respond(t *task.Task, f failure) *dialect.Response {
	return &dialect.Response{Response: t.Answer(f.status, "application/json", f.body)}
}

func (f failure) event(out *answer.Queue) {
	reply.Failed(out, f.status, f.name, cmp.Or(f.message, f.name))
}
