package gemini

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"hydrallm/shared/openai/rawjson"
)

// maxCitations bounds the annotations of a choice.
const maxCitations = 256

// citations gives the annotations that say where a grounded text comes from, as the elements of an array; nil when there are none. A source
// that no piece of the text refers to is cited for none.
func (c *choice) citations() []byte {
	if c.grounding == nil {
		return nil
	}
	metadata := gjson.ParseBytes(c.grounding)
	sources := metadata.Get("groundingChunks").Array()
	sources = sources[:min(len(sources), maxCitations)]
	cited := make([]bool, len(sources))
	var out []byte
	count := 0
	cite := func(source, start, end int) {
		if address := sources[source].Get("web.uri").Str; address != "" && count < maxCitations {
			out = appendCitation(out, address, sources[source].Get("web.title").Str, start, end)
			cited[source] = true
			count++
		}
	}
	for _, support := range metadata.Get("groundingSupports").Array() {
		if count == maxCitations {
			break
		}
		start, end, found := c.locate(support.Get("segment"))
		if !found {
			continue
		}
		for _, i := range support.Get("groundingChunkIndices").Array() {
			if n := i.Int(); n >= 0 && n < int64(len(sources)) {
				cite(int(n), start, end)
			}
		}
	}
	for i := range sources {
		if !cited[i] {
			cite(i, 0, 0)
		}
	}
	return out
}

// newCitations gives those citations that the client does not know, as long as the others are what it knows.
func (c *choice) newCitations() []byte {
	all := c.citations()
	fresh, goesOn := bytes.CutPrefix(all, c.cited)
	if !goesOn {
		return nil
	}
	c.cited = all
	return bytes.TrimPrefix(fresh, []byte{','})
}

// locate gives the place of a segment in characters. Google counts bytes, and counts them in the part that the segment is in, of which
// nothing is known any more; its text is what tells.
func (c *choice) locate(segment gjson.Result) (start, end int, found bool) {
	text := []byte(segment.Get("text").Str)
	if len(text) == 0 {
		return 0, 0, false
	}
	from := segment.Get("startIndex").Int()
	if from < 0 || from > int64(len(c.text)) || !bytes.HasPrefix(c.text[from:], text) {
		if from = int64(bytes.Index(c.text, text)); from < 0 {
			return 0, 0, false
		}
	}
	start = utf8.RuneCount(c.text[:from])
	return start, start + utf8.RuneCount(text), true
}

func appendCitation(dst []byte, address, title string, start, end int) []byte {
	if len(dst) > 0 {
		dst = append(dst, ',')
	}
	dst = strconv.AppendInt(append(dst, `{"type":"url_citation","url_citation":{"start_index":`...), int64(start), 10)
	dst = strconv.AppendInt(append(dst, `,"end_index":`...), int64(end), 10)
	dst = rawjson.AppendString(append(dst, `,"title":`...), title)
	return append(rawjson.AppendString(append(dst, `,"url":`...), address), "}}"...)
}
