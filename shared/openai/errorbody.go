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
	dst = rawjson.AppendString(append(dst, `{"error":{"message":`...), e.Message)
	dst = rawjson.AppendString(append(dst, `,"type":`...), e.Type)
	dst = appendNullable(append(dst, `,"param":`...), e.Param)
	dst = appendNullable(append(dst, `,"code":`...), e.Code)
	dst = rawjson.AppendString(append(dst, `},"detail":`...), e.Message)
	return append(dst, '}')
}

func appendNullable(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return rawjson.AppendString(dst, s)
}
