package passage

import (
	"strings"
	"unicode"
)

// words calls yield with each word of a text and how much a match of it counts: words of letters and digits in lower case and without the
// endings of the plural, numbers without separators of thousands. Korean joins particles to words, and no dictionary is at hand: of a Korean
// word the pairs of its syllables count, too. So they do for other scripts without spaces.
func words(text string, yield func(word string, weight float64)) {
	text = strings.ToLower(text)
	begin, kind := 0, none
	for i, r := range text {
		next := kindOf(r)
		if next == kind && kind != none {
			continue
		}
		// 12,000 and 3.14 are one number
		if kind == plain && (r == ',' || r == '.') && i+1 < len(text) && digit(text[i-1]) && digit(text[i+1]) {
			continue
		}
		word(text[begin:i], kind, yield)
		begin, kind = i, next
	}
	word(text[begin:], kind, yield)
}

type kind int

const (
	none   kind = iota // between words
	plain              // letters and digits of scripts with spaces
	hangul             // syllables
	han                // other scripts whose words are not told apart
)

func kindOf(r rune) kind {
	switch {
	case r < 0x80:
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return plain
		}
		return none
	case unicode.Is(unicode.Hangul, r):
		return hangul
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai), r == 'ー':
		return han
	case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r):
		return plain
	}
	return none
}

func digit(b byte) bool { return b >= '0' && b <= '9' }

const (
	wordWeight = 1.0
	pairWeight = 0.6 // a word of n syllables has n-1 pairs
)

func word(text string, k kind, yield func(string, float64)) {
	switch k {
	case none:
		return
	case plain:
		yield(stem(text), wordWeight)
		return
	case hangul:
		yield(text, wordWeight)
	case han:
	}
	first, second := -1, -1 // where the last two characters begin
	for i := range text {
		if first >= 0 {
			yield(text[first:i], pairWeight)
		}
		first, second = second, i
	}
	if first >= 0 {
		yield(text[first:], pairWeight)
	}
}

// stem takes the ending of the plural off an English word, and the commas off a number (Harman's S-stemmer).
func stem(w string) string {
	if digit(w[0]) {
		return strings.ReplaceAll(w, ",", "")
	}
	n := len(w)
	switch {
	case n > 4 && strings.HasSuffix(w, "ies") && !strings.HasSuffix(w, "eies") && !strings.HasSuffix(w, "aies"):
		return w[:n-3] + "y"
	case n > 3 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us") && !strings.HasSuffix(w, "is"):
		w = w[:n-1]
	}
	return w
}
