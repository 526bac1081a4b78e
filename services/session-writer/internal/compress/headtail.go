package compress

import (
	"context"
	"strings"
	"unicode/utf8"
)

// cutMark stands for what was cut out.
const cutMark = "\n[...]\n"

// HeadTail keeps the head and the tail of a text, with a mark between them.
type HeadTail struct{}

// Compress never fails.
func (HeadTail) Compress(_ context.Context, text string, target int) (string, error) {
	if Fits(text, target) {
		return text, nil
	}
	half := max(0, target*charactersPerToken-len(cutMark)) / 2
	head, tail := Prefix(text, half), suffix(text, half)
	return strings.TrimSpace(head) + cutMark + strings.TrimSpace(tail), nil
}

// Prefix gives the first n characters of a text.
func Prefix(text string, n int) string {
	end := 0
	for ; n > 0 && end < len(text); n-- {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	return text[:end]
}

// suffix gives the last n characters.
func suffix(text string, n int) string {
	begin := len(text)
	for ; n > 0 && begin > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(text[:begin])
		begin -= size
	}
	return text[begin:]
}
