package config

import (
	"regexp"
	"strings"

	"golang.org/x/net/http/httpguts"
)

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expanded gives text in which ${NAME} stands for an environment variable, whole or embedded, and ${NAME:-text} for text, which holds no
// variable, when that is unset or empty. Without a text an unset variable is an error that names it (R-185, C-34). A "$" without a brace is itself. What a variable holds is not expanded again.
func (n node) expanded() (string, bool) {
	s, ok := n.text()
	if !ok || n.literal {
		return s, ok
	}
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "${")
		b.WriteString(before)
		if !found {
			return strings.TrimSpace(b.String()), ok
		}
		name, after, closed := strings.Cut(rest, "}")
		name, otherwise, optional := strings.Cut(name, ":-")
		if !closed || !variable.MatchString(name) {
			n.fail("has ${ without the name of a variable and a closing brace") // shows nothing: it may be part of a secret
			return "", false
		}
		if strings.Contains(otherwise, "${") { // its brace ends the outer one, and the rest would become part of the value
			n.fail("has a variable in the text after :-, which is taken as it is")
			return "", false
		}
		value, set := n.r.lookup(name)
		n.r.used[name] = true
		if optional && value == "" {
			value, set = otherwise, true
		}
		if !set {
			n.fail("the environment variable %s is not set", short(name))
			ok = false
		}
		b.WriteString(value)
		s = after
	}
}

// path is the name of a file or a directory.
func path(p *string) kind {
	return kind{name: "path", expands: true, at: p, read: func(n node) {
		if s, ok := n.visible(n.expanded()); ok {
			*p = s
		}
	}}
}

// secret gives text that is not shown, and that an HTTP header can carry.
func (n node) secret() (Secret, bool) {
	if n.null() {
		return "", true
	}
	s, ok := n.expanded()
	if !ok {
		return "", false
	}
	if !httpguts.ValidHeaderFieldValue(s) {
		n.fail("holds a control character, so that no HTTP header can carry it")
		return "", false
	}
	return Secret(s), true
}
