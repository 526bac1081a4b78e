package sessionheader

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/tidwall/gjson"
)

// maxDepth bounds the nesting that is put in order; what lies deeper counts as written.
const maxDepth = 32

// Kinds of values in the canonical form. Texts carry their length, so no two values look alike.
const (
	kindEnd byte = iota
	kindText
	kindNumber
	kindTrue
	kindFalse
	kindNull
	kindArray
	kindObject
	kindRaw
)

// appendMessage adds the canonical form of a message: role, content, name, tool calls and tool call id, whatever the order and the
// spacing of the JSON. Empty and missing members are the same. Everything else, such as reasoning and cache hints, does not count.
func appendMessage(dst []byte, m gjson.Result) []byte {
	if !m.IsObject() {
		return appendValue(dst, m, 0)
	}
	var role, content, name, calls, callID gjson.Result
	m.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "role":
			role = value
		case "content":
			content = plain(value)
		case "name":
			name = value
		case "tool_calls":
			calls = value
		case "tool_call_id":
			callID = value
		}
		return true
	})
	for i, v := range [...]gjson.Result{role, content, name, calls, callID} {
		if !blank(v) {
			dst = appendValue(append(dst, 'a'+byte(i)), v, 0)
		}
	}
	return append(dst, kindEnd)
}

// plain turns a content of a single text part into the text.
func plain(content gjson.Result) gjson.Result {
	if !content.IsArray() {
		return content
	}
	var part gjson.Result
	parts := 0
	content.ForEach(func(_, p gjson.Result) bool {
		part = p
		parts++
		return parts < 2
	})
	text := part.Get("text")
	if parts != 1 || part.Get("type").Str != "text" || text.Type != gjson.String {
		return content
	}
	more := false
	part.ForEach(func(key, _ gjson.Result) bool {
		more = key.Str != "type" && key.Str != "text" && !passing(key.Str)
		return !more
	})
	if more {
		return content
	}
	return text
}

// passing tells whether a member of a part or of a tool call says nothing about the dialogue: clients drop or change it between turns.
func passing(member string) bool {
	return member == "cache_control" || member == "index" || member == "extra_content"
}

func blank(v gjson.Result) bool {
	switch v.Type {
	case gjson.Null:
		return true
	case gjson.String:
		return v.Str == ""
	case gjson.JSON:
		return v.IsArray() && !v.Get("0").Exists()
	case gjson.False, gjson.True, gjson.Number:
	}
	return false
}

func appendValue(dst []byte, v gjson.Result, depth int) []byte {
	switch v.Type {
	case gjson.String:
		return appendText(dst, kindText, v.Str)
	case gjson.Number:
		return appendText(dst, kindNumber, v.Raw)
	case gjson.True:
		return append(dst, kindTrue)
	case gjson.False:
		return append(dst, kindFalse)
	case gjson.Null:
		return append(dst, kindNull)
	case gjson.JSON:
	}
	switch {
	case depth == maxDepth:
		return appendText(dst, kindRaw, v.Raw)
	case v.IsArray():
		dst = append(dst, kindArray)
		v.ForEach(func(_, item gjson.Result) bool {
			dst = appendValue(dst, item, depth+1)
			return true
		})
		return append(dst, kindEnd)
	}
	return appendObject(dst, v, depth)
}

func appendObject(dst []byte, v gjson.Result, depth int) []byte {
	type member struct {
		name  string
		value gjson.Result
	}
	var members []member
	v.ForEach(func(key, value gjson.Result) bool {
		if depth != 1 || !passing(key.Str) {
			members = append(members, member{key.Str, value})
		}
		return true
	})
	slices.SortStableFunc(members, func(a, b member) int { return cmp.Compare(a.name, b.name) })
	dst = append(dst, kindObject)
	for _, m := range members {
		dst = appendValue(appendText(dst, kindText, m.name), m.value, depth+1)
	}
	return append(dst, kindEnd)
}

func appendText(dst []byte, kind byte, s string) []byte {
	return append(binary.AppendUvarint(append(dst, kind), uint64(len(s))), s...)
}
