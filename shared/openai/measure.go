package openai

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"

	"hydrallm/shared/openai/rawjson"
)

// The estimate of R-089: for each text a quarter of its characters and at least one token, for each image a fixed number, and the tokens that
// the answer may have, if the client limits them.
const (
	charactersPerToken = 4
	imageTokens        = 256
)

// weighText adds a JSON string; anything else weighs nothing.
func (r *requestScan) weighText(raw []byte) {
	if len(raw) >= len(`""`) && raw[0] == '"' {
		r.weigh(max(1, characters(raw[1:len(raw)-1])/charactersPerToken))
	}
}

func (r *requestScan) weigh(tokens int64) {
	if r.Tokens += tokens; r.Tokens < 0 {
		r.Tokens = math.MaxInt64
	}
}

// Characters counts the code points that a valid JSON string stands for.
func Characters(raw []byte) int64 { return characters(raw[1 : len(raw)-1]) }

// characters counts the code points that the inner part of a valid JSON string stands for: all of its own, less what an escape is longer than
// the character that it means.
func characters(inner []byte) int64 {
	n := codePoints(inner)
	for {
		i := bytes.IndexByte(inner, '\\')
		if i < 0 {
			return int64(n)
		}
		unit, size := rawjson.Unit(inner[i:])
		n -= size - 1
		inner = inner[i+size:]
		if utf16.IsSurrogate(rune(unit)) && len(inner) > 0 && inner[0] == '\\' {
			low, size := rawjson.Unit(inner)
			if utf16.DecodeRune(rune(unit), rune(low)) != utf8.RuneError {
				n -= size
				inner = inner[size:]
			}
		}
	}
}

// codePoints counts the code points of UTF-8 text: its bytes but those that continue a code point, which begin with the bits 10. Most text is
// ASCII, of which four words are looked at together.
func codePoints(text []byte) int {
	const high = 0x8080808080808080 // the first bit of each byte
	n := len(text)
	for len(text) >= 32 {
		a, b := binary.LittleEndian.Uint64(text), binary.LittleEndian.Uint64(text[8:])
		c, d := binary.LittleEndian.Uint64(text[16:]), binary.LittleEndian.Uint64(text[24:])
		if (a|b|c|d)&high != 0 {
			n -= bits.OnesCount64(a & ^(a<<1) & high) + bits.OnesCount64(b & ^(b<<1) & high) + bits.OnesCount64(c & ^(c<<1) & high) + bits.OnesCount64(d & ^(d<<1) & high)
		}
		text = text[32:]
	}
	for _, b := range text {
		if b&0xC0 == 0x80 {
			n--
		}
	}
	return n
}

// MessageTokens is the estimate for one message, which is valid JSON.
func MessageTokens(message []byte) int64 {
	r := requestScan{Request: Request{body: message}, s: rawjson.Scan(message)}
	r.message(0)
	return r.Tokens
}
