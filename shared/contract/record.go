package contract

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"hydrallm/shared/openai/rawjson"
)

// AppendJSON appends the fact as encoding/json would write it. Every request has one, so that reflection would show.
func (u *RequestRecord) AppendJSON(dst []byte) []byte {
	dst = rawjson.AppendString(append(dst, `{"request_id":`...), u.RequestID)
	dst = appendText(dst, "session_id", u.SessionID)
	dst = rawjson.AppendString(append(dst, `,"endpoint":`...), string(u.Endpoint))
	dst = rawjson.AppendString(append(dst, `,"model":`...), u.Model)
	dst = appendText(dst, "provider", u.Provider)
	dst = appendText(dst, "upstream", u.Upstream)
	dst = appendText(dst, "upstream_model", u.UpstreamModel)
	dst = strconv.AppendInt(append(dst, `,"key_index":`...), int64(u.KeyIndex), 10)
	dst = rawjson.AppendString(append(dst, `,"status":`...), u.Status)
	dst = appendText(dst, "routing_reason", u.RoutingReason)
	dst = appendTrue(dst, "stream", u.Stream)
	dst = strconv.AppendInt(append(dst, `,"prompt_tokens":`...), u.Prompt, 10)
	dst = strconv.AppendInt(append(dst, `,"completion_tokens":`...), u.Completion, 10)
	dst = strconv.AppendInt(append(dst, `,"total_tokens":`...), u.Total, 10)
	dst = strconv.AppendInt(append(dst, `,"latency_ms":`...), u.LatencyMS, 10)
	if u.FirstTokenMS != 0 {
		dst = strconv.AppendInt(append(dst, `,"first_token_ms":`...), u.FirstTokenMS, 10)
	}
	for i := range u.Attempts {
		if i == 0 {
			dst = append(dst, `,"attempts":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = u.Attempts[i].appendJSON(dst)
	}
	if len(u.Attempts) > 0 {
		dst = append(dst, ']')
	}
	dst = u.At.AppendFormat(append(dst, `,"at":"`...), time.RFC3339Nano)
	return append(dst, `"}`...)
}

func (a *Attempt) appendJSON(dst []byte) []byte {
	dst = rawjson.AppendString(append(dst, `{"upstream":`...), a.Upstream)
	dst = rawjson.AppendString(append(dst, `,"provider":`...), a.Provider)
	dst = rawjson.AppendString(append(dst, `,"outcome":`...), a.Outcome)
	dst = appendText(dst, "reason", a.Reason)
	if a.Status != 0 {
		dst = strconv.AppendInt(append(dst, `,"status":`...), int64(a.Status), 10)
	}
	dst = strconv.AppendInt(append(dst, `,"duration_ms":`...), a.DurationMS, 10)
	return append(dst, '}')
}

// ErrNotUsage says that a text is not the JSON of a usage fact.
var ErrNotUsage = errors.New("not a usage record")

// ParseUsage reads a fact back. Members that are not known are those of a later version and are left out. The error wraps ErrNotUsage.
func ParseUsage(text []byte) (RequestRecord, error) {
	var u RequestRecord
	if len(text) == 0 || text[0] != '{' || !rawjson.Valid(text) {
		return u, fmt.Errorf("%w: no JSON object", ErrNotUsage)
	}
	for m := range rawjson.Members(text) {
		value := m.Value.Of(text)
		if string(value) == "null" {
			continue
		}
		if name := string(m.Name()); !u.read(name, value) {
			return u, fmt.Errorf("%w: %s has the wrong type", ErrNotUsage, name)
		}
	}
	return u, nil
}

func (u *RequestRecord) read(name string, value []byte) bool {
	switch name {
	case "request_id":
		return readText(&u.RequestID, value)
	case "session_id":
		return readText(&u.SessionID, value)
	case "endpoint":
		return readText(&u.Endpoint, value)
	case "model":
		return readText(&u.Model, value)
	case "provider":
		return readText(&u.Provider, value)
	case "upstream":
		return readText(&u.Upstream, value)
	case "upstream_model":
		return readText(&u.UpstreamModel, value)
	case "key_index":
		return readInt(&u.KeyIndex, value)
	case "status":
		return readText(&u.Status, value)
	case "routing_reason":
		return readText(&u.RoutingReason, value)
	case "stream":
		return readBool(&u.Stream, value)
	case "prompt_tokens":
		return readInt(&u.Prompt, value)
	case "completion_tokens":
		return readInt(&u.Completion, value)
	case "total_tokens":
		return readInt(&u.Total, value)
	case "latency_ms":
		return readInt(&u.LatencyMS, value)
	case "first_token_ms":
		return readInt(&u.FirstTokenMS, value)
	case "attempts":
		return u.readAttempts(value)
	case "at":
		var text string
		ok := readText(&text, value)
		at, err := time.Parse(time.RFC3339Nano, text)
		u.At = at
		return ok && err == nil
	}
	return true
}

func (u *RequestRecord) readAttempts(array []byte) bool {
	if array[0] != '[' {
		return false
	}
	for span := range rawjson.Elements(array) {
		text := span.Of(array)
		if text[0] != '{' {
			return false
		}
		var a Attempt
		for m := range rawjson.Members(text) {
			if !a.read(string(m.Name()), m.Value.Of(text)) {
				return false
			}
		}
		u.Attempts = append(u.Attempts, a)
	}
	return true
}

func (a *Attempt) read(name string, value []byte) bool {
	switch name {
	case "upstream":
		return readText(&a.Upstream, value)
	case "provider":
		return readText(&a.Provider, value)
	case "outcome":
		return readText(&a.Outcome, value)
	case "reason":
		return readText(&a.Reason, value)
	case "status":
		return readInt(&a.Status, value)
	case "duration_ms":
		return readInt(&a.DurationMS, value)
	}
	return true
}

func readInt[T int | int64](p *T, value []byte) bool {
	n, err := strconv.ParseInt(string(value), 10, 64)
	*p = T(n)
	return err == nil
}
