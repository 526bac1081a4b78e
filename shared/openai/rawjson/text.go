package rawjson

import (
	"encoding/binary"
	"math/bits"
)

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
	quotes   = 0x2222222222222222
	slashes  = 0x5c5c5c5c5c5c5c5c
	spaces   = 0x2020202020202020
)

// special marks the bytes of w that end a run of plain string text: the quote, the backslash, control characters and the bytes of
// multi-byte characters. The lowest mark is exact; marks above it may be wrong because of borrows.
func special(w uint64) uint64 {
	return (((w ^ quotes) - lowBits) | ((w ^ slashes) - lowBits) | (w - spaces) | w) & highBits
}

// textEnd scans string text from i, the byte after the opening quote, and gives the index after the closing quote. A negative result is
// the complement of the index of the first byte that is not acceptable.
func textEnd(b []byte, i int) int {
	for {
		for i+16 <= len(b) {
			w := b[i : i+16 : i+16]
			m, n := special(binary.LittleEndian.Uint64(w)), special(binary.LittleEndian.Uint64(w[8:]))
			if m != 0 {
				i += bits.TrailingZeros64(m) >> 3
				goto found
			}
			if n != 0 {
				i += 8 + bits.TrailingZeros64(n)>>3
				goto found
			}
			i += 16
		}
		for i < len(b) && plain[b[i]] {
			i++
		}
		if i >= len(b) {
			return ^len(b)
		}
	found:
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c == '\\':
			if i = escapeEnd(b, i); i < 0 {
				return i
			}
		case c >= 0x80:
			if i = runesEnd(b, i); i < 0 {
				return i
			}
		default:
			return ^i
		}
	}
}

// plain marks the ASCII bytes that stand for themselves in string text.
var plain = func() (t [256]bool) {
	for c := 0x20; c < 0x80; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// escapeEnd gives the index after the escape sequence at i, or the complement of i.
func escapeEnd(b []byte, i int) int {
	if i+1 >= len(b) {
		return ^len(b)
	}
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
		if i+6 > len(b) {
			return ^len(b)
		}
		if hexValue[b[i+2]]|hexValue[b[i+3]]|hexValue[b[i+4]]|hexValue[b[i+5]] < 16 {
			return i + 6
		}
	}
	return ^i
}

// hexValue maps hexadecimal digits to their values and everything else to 0xff.
var hexValue = func() (t [256]byte) {
	for c := range t {
		t[c] = 0xff
	}
	for c := range byte(10) {
		t['0'+c] = c
	}
	for c := range byte(6) {
		t['a'+c], t['A'+c] = 10+c, 10+c
	}
	return t
}()

// runesEnd skips the multi-byte characters that begin at i, and single plain ASCII bytes between them, which is what text in most scripts
// looks like. The result is the index of the first byte after them, or the complement of the index of an invalid sequence.
func runesEnd(b []byte, i int) int {
	for i+4 <= len(b) {
		w := binary.LittleEndian.Uint32(b[i:])
		switch {
		case w&0x00c0c0f0 == 0x008080e0: // three bytes, not overlong, no surrogate
			if t := w & 0x200f; t == 0 || t == 0x200d {
				return ^i
			}
			i += 3
		case w&0xc0e0 == 0x80c0 && w&0x1e != 0: // two bytes, not overlong
			i += 2
		case w&0xc0c0c0f8 == 0x808080f0: // four bytes, not overlong, at most U+10FFFF
			if t := w & 0x3007; t == 0 || t&4 != 0 && t&0x3003 != 0 {
				return ^i
			}
			i += 4
		case w&0x80 != 0:
			return ^i
		case w&0x8000 != 0 && plain[byte(w)]:
			i++
		default:
			return i
		}
	}
	return lastRunesEnd(b, i)
}

// lastRunesEnd is runesEnd for the last three bytes of a text, too few for the fast path.
func lastRunesEnd(b []byte, i int) int {
	for i < len(b) && b[i] >= 0x80 {
		var padded [4]byte
		n := copy(padded[:], b[i:])
		w := binary.LittleEndian.Uint32(padded[:])
		switch {
		case n >= 3 && w&0x00c0c0f0 == 0x008080e0 && w&0x200f != 0 && w&0x200f != 0x200d:
			i += 3
		case n >= 2 && w&0xc0e0 == 0x80c0 && w&0x1e != 0:
			i += 2
		default:
			return ^i
		}
	}
	return i
}
