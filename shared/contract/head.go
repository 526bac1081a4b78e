package contract

import (
	"fmt"
	"strconv"

	"hydrallm/shared/openai/rawjson"
)

// AppendJSON appends the head as encoding/json would write it.
func (h Head) AppendJSON(dst []byte) []byte {
	dst = strconv.AppendInt(append(dst, `{"status":`...), int64(h.Status), 10)
	for i, kv := range h.Header {
		if i == 0 {
			dst = append(dst, `,"header":[[`...)
		} else {
			dst = append(dst, `,[`...)
		}
		dst = append(rawjson.AppendString(dst, kv[0]), ',')
		dst = append(rawjson.AppendString(dst, kv[1]), ']')
	}
	if len(h.Header) > 0 {
		dst = append(dst, ']')
	}
	return append(appendTrue(dst, "stream", h.Stream), '}')
}

// ParseHead reads a head back. The error wraps ErrBadFrame.
func ParseHead(text []byte) (Head, error) {
	var h Head
	if len(text) == 0 || text[0] != '{' || !rawjson.Valid(text) {
		return h, fmt.Errorf("%w: the head is no JSON object", ErrBadFrame)
	}
	ok := true
	for m := range rawjson.Members(text) {
		value := m.Value.Of(text)
		switch string(m.Name()) {
		case "status":
			ok = readInt(&h.Status, value) && ok
		case "stream":
			ok = readBool(&h.Stream, value) && ok
		case "header":
			ok = value[0] == '[' && ok
			for span := range rawjson.Elements(value) {
				kv, pair := readPair(span.Of(value))
				ok = pair && ok
				h.Header = append(h.Header, kv)
			}
		}
	}
	if !ok {
		return h, fmt.Errorf("%w: a member of the head has the wrong type", ErrBadFrame)
	}
	return h, nil
}

// readPair reads a name and a value.
func readPair(array []byte) (kv [2]string, ok bool) {
	if array[0] != '[' {
		return kv, false
	}
	n := 0
	ok = true
	for span := range rawjson.Elements(array) {
		if n < len(kv) {
			ok = readText(&kv[n], span.Of(array)) && ok
		}
		n++
	}
	return kv, ok && n == len(kv)
}

// AppendJSON appends the end as encoding/json would write it.
func (e End) AppendJSON(dst []byte) []byte {
	dst = rawjson.AppendString(append(dst, `{"outcome":`...), e.Outcome)
	dst = appendText(dst, "reason", e.Reason)
	dst = appendInt(dst, "prompt_tokens", e.Prompt)
	dst = appendInt(dst, "completion_tokens", e.Completion)
	dst = appendInt(dst, "total_tokens", e.Total)
	return append(appendInt(dst, "cost_nanos", e.CostNanos), '}')
}

// ParseEnd reads an end back. The error wraps ErrBadFrame.
func ParseEnd(text []byte) (End, error) {
	var e End
	if len(text) == 0 || text[0] != '{' || !rawjson.Valid(text) {
		return e, fmt.Errorf("%w: the end is no JSON object", ErrBadFrame)
	}
	ok := true
	for m := range rawjson.Members(text) {
		value := m.Value.Of(text)
		switch string(m.Name()) {
		case "outcome":
			e.Outcome = rawjson.Text(value)
		case "reason":
			e.Reason = rawjson.Text(value)
		case "prompt_tokens":
			ok = readInt(&e.Prompt, value) && ok
		case "completion_tokens":
			ok = readInt(&e.Completion, value) && ok
		case "total_tokens":
			ok = readInt(&e.Total, value) && ok
		case "cost_nanos":
			ok = readInt(&e.CostNanos, value) && ok
		}
	}
	if !ok {
		return e, fmt.Errorf("%w: a member of the end has the wrong type", ErrBadFrame)
	}
	return e, nil
}
