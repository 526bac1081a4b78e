// Package compress shortens texts. Extractive keeps the sentences that say most and needs no model, Sidecar asks a model behind HTTP, and HeadTail only cuts.
//
// All of them take a text and a number of tokens, a token being four characters. Texts of conversations have a speaker in front of what each says,
// see Say.
package compress

import "unicode/utf8"

const (
	charactersPerToken = 4
	passLength         = 500 // characters below which a text is left as it is
)

// Tokens is the estimate for a text: a quarter of its characters, at least 1.
func Tokens(text string) int { return max(1, utf8.RuneCountInString(text)/charactersPerToken) }

// Fits says whether a text is to be left as it is.
func Fits(text string, target int) bool {
	n := utf8.RuneCountInString(text)
	return n < passLength || n <= target*charactersPerToken
}
