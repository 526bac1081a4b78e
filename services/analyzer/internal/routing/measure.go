package routing

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"hydrallm/shared/openai/rawjson"
)

const (
	charactersPerToken = 4
	imageTokens        = 256
)

// Measure reads the size of a chat request, whether it holds images and whether it asks for a search, from its body, which must be valid
// JSON. Nothing is decoded: the text is counted where it is.
//
// The estimate is that of R-089: for each text a quarter of its characters and at least one, for each image 256, and the tokens that the
// answer may have, if the client limits them.
func (q *Question) Measure(body []byte) {
	m := meter{s: rawjson.Scan(body), body: body}
	m.request()
	q.Tokens, q.Images, q.Search = m.tokens, m.images, m.search
}

// meter is a walk through a request.
type meter struct {
	s      rawjson.Scanner
	body   []byte
	tokens int64
	images bool
	search bool
}

func (m *meter) request() {
	if !m.s.Enter('{') {
		return
	}
	var prompt rawjson.Span
	var limit, oldLimit int64
	messages := 0
	for m.s.Member() {
		switch string(m.s.Key()) {
		case "messages":
			messages = m.messages()
		case "prompt":
			prompt = m.s.Skip()
		case "max_completion_tokens":
			limit = number(m.s.Skip().Of(m.body))
		case "max_tokens":
			oldLimit = number(m.s.Skip().Of(m.body))
		case "has_search":
			m.search = m.s.Kind() == 't'
			m.s.Skip()
		default:
			m.s.Skip()
		}
	}
	if messages == 0 {
		m.text(prompt.Of(m.body))
	}
	if limit == 0 {
		limit = oldLimit
	}
	m.add(limit)
}

// messages reads the messages and gives their number.
func (m *meter) messages() (n int) {
	if !m.s.Enter('[') {
		return 0
	}
	for m.s.Element() {
		n++
		if !m.s.Enter('{') {
			continue
		}
		for m.s.Member() {
			if string(m.s.Key()) == "content" {
				m.content()
			} else {
				m.s.Skip()
			}
		}
	}
	return n
}

// content reads a text, a part, or a list of them.
func (m *meter) content() {
	if m.s.Kind() != '[' {
		m.part()
		return
	}
	m.s.Enter('[')
	for m.s.Element() {
		m.part()
	}
}

// part reads a text, or an object that is a text or an image.
func (m *meter) part() {
	if m.s.Kind() != '{' {
		m.text(m.s.Skip().Of(m.body))
		return
	}
	m.s.Enter('{')
	var kind, text rawjson.Span
	for m.s.Member() {
		switch string(m.s.Key()) {
		case "type":
			kind = m.s.Skip()
		case "text":
			text = m.s.Skip()
		default:
			m.s.Skip()
		}
	}
	if rawjson.Is(kind.Of(m.body), "image_url") {
		m.images = true
		m.add(imageTokens)
		return
	}
	m.text(text.Of(m.body))
}

// text adds a JSON string; anything else weighs nothing.
func (m *meter) text(raw []byte) {
	if len(raw) >= len(`""`) && raw[0] == '"' {
		m.add(max(1, characters(raw[1:len(raw)-1])/charactersPerToken))
	}
}

func (m *meter) add(tokens int64) {
	if m.tokens += tokens; m.tokens < 0 {
		m.tokens = math.MaxInt64
	}
}

// number reads a positive number; everything else counts as not given.
func number(raw []byte) int64 {
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return max(n, 0)
	}
	if f, err := strconv.ParseFloat(string(raw), 64); err == nil && f >= 1 && f < math.MaxInt64 {
		return int64(f)
	}
	return 0
}

// characters counts the code points that the inner part of a valid JSON string stands for. An escape is the character that it means.
func characters(inner []byte) int64 {
	n := 0
	for {
		i := bytes.IndexByte(inner, '\\')
		if i < 0 {
			return int64(n + codePoints(inner))
		}
		n += codePoints(inner[:i]) + 1
		unit, size := rawjson.Unit(inner[i:])
		inner = inner[i+size:]
		if utf16.IsSurrogate(rune(unit)) && len(inner) > 0 && inner[0] == '\\' {
			low, size := rawjson.Unit(inner)
			if utf16.DecodeRune(rune(unit), rune(low)) != utf8.RuneError {
				inner = inner[size:]
			}
		}
	}
}

// codePoints counts the code points of UTF-8 text: its bytes but those that continue a code point, which begin with the bits 10.
func codePoints(text []byte) int {
	n := len(text)
	for len(text) >= 8 {
		word := binary.LittleEndian.Uint64(text)
		n -= bits.OnesCount64(word & ^(word << 1) & 0x8080808080808080)
		text = text[8:]
	}
	for _, b := range text {
		if b&0xC0 == 0x80 {
			n--
		}
	}
	return n
}
