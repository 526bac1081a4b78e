package rawjson

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string with its quotes. Only what must be escaped is escaped; text stays UTF-8, and bytes that
// are not UTF-8 become U+FFFD.
func AppendString[T string | []byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if plain[c] {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
			if r == utf8.RuneError && n == 1 {
				dst = append(append(dst, s[from:i]...), "\ufffd"...)
				from = i + 1
			}
			i += n
			continue
		}
		dst = append(dst, s[from:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		from = i
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}

// AppendText appends the text that the inner part of a valid JSON string (without its quotes) stands for. A lone surrogate becomes U+FFFD.
func AppendText(dst, inner []byte) []byte {
	for i := 0; i < len(inner); {
		if inner[i] != '\\' {
			dst = append(dst, inner[i])
			i++
			continue
		}
		u, n := Unit(inner[i:])
		i += n
		r := rune(u)
		if utf16.IsSurrogate(r) {
			low, m := rune(0), 0
			if i < len(inner) && inner[i] == '\\' {
				u, m = Unit(inner[i:])
				low = rune(u)
			}
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				i += m
			}
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}

// Text gives the text that a valid JSON string (with its quotes) stands for; "" for anything that is not a string.
func Text(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	return string(AppendText(make([]byte, 0, len(raw)), raw[1:len(raw)-1]))
}

// Is says whether raw is a JSON string (with its quotes) that stands for text.
func Is(raw []byte, text string) bool {
	if len(raw) < 2 || raw[0] != '"' {
		return false
	}
	inner := raw[1 : len(raw)-1]
	return string(inner) == text || len(inner) > len(text) && bytes.IndexByte(inner, '\\') >= 0 && Text(raw) == text
}

// Unit reads one unit of the inner part of a valid JSON string: a byte, or an escape sequence. It gives the byte or the UTF-16 code unit
// that the escape stands for, and the length in the text.
func Unit(inner []byte) (value uint16, size int) {
	if inner[0] != '\\' || len(inner) < 2 {
		return uint16(inner[0]), 1
	}
	switch c := inner[1]; c {
	case 'u':
		if len(inner) < 6 {
			return '\\', 1
		}
		h := func(i int) uint16 { return uint16(hexValue[inner[i]]) }
		return h(2)<<12 | h(3)<<8 | h(4)<<4 | h(5), 6
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	default:
		return uint16(c), 2
	}
}
