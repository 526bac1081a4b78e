package intent

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// lookedAt is how many bytes of the begin and of the end of a text are looked at: what somebody asks for stands before or behind what he pastes.
const lookedAt = 2 << 10

// bounded gives the first and the last n bytes of a text that is longer than both, without broken characters between them.
func bounded(text string, n int) string {
	if len(text) <= 2*n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "\n" + strings.ToValidUTF8(text[len(text)-n:], "")
}

// fold gives the form in which texts, keywords and patterns are compared: compatible forms of characters are one (NFKC), and all are in lower case.
func fold(text string) string {
	return strings.ToLower(norm.NFKC.String(strings.ToValidUTF8(text, " ")))
}

// sentences calls fn with each sentence of a text, without the space around it, until fn gives false. A line ends a sentence.
func sentences(text string, fn func(string) bool) {
	for text != "" {
		end := sentenceEnd(text)
		if s := strings.TrimSpace(text[:end]); s != "" && !fn(s) {
			return
		}
		text = text[end:]
	}
}

// sentenceEnd gives the place behind the first sentence: a stop counts as one before a space, so that addresses and numbers stay whole.
func sentenceEnd(text string) int {
	for from := 0; ; {
		i := strings.IndexAny(text[from:], ".!?\n")
		if i < 0 {
			return len(text)
		}
		from += i + 1
		if text[from-1] == '\n' || from == len(text) || text[from] == ' ' || text[from] == '\n' || text[from] == '\t' || text[from] == '\r' {
			return from
		}
	}
}

// hasHangul and hasLatin say which languages a text may be in: Korean ones are written in Hangul.
func hasHangul(text string) bool { return strings.ContainsFunc(text, isHangul) }

func isHangul(r rune) bool { return r >= 0x1100 && unicode.Is(unicode.Hangul, r) }

func hasLatin(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' })
}
