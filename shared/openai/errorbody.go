package openai

import "hydrallm/shared/openai/rawjson"

// ErrorBody is an error as a client gets it.
type ErrorBody struct {
	Message string
	Type    string
	Param   string // "" is sent as null
	Code    string // "" is sent as null
}

// AppendError appends the JSON body of an error: the OpenAI envelope with all four keys, and the text once more as "detail".
func AppendError(dst []byte, e ErrorBody) []byte {
	dst = e.appendObject(append(dst, `{"error":`...))
	dst = rawjson.AppendString(append(dst, `,"detail":`...), e.Message)
	return append(dst, '}')
}

// AppendErrorEvent appends an error as an event of a chat stream that has begun. No [DONE] follows it.
func AppendErrorEvent(dst []byte, e ErrorBody) []byte {
	dst = e.appendObject(append(dst, `data: {"error":`...))
	return append(dst, "}\n\n"...)
}

func (e ErrorBody) appendObject(dst []byte) []byte {
	dst = rawjson.AppendString(append(dst, `{"message":`...), e.Message)
	dst = rawjson.AppendString(append(dst, `,"type":`...), e.Type)
	dst = appendNullable(append(dst, `,"param":`...), e.Param)
	dst = appendNullable(append(dst, `,"code":`...), e.Code)
	return append(dst, '}')
}

func appendNullable(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return rawjson.AppendString(dst, s)
}
