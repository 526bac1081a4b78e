package config

import (
	"regexp"
	"strings"
	"unicode"
)

// slips are what a key looks like that was copied with something that does not belong to it, and what to write. The key stays as it is.
var slips = []struct {
	pattern *regexp.Regexp
	hint    string
}{
	{regexp.MustCompile(`^\$\(?[A-Za-z_][A-Za-z0-9_]*\)?$`), `looks like a variable: write "${NAME}"`},
	{regexp.MustCompile(`^%[A-Za-z_][A-Za-z0-9_]*%$`), `looks like a variable: write "${NAME}"`},
	{regexp.MustCompile(`^(os\.environ|env|process\.env)[/.:]`), `looks like a variable in the words of another program: write "${NAME}"`},
	{regexp.MustCompile(`(?i)^(bearer|basic|x-api-key:|authorization:)\s`), "begins like a header, which the gateway makes itself: write the key alone"},
	{regexp.MustCompile(`\s(#|//)`), "holds a comment: put it outside of the quotes, or into a line of its own"},
	{regexp.MustCompile(`^(export\s+)?[A-Z][A-Z0-9_]*(KEY|KEYS|TOKEN)=`), "begins with the name of a variable: write what is behind the ="},
	{regexp.MustCompile(`(?i)^(<.*>|(sk-)?\.\.\.|.*your[-_ ]?(own[-_ ]?)?(api[-_ ]?)?(key|token).*|changeme|x{6,}|\*{4,})$`), "looks like a placeholder"},
	{regexp.MustCompile(`[;,]`), "holds a comma or a semicolon: several keys are a list"},
	{regexp.MustCompile(`\s`), "holds white space: several keys have commas between them"},
	{regexp.MustCompile(`[^\x00-\x7f]`), "holds a character that is not ASCII"},
}

// credential gives a key without what can't belong to it: quotes around it, and characters that nobody sees. No message shows it.
func (n node) credential() (Secret, bool) {
	s, ok := n.secret()
	if !ok || s == "" {
		return "", ok
	}
	seen := strings.TrimSpace(strings.Map(func(c rune) rune {
		if unseen(c) {
			return -1
		}
		return c
	}, s.Reveal()))
	if seen != s.Reveal() {
		n.warn("characters that can't be seen are left out")
	}
	key := unquoted(seen)
	if key != seen {
		n.warn("the quotes around it are left out")
	}
	for _, slip := range slips {
		if slip.pattern.MatchString(key) {
			n.warn("%s", slip.hint)
			break
		}
	}
	return Secret(key), true
}

// unseen says whether a character has no width: byte order marks, zero-width spaces and the like.
func unseen(c rune) bool { return unicode.Is(unicode.Cf, c) }

// unquoted takes quotes of one kind off both ends of a text.
func unquoted(s string) string {
	for _, pair := range []string{`""`, "''", "``", "“”", "‘’", "„“", "«»"} {
		left, right := string([]rune(pair)[0]), string([]rune(pair)[1])
		if inner, found := strings.CutPrefix(s, left); found && strings.HasSuffix(inner, right) {
			inner = strings.TrimSuffix(inner, right)
			if !strings.Contains(inner, left) && !strings.Contains(inner, right) {
				return strings.TrimSpace(inner)
			}
		}
	}
	return s
}

// credential is a key of the gateway or of a provider.
func credential(p *Secret) kind {
	return kind{name: "text", expands: true, at: p, read: func(n node) {
		if s, ok := n.credential(); ok {
			*p = s
		}
	}}
}
