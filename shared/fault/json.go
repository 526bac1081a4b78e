package fault

import (
	"strconv"

	"hydrallm/shared/openai/rawjson"
)

// AppendJSON appends the error body of the fault: the OpenAI envelope and a top-level detail with the same text. All members are
// always there; an empty code or param is null. A wait is told as retry_after, in seconds, however long it is.
func (f *Fault) AppendJSON(dst []byte) []byte {
	dst = f.appendError(append(dst, '{'))
	dst = append(dst, `,"detail":`...)
	return append(rawjson.AppendString(dst, f.Message), '}')
}

// AppendEvent appends the fault as an event of a chat stream.
func (f *Fault) AppendEvent(dst []byte) []byte {
	dst = f.appendError(append(dst, "data: {"...))
	return append(dst, "}\n\n"...)
}

func (f *Fault) appendError(dst []byte) []byte {
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
