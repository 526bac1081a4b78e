package search

import (
	"strings"
	"unicode"
)

// maxQuery is the most characters of a query; engines refuse longer ones.
const maxQuery = 256

// query is what is searched for, and for whom.
type query struct {
	text string
	lang language
}

// language is what engines are told of the language of a query. The zero value leaves it to the engine.
type language struct {
	code   string // ISO 639-1
	region string // ISO 3166-1
}

// newQuery makes a query of a text: one line, at most maxQuery characters, cut between words if there are any.
func newQuery(text string) query {
	words := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == unicode.ReplacementChar })
	text = strings.Join(words, " ")
	if runes := []rune(text); len(runes) > maxQuery {
		text = string(runes[:maxQuery])
		if i := strings.LastIndexByte(text, ' '); i > 0 && runes[maxQuery] != ' ' {
			text = text[:i]
		}
	}
	return query{text: text, lang: languageOf(text)}
}

// languageOf guesses: Hangul is Korean, nothing but Latin letters counts as English, else the engine may find out.
func languageOf(text string) language {
	latin := false
	for _, r := range text {
		switch {
		case unicode.Is(unicode.Hangul, r):
			return language{"ko", "KR"}
		case unicode.Is(unicode.Latin, r):
			latin = true
		case unicode.IsLetter(r):
			return language{}
		}
	}
	if latin {
		return language{"en", "US"}
	}
	return language{}
}
