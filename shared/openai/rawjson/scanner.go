package rawjson

import (
	"bytes"
	"fmt"
	"math"
)

// tooDeep is added to the offset of a container that is nested deeper than MaxDepth, so that the sum is below every other result.
const tooDeep = math.MinInt

// isTooDeep says whether a negative result is about nesting.
func isTooDeep(result int) bool { return result < tooDeep/2 }

// Scanner walks once through a JSON text from front to back. It checks all it passes, so a caller that has visited or skipped everything
// and gets true from End knows that the text is valid. Values that are not entered are skipped without any allocation.
//
//	s := rawjson.Scan(text)
//	if s.Enter('{') {
//		for s.Member() {
//			switch string(s.Key()) {
//			case "model":
//				model = s.Skip()
//			default:
//				s.Skip()
//			}
//		}
//	}
//	ok := s.End()
//
// Each step of Member and Element must be followed by exactly one Skip, or by Enter and a full walk of the inner value.
// After an error every step says "no more" and End says false.
type Scanner struct {
	b     []byte
	i     int // next byte
	depth int // containers that may still be entered
	first bool
	key   Span // with quotes
	err   int  // complement of the position of the first error, or tooDeep and the position; 0 = none
}

// Scan makes a scanner for text, at its first value.
func Scan(text []byte) Scanner {
	return Scanner{b: text, i: skipSpace(text, 0), depth: MaxDepth}
}

// Kind gives the first byte of the value ahead: one of `{["-0123456789tfn`, or anything else for an error. 0 is the end of the text.
func (s *Scanner) Kind() byte {
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

// Pos is the offset of the value ahead.
func (s *Scanner) Pos() int { return s.i }

// Enter steps into the object ('{') or array ('[') ahead. If the value ahead is something else it is skipped and the answer is false.
func (s *Scanner) Enter(open byte) bool {
	if s.i >= len(s.b) || s.b[s.i] != open {
		s.Skip()
		return false
	}
	if s.depth == 0 {
		return s.fail(tooDeep + s.i)
	}
	s.depth--
	s.i++
	s.first = true
	return true
}

// Member steps to the next member of the object that was entered last: Key gives its name, its value is ahead. It answers false at the
// end of the object, which is then left.
func (s *Scanner) Member() bool {
	if !s.next('}') {
		return false
	}
	if s.i >= len(s.b) || s.b[s.i] != '"' {
		return s.fail(^s.i)
	}
	end := s.i + 1
	for end < len(s.b) && plain[s.b[end]] {
		end++
	}
	if end >= len(s.b) || s.b[end] != '"' {
		if end = textEnd(s.b, end); end < 0 {
			return s.fail(end)
		}
	} else {
		end++
	}
	s.key = Span{s.i, end}
	if end < len(s.b) && s.b[end] == ':' {
		s.i = end + 1
	} else {
		if end = skipSpace(s.b, end); end >= len(s.b) || s.b[end] != ':' {
			return s.fail(^end)
		}
		s.i = end + 1
	}
	if s.i < len(s.b) && s.b[s.i] <= ' ' {
		s.i = skipSpace(s.b, s.i)
	}
	return true
}

// Element steps to the next element of the array that was entered last, and answers false at its end, which is then left.
func (s *Scanner) Element() bool { return s.next(']') }

// next steps over the comma to the next item of a container, or out of it.
func (s *Scanner) next(closing byte) bool {
	if s.i < len(s.b) && s.b[s.i] <= ' ' {
		s.i = skipSpace(s.b, s.i)
	}
	switch {
	case s.i >= len(s.b):
		return s.fail(^s.i)
	case s.b[s.i] == closing:
		s.i++
		s.depth++
		s.first = false
		return false
	case s.first:
		s.first = false
		return true
	case s.b[s.i] != ',':
		return s.fail(^s.i)
	}
	s.i++
	if s.i < len(s.b) && s.b[s.i] <= ' ' {
		s.i = skipSpace(s.b, s.i)
	}
	return true
}

// Key gives the name of the current member with escapes resolved. It aliases the text, or is a copy if the name holds an escape.
func (s *Scanner) Key() []byte {
	raw := s.b[s.key.Start+1 : s.key.End-1]
	if bytes.IndexByte(raw, '\\') >= 0 {
		return AppendText(nil, raw)
	}
	return raw
}

// KeySpan is the place of the current member's name, with its quotes.
func (s *Scanner) KeySpan() Span { return s.key }

// Skip passes over the value ahead and gives its place. After an error the place is the zero Span.
func (s *Scanner) Skip() Span {
	start := s.i
	end := valueEnd(s.b, s.i, s.depth)
	if end < 0 {
		s.fail(end)
		return Span{}
	}
	s.i = end
	s.first = false
	return Span{start, end}
}

// Failed says whether an error was met.
func (s *Scanner) Failed() bool { return s.err != 0 }

// End answers whether the text was valid and nothing follows the value that was walked.
func (s *Scanner) End() bool {
	if s.err != 0 {
		return false
	}
	if i := skipSpace(s.b, s.i); i < len(s.b) {
		return s.fail(^i)
	}
	return true
}

// Err describes the first error, or is nil.
func (s *Scanner) Err() *SyntaxError {
	switch {
	case s.err == 0:
		return nil
	case isTooDeep(s.err):
		return &SyntaxError{Offset: s.err - tooDeep, Reason: fmt.Sprintf("nesting is deeper than %d", MaxDepth)}
	default:
		return &SyntaxError{Offset: ^s.err, Reason: "unexpected character or end"}
	}
}

// fail notes the first error and empties the text, so that every later step ends at once.
func (s *Scanner) fail(at int) bool {
	if s.err == 0 {
		s.err = at
	}
	s.b, s.i, s.key = nil, 0, Span{}
	return false
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// valueEnd gives the index after the value at i, the complement of the position of an error, or tooDeep and the position.
func valueEnd(b []byte, i, depth int) int {
	if i >= len(b) {
		return ^i
	}
	switch b[i] {
	case '"':
		return textEnd(b, i+1)
	case '{', '[':
		return containerEnd(b, i, depth)
	case 't':
		return literalEnd(b, i, "true")
	case 'f':
		return literalEnd(b, i, "false")
	case 'n':
		return literalEnd(b, i, "null")
	default:
		return numberEnd(b, i)
	}
}

func literalEnd(b []byte, i int, word string) int {
	if len(b)-i >= len(word) && string(b[i:i+len(word)]) == word {
		return i + len(word)
	}
	return ^i
}

func numberEnd(b []byte, i int) int {
	if b[i] == '-' {
		i++
	}
	switch {
	case i >= len(b):
		return ^i
	case b[i] == '0':
		i++
	case '1' <= b[i] && b[i] <= '9':
		i = digitsEnd(b, i)
	default:
		return ^i
	}
	if i < len(b) && b[i] == '.' {
		end := digitsEnd(b, i+1)
		if end == i+1 {
			return ^end
		}
		i = end
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		end := digitsEnd(b, i)
		if end == i {
			return ^end
		}
		i = end
	}
	return i
}

func digitsEnd(b []byte, i int) int {
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	return i
}
