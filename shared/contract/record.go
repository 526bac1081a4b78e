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
	dst = appendText(dst, "trace_id", u.TraceID)
	dst = appendText(dst, "session_id", u.SessionID)
	dst = appendText(dst, "principal", u.Principal)
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
	dst = appendCount(dst, `,"first_token_ms":`, u.FirstTokenMS)
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
	dst = append(dst, '{')
	if a.Delivery != 0 {
		dst = append(strconv.AppendUint(append(dst, `"delivery":`...), a.Delivery, 10), ',')
	}
	if a.Ordinal != 0 {
		dst = append(strconv.AppendInt(append(dst, `"ordinal":`...), int64(a.Ordinal), 10), ',')
	}
	dst = rawjson.AppendString(append(dst, `"upstream":`...), a.Upstream)
	dst = rawjson.AppendString(append(dst, `,"provider":`...), a.Provider)
	dst = appendText(dst, "model", a.Model)
	dst = appendCount(dst, `,"key_index":`, int64(a.KeyIndex))
	dst = rawjson.AppendString(append(dst, `,"outcome":`...), string(a.Outcome))
	dst = appendText(dst, "reason", a.Reason)
	dst = appendCount(dst, `,"status":`, int64(a.Status))
	dst = strconv.AppendInt(append(dst, `,"duration_ms":`...), a.DurationMS, 10)
	dst = appendCount(dst, `,"prompt_tokens":`, a.Prompt)
	dst = appendCount(dst, `,"completion_tokens":`, a.Completion)
	dst = appendCount(dst, `,"total_tokens":`, a.Total)
	dst = appendCount(dst, `,"cached_tokens":`, a.Cached)
	if a.CostNanos != nil {
		dst = strconv.AppendInt(append(dst, `,"cost_nanos":`...), *a.CostNanos, 10)
	}
	if len(a.Headers) > 0 {
		dst = AppendHeaders(append(dst, `,"headers":`...), a.Headers)
	}
	dst = appendInstant(dst, `,"at":"`, a.At)
	dst = appendInstant(dst, `,"until":"`, a.Until)
	return append(dst, '}')
}

// AppendHeaders appends headers as a JSON array of pairs.
func AppendHeaders(dst []byte, headers [][2]string) []byte {
	dst = append(dst, '[')
	for i := range headers {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = rawjson.AppendString(append(dst, '['), headers[i][0])
		dst = append(rawjson.AppendString(append(dst, ','), headers[i][1]), ']')
	}
	return append(dst, ']')
}

// appendCount appends a member with its name unless n is 0.
func appendCount(dst []byte, name string, n int64) []byte {
	if n == 0 {
		return dst
	}
	return strconv.AppendInt(append(dst, name...), n, 10)
}

// appendInstant appends a member with its name unless t is zero.
func appendInstant(dst []byte, name string, t time.Time) []byte {
	if t.IsZero() {
		return dst
	}
	return append(t.AppendFormat(append(dst, name...), time.RFC3339Nano), '"')
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
	case "trace_id":
		return readText(&u.TraceID, value)
	case "session_id":
		return readText(&u.SessionID, value)
	case "principal":
		return readText(&u.Principal, value)
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
		return readInstant(&u.At, value)
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
			value := m.Value.Of(text)
			if string(value) != "null" && !a.read(string(m.Name()), value) {
				return false
			}
		}
		u.Attempts = append(u.Attempts, a)
	}
	return true
}

func (a *Attempt) read(name string, value []byte) bool {
	switch name {
	case "delivery":
		n, err := strconv.ParseUint(string(value), 10, 64)
		a.Delivery = n
		return err == nil
	case "ordinal":
		return readInt(&a.Ordinal, value)
	case "upstream":
		return readText(&a.Upstream, value)
	case "provider":
		return readText(&a.Provider, value)
	case "model":
		return readText(&a.Model, value)
	case "key_index":
		return readInt(&a.KeyIndex, value)
	case "outcome":
		return readText(&a.Outcome, value)
	case "reason":
		return readText(&a.Reason, value)
	case "status":
		return readInt(&a.Status, value)
	case "duration_ms":
		return readInt(&a.DurationMS, value)
	case "prompt_tokens":
		return readInt(&a.Prompt, value)
	case "completion_tokens":
		return readInt(&a.Completion, value)
	case "total_tokens":
		return readInt(&a.Total, value)
	case "cached_tokens":
		return readInt(&a.Cached, value)
	case "cost_nanos":
		a.CostNanos = new(int64)
		return readInt(a.CostNanos, value)
	case "headers":
		return a.readHeaders(value)
	case "at":
		return readInstant(&a.At, value)
	case "until":
		return readInstant(&a.Until, value)
	}
	return true
}

func (a *Attempt) readHeaders(array []byte) bool {
	if array[0] != '[' {
		return false
	}
	a.Headers = nil
	for span := range rawjson.Elements(array) {
		text := span.Of(array)
		if text[0] != '[' {
			return false
		}
		var pair [2]string
		n := 0
		for part := range rawjson.Elements(text) {
			if n == len(pair) || !readText(&pair[n], part.Of(text)) {
				return false
			}
			n++
		}
		if n != len(pair) {
			return false
		}
		a.Headers = append(a.Headers, pair)
	}
	return true
}

func readInstant(p *time.Time, value []byte) bool {
	var text string
	ok := readText(&text, value)
	at, err := time.Parse(time.RFC3339Nano, text)
	*p = at
	return ok && err == nil
}

func readInt[T int | int64](p *T, value []byte) bool {
	n, err := strconv.ParseInt(string(value), 10, 64)
	*p = T(n)
	return err == nil
}
