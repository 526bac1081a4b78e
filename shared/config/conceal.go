package config

import (
	"regexp"
	"strings"
)

// credentials are what keys look like: those of vendors by the beginnings that their documentation shows, tokens of JWT, values of the header Authorization,
// passwords in addresses, and letters and digits that are too many for a word.
var credentials = regexp.MustCompile(`(?:\b|_)(?:(?:sk|rk|pk)-[A-Za-z0-9_-]{4,}|(?:nvapi|glpat)-[A-Za-z0-9_-]{6,}|(?:csk|xai|pplx)-[A-Za-z0-9]{16,}|(?:gsk|r8|fw|tgp|gh[opsur]|github_pat)_[A-Za-z0-9_]{6,}|hf_[A-Za-z0-9]{10,}` +
	`|AIza[A-Za-z0-9_-]{10,}|AKIA[A-Z0-9]{8,}|eyJ[A-Za-z0-9_.-]{10,})|(?i:bearer|basic) +[A-Za-z0-9._~+/=-]*[0-9=][A-Za-z0-9._~+/=-]*|://[^/\s:@<]*:[^/\s@<]+@|[A-Za-z0-9]{24,}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`)

// Conceal gives a text, for people, without what looks like a credential in it: what is in the place of a name, or quoted by an error, may be one.
// It leaves as much as Mask does.
func Conceal(text string) string {
	return credentials.ReplaceAllStringFunc(text, func(found string) string {
		switch {
		case strings.HasPrefix(found, "://"):
			return "://...@"
		case !wordless(found):
			return found
		}
		return Mask(found)
	})
}

// LikeCredential says whether a text holds what looks like a credential.
func LikeCredential(text string) bool { return Conceal(text) != text }

// wordless says whether a match is no long word, such as one with a number at its end: letters and digits take turns in a key.
func wordless(found string) bool {
	if strings.ContainsAny(found, "-_ .") || strings.HasPrefix(found, "AIza") || strings.HasPrefix(found, "AKIA") || strings.HasPrefix(found, "eyJ") {
		return true
	}
	turns := 0
	for i := 1; i < len(found); i++ {
		if digit(found[i]) != digit(found[i-1]) {
			turns++
		}
	}
	return turns > 2
}

func digit(c byte) bool { return c >= '0' && c <= '9' }
