package openai

import (
	"bytes"
	"mime"
	"strings"
	"unicode/utf8"

	"hydrallm/shared/openai/rawjson"
)

// Bounds of a form.
const (
	maxFields      = 1000
	maxFieldHeader = 8 << 10 // bytes of the headers of one field
	maxBoundary    = 70      // characters (RFC 2046, section 5.1.1)
	maxPadding     = 70      // blanks behind a boundary
)

// MaxContentType bounds the type of a form, in bytes: it travels in message headers.
const MaxContentType = 512

// IsForm says whether a content type is that of a form with fields and files.
func IsForm(contentType string) bool {
	const form = "multipart/form-data"
	return len(contentType) >= len(form) && strings.EqualFold(contentType[:len(form)], form)
}

// scanForm finds the value of the field "model" of a form (RFC 7578), the zero Span if there is none.
//
// It takes only what everybody reads alike, because the upstream finds the model with a reader of its own: lines end in CRLF, nothing is before
// the first delimiter or behind the last, the boundary is nowhere else, and the field is there once, plainly named and not encoded.
func scanForm(body []byte, contentType string) (model rawjson.Span, err error) {
	delimiter, bad := formDelimiter(contentType)
	if bad != nil {
		return model, bad
	}
	if !bytes.HasPrefix(body, delimiter) {
		return model, badForm("must begin with its boundary")
	}
	at, found := 0, false
	for range maxFields {
		begin, closed := afterDelimiter(body, at+len(delimiter))
		switch {
		case closed && len(bytes.Trim(body[begin:], "\r\n")) > 0:
			return model, badForm("must end with its last boundary")
		case closed:
			return model, nil
		case begin < 0:
			return model, badForm("has a line that begins as a boundary and is none")
		}
		next := bytes.Index(body[begin:], delimiter)
		if next < 0 {
			return model, badForm("has no end")
		}
		at = begin + next
		end := at - len(crlf)
		if end < begin || string(body[end:at]) != crlf {
			return model, badForm("has its boundary within a field")
		}
		name, content, bad := scanField(body, rawjson.Span{Start: begin, End: end})
		switch {
		case bad != nil:
			return model, bad
		case name != "model":
			continue
		case found:
			return model, &RequestError{Message: "'model' is given more than once.", Param: "model", Code: CodeDuplicate}
		case !utf8.Valid(content.Of(body)):
			return model, &RequestError{Message: "'model' must be text in UTF-8.", Param: "model", Code: CodeInvalidType}
		}
		model, found = content, true
	}
	return model, badForm("has too many fields")
}

const crlf = "\r\n"

// badForm says what is wrong with a form.
func badForm(what string) *RequestError {
	return &RequestError{Message: "The request body is not a valid form (multipart/form-data): it " + what + ".", Code: CodeInvalidValue}
}

// formDelimiter gives what stands before each field: two dashes and the boundary.
func formDelimiter(contentType string) ([]byte, *RequestError) {
	_, params, err := mime.ParseMediaType(contentType)
	boundary := params["boundary"]
	if err != nil || boundary == "" || len(boundary) > maxBoundary || len(contentType) > MaxContentType || strings.ContainsFunc(contentType, unprintable) {
		return nil, &RequestError{Message: "The content type of the form must state its boundary.", Code: CodeInvalidValue}
	}
	return []byte("--" + boundary), nil
}

func unprintable(r rune) bool { return r < ' ' || r > '~' }

// afterDelimiter gives where the field begins whose delimiter ends at i; -1 when that is none. closed says that it is the last delimiter.
func afterDelimiter(body []byte, i int) (begin int, closed bool) {
	rest := body[i:]
	if bytes.HasPrefix(rest, []byte("--")) {
		return i + len("--"), true
	}
	padding := 0
	for padding < len(rest) && padding < maxPadding && (rest[padding] == ' ' || rest[padding] == '\t') {
		padding++
	}
	if !bytes.HasPrefix(rest[padding:], []byte(crlf)) {
		return -1, false
	}
	return i + padding + len(crlf), false
}

// scanField gives the name of a field and the place of its content.
func scanField(body []byte, field rawjson.Span) (name string, content rawjson.Span, err *RequestError) {
	text := field.Of(body)
	size := bytes.Index(text[:min(len(text), maxFieldHeader)], []byte(crlf+crlf))
	if size < 0 {
		return "", content, badForm("has a field without headers, or with too many")
	}
	disposition, encoded := "", false
	for line := range strings.SplitSeq(string(text[:size]), crlf) {
		key, value, ok := strings.Cut(line, ":")
		if !ok || key == "" || strings.ContainsFunc(key, noToken) || strings.ContainsFunc(value, control) {
			return "", content, badForm("has a field with a header that is none")
		}
		switch strings.ToLower(key) {
		case "content-disposition":
			if disposition != "" {
				return "", content, badForm("has a field with two names")
			}
			disposition = value
		case "content-transfer-encoding":
			switch strings.ToLower(strings.Trim(value, " \t")) {
			case "7bit", "8bit", "binary":
			default:
				encoded = true
			}
		}
	}
	name, err = fieldName(disposition)
	if err == nil && encoded && name == "model" {
		err = badForm("encodes 'model'")
	}
	return name, rawjson.Span{Start: field.Start + size + len(crlf+crlf), End: field.End}, err
}

// noToken says whether a character can't be in the name of a header (RFC 9110, section 5.6.2).
func noToken(r rune) bool { return unprintable(r) || strings.ContainsRune(` "(),/:;<=>?@[\]{}`, r) }

func control(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// fieldName reads the name in a content disposition.
func fieldName(disposition string) (string, *RequestError) {
	kind, params, err := mime.ParseMediaType(disposition)
	name, ok := params["name"]
	switch {
	case err != nil || kind != "form-data" || !ok:
		return "", badForm("has a field without a name")
	case strings.ContainsAny(name, "\\%\"") || extendedName(disposition):
		return "", badForm("has a field with a name that is not plain")
	}
	return name, nil
}

// extendedName says whether a disposition has a name in the form of RFC 2231, which few readers know.
func extendedName(disposition string) bool {
	for part := range strings.SplitSeq(strings.ToLower(disposition), ";") {
		if strings.HasPrefix(strings.TrimLeft(part, " \t"), "name*") {
			return true
		}
	}
	return false
}
