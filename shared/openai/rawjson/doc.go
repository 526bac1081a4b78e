// Package rawjson reads and edits JSON text without decoding it: it finds members and values by their position, checks that text is JSON
// (RFC 8259, UTF-8, bounded nesting), and replaces single members, so that everything else survives byte for byte: number text, escapes,
// key order, white space, unknown members (R-024..R-030).
package rawjson

import "fmt"

// MaxDepth is the deepest nesting of arrays and objects that is accepted: that of encoding/json, which servers written in Go have, and more
// than other parsers take.
const MaxDepth = 10_000

// Span is a piece of a text, as byte offsets: text[Start:End]. The zero Span means "not there".
type Span struct{ Start, End int }

// IsZero says that the span is "not there".
func (s Span) IsZero() bool { return s.End == 0 }

// Of gives the bytes of the span; nil for the zero Span.
func (s Span) Of(text []byte) []byte {
	if s.End == 0 {
		return nil
	}
	return text[s.Start:s.End]
}

// SyntaxError says where a text stops being acceptable JSON.
type SyntaxError struct {
	Offset int // of the first byte that does not fit, or of the container that is nested too deep
	Reason string
}

// Error gives the reason and the offset.
func (e *SyntaxError) Error() string { return fmt.Sprintf("%s at byte %d", e.Reason, e.Offset) }

// Valid says whether text is one JSON value with nothing but white space around it, in UTF-8, nested at most MaxDepth deep.
func Valid(text []byte) bool {
	s := Scan(text)
	s.Skip()
	return s.End()
}
