package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// fields is a JSON object under construction.
type fields []byte

// typed begins an object with a member "type".
func typed(kind string) fields { return append(append(fields(`{"type":"`), kind...), '"') }

// set adds a member, unless its raw value is nil.
func (f fields) set(name string, raw []byte) fields {
	if raw == nil {
		return f
	}
	if len(f) == 0 {
		f = append(f, '{')
	} else {
		f = append(f, ',')
	}
	f = append(append(append(f, '"'), name...), `":`...)
	return append(f, raw...)
}

// end gives the object.
func (f fields) end() []byte {
	if len(f) == 0 {
		return []byte("{}")
	}
	return append(f, '}')
}

// array joins raw values; nil when there are none.
func array(values [][]byte) []byte {
	if len(values) == 0 {
		return nil
	}
	return append(append([]byte{'['}, bytes.Join(values, []byte{','})...), ']')
}

func quote[T string | []byte](text T) []byte {
	return rawjson.AppendString(make([]byte, 0, len(text)+2), text)
}

func isString(raw []byte) bool { return len(raw) > 0 && raw[0] == '"' }

// inner is the text of a raw string without its quotes, with escapes as they are; nil for anything else.
func inner(raw []byte) []byte {
	if !isString(raw) {
		return nil
	}
	return raw[1 : len(raw)-1]
}

// text is what a raw string stands for. It is a copy only if the string has escapes.
func text(raw []byte) []byte {
	in := inner(raw)
	if bytes.IndexByte(in, '\\') < 0 {
		return in
	}
	return rawjson.AppendText(make([]byte, 0, len(in)), in)
}

// blank says that a raw string has no character but white space. The API refuses text blocks that have none.
func blank(raw []byte) bool {
	in := inner(raw)
	if len(in) > 0 && in[0] > ' ' && in[0] < 0x80 && in[0] != '\\' {
		return false
	}
	return strings.TrimSpace(rawjson.Text(raw)) == ""
}

// compact gives a valid JSON text without the white space between its tokens.
func compact(raw []byte) []byte {
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return raw
	}
	return out.Bytes()
}

// refuse says that the request can't be translated because of what stands at a place.
func refuse(code, place, problem string, args ...any) error {
	return &openai.RequestError{Code: code, Param: place, Message: fmt.Sprintf("'%s' %s.", place, fmt.Sprintf(problem, args...))}
}
