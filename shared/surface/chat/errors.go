// Package chat is what all services need of the surface of Chat Completions, which embeddings share.
package chat

import (
	"strconv"

	"hydrallm/shared/fault"
	"hydrallm/shared/openai/rawjson"
)

// Errors writes errors in OpenAI's form. The zero value is ready for use.
type Errors struct{}

// AppendBody appends OpenAI's envelope and a top-level detail with the same text. All members are always there; an empty code or param
// is null. A wait is told as retry_after, in seconds, however long it is.
func (Errors) AppendBody(dst []byte, f *fault.Fault, _ string) []byte {
	dst = appendError(append(dst, '{'), f)
	dst = append(dst, `,"detail":`...)
	return append(rawjson.AppendString(dst, f.Message), '}')
}

// AppendEvent appends the fault as an event of a chat stream.
func (Errors) AppendEvent(dst []byte, f *fault.Fault) []byte {
	dst = appendError(append(dst, "data: {"...), f)
	return append(dst, "}\n\n"...)
}

// AppendEventOf appends the error of a body of AppendBody as an event. The detail beside it is left out, as in other events.
func (Errors) AppendEventOf(dst, body []byte) []byte {
	dst = append(append(dst, `data: {"error":`...), rawjson.Get(body, "error")...)
	return append(dst, "}\n\n"...)
}

func appendError(dst []byte, f *fault.Fault) []byte {
	dst = rawjson.AppendString(append(dst, `"error":{"message":`...), f.Message)
	dst = rawjson.AppendString(append(dst, `,"type":`...), f.Type())
	dst = appendOrNull(append(dst, `,"param":`...), f.Param)
	dst = appendOrNull(append(dst, `,"code":`...), f.PublicCode())
	if n := f.Seconds(); n > 0 {
		dst = strconv.AppendInt(append(dst, `,"retry_after":`...), n, 10)
	}
	return append(dst, '}')
}

func appendOrNull(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return rawjson.AppendString(dst, s)
}
