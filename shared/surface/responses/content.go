package responses

import (
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// content is what a message or a result says. Texts are inner parts of JSON strings.
type content struct {
	texts [][]byte
	parts [][]byte // all parts in order, as Chat Completions has them
	media [][]byte // those that are no text
}

// readContent reads a string, or an array of parts. at is the path of the value.
func (r *reader) readContent(raw []byte, at string) (c content) {
	switch {
	case len(raw) == 0 || raw[0] == 'n':
	case raw[0] == '"':
		c.addText(raw)
	case raw[0] == '[':
		n := 0
		for span := range rawjson.Elements(raw) {
			r.readPart(&c, span.Of(raw), at, n)
			n++
		}
	default:
		r.wrongType(at, "a string or an array of parts")
	}
	return c
}

func (c *content) addText(raw []byte) {
	c.texts = append(c.texts, raw[1:len(raw)-1])
	c.parts = append(c.parts, append(append([]byte(`{"type":"text","text":`), raw...), '}'))
}

func (c *content) addPart(raw []byte) {
	c.parts, c.media = append(c.parts, raw), append(c.media, raw)
}

// readPart reads one part.
func (r *reader) readPart(c *content, part []byte, at string, n int) {
	if part[0] == '"' {
		c.addText(part)
		return
	}
	kind := rawjson.Text(rawjson.Get(part, "type"))
	switch kind {
	case "input_text", "output_text", "text", "summary_text", "reasoning_text":
		r.partText(c, part, "text", at, n)
	case "refusal":
		r.partText(c, part, "refusal", at, n)
	case "input_image", "image_url":
		r.image(c, part, at, n)
	case "input_file", "file":
		r.file(c, part, at, n)
	case "input_audio":
		c.addPart(part)
	default:
		param := index(at, n) + ".type"
		r.fail(openai.CodeInvalidValue, param, "'%s': there is no part of type '%s' that a message can have here.", param, kind)
	}
}

func (r *reader) partText(c *content, part []byte, name, at string, n int) {
	text := rawjson.Get(part, name)
	if len(text) == 0 || text[0] != '"' {
		r.wrongType(index(at, n)+"."+name, "a string")
		return
	}
	c.addText(text)
}

// image makes a part of an image, which comes as an address or as data.
func (r *reader) image(c *content, part []byte, at string, n int) {
	url := rawjson.Get(part, "image_url")
	if len(url) > 0 && url[0] == '{' { // as Chat Completions has it
		url = rawjson.Get(url, "url")
	}
	if len(url) == 0 || url[0] != '"' {
		r.fail(openai.CodeInvalidValue, index(at, n)+".image_url", "'%s.image_url' must be an address or data: files that were uploaded elsewhere are not here.", index(at, n))
		return
	}
	out := append([]byte(`{"type":"image_url","image_url":{"url":`), url...)
	if detail := rawjson.Get(part, "detail"); len(detail) > 0 && detail[0] == '"' {
		out = append(append(out, `,"detail":`...), detail...)
	}
	c.addPart(append(out, "}}"...))
}

// file makes a part of a file, which comes as data.
func (r *reader) file(c *content, part []byte, at string, n int) {
	if inner := rawjson.Get(part, "file"); len(inner) > 0 && inner[0] == '{' { // as Chat Completions has it
		c.addPart(part)
		return
	}
	data := rawjson.Get(part, "file_data")
	if len(data) == 0 || data[0] != '"' {
		r.fail(openai.CodeInvalidValue, index(at, n)+".file_data", "'%s.file_data' must hold the file: files that were uploaded elsewhere are not here.", index(at, n))
		return
	}
	out := append([]byte(`{"type":"file","file":{"file_data":`), data...)
	if name := rawjson.Get(part, "filename"); len(name) > 0 && name[0] == '"' {
		out = append(append(out, `,"filename":`...), name...)
	}
	c.addPart(append(out, "}}"...))
}

// append appends the content as Chat Completions has it: texts alone are one, because some servers know no parts.
func (c *content) append(dst []byte) []byte {
	if len(c.media) > 0 {
		return appendArray(dst, c.parts)
	}
	return c.appendText(dst)
}

// appendText appends the texts as one string.
func (c *content) appendText(dst []byte) []byte {
	dst = append(dst, '"')
	for i, text := range c.texts {
		if i > 0 {
			dst = append(dst, `\n\n`...)
		}
		dst = append(dst, text...)
	}
	return append(dst, '"')
}

func appendArray(dst []byte, elements [][]byte) []byte {
	dst = append(dst, '[')
	for i, e := range elements {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, e...)
	}
	return append(dst, ']')
}
