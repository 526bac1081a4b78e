package compat

import (
	"bytes"
	"slices"

	"hydrallm/shared/openai/rawjson"
)

// contentKind is the JSON type of a content.
type contentKind uint8

const (
	absent contentKind = iota
	null
	text
	array
	other
)

// content is what was read of the content of a message.
type content struct {
	kind   contentKind
	length int  // of the text, as written and without quotes, also of all parts together
	texts  bool // an array of nothing but texts; they are in request.texts
}

// empty says whether there is nothing in the content.
func (c content) empty() bool {
	return c.kind == absent || c.kind == null || c.length == 0 && (c.kind == text || c.kind == array && c.texts)
}

// content reads the content of a message.
func (r *request) content() content {
	r.texts = r.texts[:0]
	switch r.s.Kind() {
	case 'n':
		r.s.Skip()
		return content{kind: null}
	case '"':
		value := r.s.Skip()
		return content{kind: text, length: value.End - value.Start - len(`""`)}
	case '[':
		return r.parts()
	default:
		r.s.Skip()
		return content{kind: other}
	}
}

// parts reads the parts of a content.
func (r *request) parts() content {
	got := content{kind: array, texts: true}
	r.s.Enter('[')
	var c items
	for r.s.Element() {
		start := r.s.Pos()
		if !r.s.Enter('{') {
			got.texts = false
			r.judge(&c, start, r.s.Pos(), true)
			continue
		}
		said := r.onePart()
		if !said.IsZero() {
			r.texts = append(r.texts, said)
			got.length += said.End - said.Start - len(`""`)
		}
		got.texts = got.texts && !said.IsZero()
		r.judge(&c, start, r.s.Pos(), !r.noEmpty || said.IsZero() || said.End-said.Start > len(`""`))
	}
	return got
}

// onePart reads a part and gives the place of its text, a JSON string, if it is one. A refusal is text to those who do not know refusals.
func (r *request) onePart() (said rawjson.Span) {
	var c items
	var kind, words, refusal, refusalKey rawjson.Span
	var cut [][]byte // names of members that the vendor does not take
	for r.s.Member() {
		key, name := r.s.KeySpan(), r.s.Key()
		start := r.s.Pos()
		first := r.s.Kind()
		value := r.s.Skip()
		takes := r.inPart == nil || contains(r.inPart, name)
		keep := takes && !contains(r.foreign, name)
		if !takes {
			cut = append(cut, name)
		}
		switch string(name) {
		case "type":
			kind = value
		case "text":
			words = value
		case "refusal":
			refusal, refusalKey, keep = value, key, true
		case "image_url":
			if first == '"' && !r.plainURL {
				r.edits.replace(start, value.End, `{"url":`+string(value.Of(r.body))+`}`)
			}
		}
		r.judge(&c, key.Start, value.End, keep)
	}
	raw := kind.Of(r.body)
	if name := rawjson.Text(raw); name != "refusal" && r.lost == "" && slices.ContainsFunc(cut, func(n []byte) bool { return string(n) == name }) {
		r.lost = name // what the part is about is in the member of this name
	}
	switch {
	case rawjson.Is(raw, "text") && !words.IsZero() && r.body[words.Start] == '"':
		return words
	case r.inPart != nil && !contains(r.inPart, []byte("refusal")) && rawjson.Is(raw, "refusal") && !refusal.IsZero() && words.IsZero() && r.body[refusal.Start] == '"':
		r.edits.replace(kind.Start, kind.End, `"text"`)
		r.edits.replace(refusalKey.Start, refusalKey.End, `"text"`)
		return refusal
	}
	return rawjson.Span{}
}

// finishContent changes a content that the vendor does not take in its form.
func (r *request) finishContent(m *message, f *member) {
	switch {
	case m.content.kind == null && m.calls == 0:
		r.edits.replace(f.value.Start, f.value.End, `""`)
	case m.content.kind == array && m.content.texts && r.flat[m.role]:
		r.edits.replace(f.value.Start, f.value.End, r.joined())
	}
}

// joined is the text of all parts as one JSON string, a part on a line. Escapes stay as they are.
func (r *request) joined() string {
	var b bytes.Buffer
	b.WriteByte('"')
	first := true
	for _, t := range r.texts {
		if t.End-t.Start == len(`""`) {
			continue
		}
		if !first {
			b.WriteString(`\n`)
		}
		first = false
		b.Write(r.body[t.Start+1 : t.End-1])
	}
	b.WriteByte('"')
	return b.String()
}
