package config

import (
	"bytes"
	"regexp"
	"strconv"
	"unicode/utf8"
)

var (
	yamlError  = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)
	yamlParser = regexp.MustCompile(`expected (node content|key|'-' indicator|',' or|<document start>)|undefined tag|duplicate %|incompatible`)
	yamlAnchor = regexp.MustCompile(`unknown anchor '(.*)' referenced`)
)

// syntax reports text that is no YAML, with its line. The library's lines need help: it counts from 0 in the errors of its parser,
// from 1 in those of its scanner, and names none in some.
func (r *reader) syntax(data []byte, err error) {
	line, problem := 0, err.Error()
	if m := yamlError.FindStringSubmatch(problem); m != nil {
		line, _ = strconv.Atoi(m[1]) // none is 0
		problem = m[2]
	}
	switch {
	case line == 0:
		line = lineOf(data, problem)
	case yamlParser.MatchString(problem):
		last := 1 + bytes.Count(bytes.TrimRight(data, "\r\n"), []byte("\n"))
		line = min(line+1, last)
	}
	if yamlAnchor.MatchString(problem) {
		problem = "there is no anchor of that name (text that begins with * needs quotes)" // shows no name: it may be a secret without quotes
	}
	r.failAt(line, "", "broken YAML in line %d: %s", line, problem)
}

// lineOf looks for the line of a problem that comes without one: an anchor, a byte that is no text, or else something in the first line.
func lineOf(data []byte, problem string) int {
	at := 0
	if m := yamlAnchor.FindStringSubmatch(problem); m != nil {
		at = bytes.Index(data, []byte("*"+m[1]))
	} else {
		at = bytes.IndexFunc(data, func(c rune) bool {
			return c == utf8.RuneError || c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == 0x7f
		})
	}
	return 1 + bytes.Count(data[:max(at, 0)], []byte("\n"))
}
