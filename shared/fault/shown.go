package fault

import (
	"strings"
	"unicode"
)

// longestName bounds how much of a name that a client sent is shown, in characters.
const longestName = 200

// Shown is a name that a client sent, fit for messages and logs: cut when it is long, and without characters that can't be seen.
func Shown(name string) string {
	n := 0
	for i := range name {
		if n++; n > longestName {
			name = name[:i] + "..."
			break
		}
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, name)
}
