package prompt

import (
	"bytes"
	"math"
	"slices"
	"strconv"

	"hydrallm/shared/openai/rawjson"
)

// appendCanonical appends a form of a JSON value that is the same however the value is written: without white space, members in the order of their names and
// without those that are null, texts and numbers in one spelling. Clients read what they got and write it anew when they send it again.
func appendCanonical(dst, raw []byte) []byte {
	if len(raw) == 0 {
		return dst
	}
	switch raw[0] {
	case '{':
		var members [][]byte
		for m := range rawjson.Members(raw) {
			if value := m.Value.Of(raw); value[0] != 'n' {
				members = append(members, appendCanonical(append(rawjson.AppendString(nil, m.Name()), ':'), value))
			}
		}
		slices.SortStableFunc(members, slices.Compare)
		return appendList(dst, '{', members, '}')
	case '[':
		var elements [][]byte
		for span := range rawjson.Elements(raw) {
			elements = append(elements, appendCanonical(nil, span.Of(raw)))
		}
		return appendList(dst, '[', elements, ']')
	case '"':
		return rawjson.AppendString(dst, rawjson.Text(raw))
	case 't', 'f', 'n':
		return append(dst, raw...)
	}
	const exact = 1 << 53 // from here on a number of another spelling may be another number
	if n, err := strconv.ParseFloat(string(raw), 64); err == nil && math.Abs(n) < exact {
		return strconv.AppendFloat(dst, n, 'g', -1, 64)
	}
	return append(dst, raw...)
}

func appendList(dst []byte, open byte, list [][]byte, closing byte) []byte {
	dst = append(dst, open)
	for i, one := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, one...)
	}
	return append(dst, closing)
}

// canonicalArguments is what a call passes. None at all are the empty object: many clients can't write anything else.
func canonicalArguments(text string) string {
	switch arguments := []byte(text); {
	case text == "":
		return "{}"
	case rawjson.Valid(arguments):
		return string(appendCanonical(nil, bytes.TrimSpace(arguments)))
	}
	return text
}
