package pdftext

import (
	"bytes"
	"compress/zlib"
	"encoding/ascii85"
	"encoding/hex"
	"io"
	"strconv"
)

// Objects of a file are: nil, bool, float64, string, name, []any, dict, ref, keyword.
type (
	name    string
	keyword string
	ref     int
	dict    map[string]any
)

const maxNesting = 40

// lexer reads objects from bytes.
type lexer struct {
	b     []byte
	at    int
	depth int
}

func (l *lexer) space() {
	for l.at < len(l.b) {
		switch l.b[l.at] {
		case 0, '\t', '\n', '\f', '\r', ' ':
			l.at++
		case '%':
			for l.at < len(l.b) && l.b[l.at] != '\n' && l.b[l.at] != '\r' {
				l.at++
			}
		default:
			return
		}
	}
}

// next reads one object or keyword; ok is false at the end. What nests too deep is skipped as nothing.
func (l *lexer) next() (v any, ok bool) {
	l.space()
	if l.at >= len(l.b) {
		return nil, false
	}
	switch c := l.b[l.at]; {
	case c == '/':
		l.at++
		return name(l.name()), true
	case c == '(':
		return l.literal(), true
	case c == '<' && l.peek(1) == '<':
		l.at += 2
		return l.dict(), true
	case c == '<':
		return l.hex(), true
	case c == '[':
		l.at++
		var list []any
		l.list(func(v any) { list = append(list, v) }, "]")
		return list, true
	case c == ']' || c == '{' || c == '}' || c == ')':
		l.at++
		return keyword(string(c)), true
	case c == '>':
		if l.at++; l.peek(0) == '>' {
			l.at++
		}
		return keyword(">>"), true
	}
	word := l.word()
	if f, err := strconv.ParseFloat(word, 64); err == nil {
		return f, true
	}
	switch word {
	case "true", "false":
		return word == "true", true
	case "null":
		return nil, true
	}
	return keyword(word), true
}

func (l *lexer) peek(n int) byte {
	if l.at+n < len(l.b) {
		return l.b[l.at+n]
	}
	return 0
}

func regular(c byte) bool {
	switch c {
	case 0, '\t', '\n', '\f', '\r', ' ', '(', ')', '<', '>', '[', ']', '{', '}', '/', '%':
		return false
	}
	return true
}

func (l *lexer) word() string {
	start := l.at
	for l.at < len(l.b) && regular(l.b[l.at]) {
		l.at++
	}
	return string(l.b[start:l.at])
}

func (l *lexer) name() string {
	word := l.word()
	out := make([]byte, 0, len(word))
	for i := 0; i < len(word); i++ {
		if word[i] == '#' && i+2 < len(word) {
			if c, err := hex.DecodeString(word[i+1 : i+3]); err == nil {
				out = append(out, c[0])
				i += 2
				continue
			}
		}
		out = append(out, word[i])
	}
	return string(out)
}

func (l *lexer) literal() string {
	var out []byte
	depth := 0
	for ; l.at < len(l.b); l.at++ {
		c := l.b[l.at]
		switch c {
		case '(':
			if depth++; depth > 1 {
				out = append(out, c)
			}
		case ')':
			if depth--; depth == 0 {
				l.at++
				return string(out)
			}
			out = append(out, c)
		case '\\':
			l.at++
			out = l.escape(out)
		default:
			out = append(out, c)
		}
	}
	return string(out)
}

func (l *lexer) escape(out []byte) []byte {
	switch c := l.peek(0); c {
	case 'n':
		return append(out, '\n')
	case 'r':
		return append(out, '\r')
	case 't':
		return append(out, '\t')
	case 'b', 'f', '\n':
		return out
	case '\r':
		if l.peek(1) == '\n' {
			l.at++
		}
		return out
	case '0', '1', '2', '3', '4', '5', '6', '7':
		n := 0
		for i := 0; i < 3 && l.peek(0) >= '0' && l.peek(0) <= '7'; i++ {
			n = n*8 + int(l.peek(0)-'0')
			l.at++
		}
		l.at--
		return append(out, byte(n))
	default:
		return append(out, c)
	}
}

func (l *lexer) hex() string {
	var digits []byte
	for l.at++; l.at < len(l.b) && l.b[l.at] != '>'; l.at++ {
		if regular(l.b[l.at]) {
			digits = append(digits, l.b[l.at])
		}
	}
	l.at++
	if len(digits)%2 == 1 {
		digits = append(digits, '0')
	}
	out := make([]byte, len(digits)/2)
	n, _ := hex.Decode(out, digits)
	return string(out[:n])
}

// list reads objects up to end. "1 0 R" is a reference.
func (l *lexer) list(add func(any), end keyword) {
	if l.depth >= maxNesting {
		l.at = len(l.b)
		return
	}
	l.depth++
	defer func() { l.depth-- }()
	var held []any
	flush := func() {
		for _, v := range held {
			add(v)
		}
		held = held[:0]
	}
	for {
		v, ok := l.next()
		if !ok || v == end || v == keyword("endobj") || v == keyword("stream") {
			flush()
			return
		}
		if v == keyword("R") && len(held) >= 2 {
			id, ok := held[len(held)-2].(float64)
			held = held[:len(held)-2]
			flush()
			if ok {
				add(ref(id))
			}
			continue
		}
		if _, number := v.(float64); !number {
			flush()
			add(v)
			continue
		}
		if len(held) == 2 {
			add(held[0])
			held[0], held = held[1], held[:1]
		}
		held = append(held, v)
	}
}

func (l *lexer) dict() dict {
	d := dict{}
	var key name
	have := false
	l.list(func(v any) {
		if have {
			d[string(key)], have = v, false
		} else if k, ok := v.(name); ok {
			key, have = k, true
		}
	}, ">>")
	return d
}

// unfilter undoes the filters of a stream, within the budget of bytes. What is broken gives what came before.
func unfilter(data []byte, filters []string, budget *int) []byte {
	for i, filter := range filters {
		if i > 3 {
			return nil
		}
		var r io.Reader
		switch filter {
		case "FlateDecode", "Fl":
			z, err := zlib.NewReader(bytes.NewReader(data))
			if err != nil {
				return nil
			}
			r = z
		case "ASCII85Decode", "A85":
			data, _, _ = bytes.Cut(bytes.TrimPrefix(bytes.TrimSpace(data), []byte("<~")), []byte("~"))
			r = ascii85.NewDecoder(bytes.NewReader(data))
		case "ASCIIHexDecode", "AHx":
			l := lexer{b: append([]byte("<"), data...)}
			r = bytes.NewReader([]byte(l.hex()))
		default:
			return nil // pictures, mostly
		}
		data, _ = io.ReadAll(io.LimitReader(r, int64(*budget)))
		if *budget -= len(data); *budget <= 0 {
			return data
		}
	}
	return data
}
