package config

import (
	"encoding/json"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// words calls fn for each item of a list of text. The list may also be one text: separated by commas or line ends, or a JSON array, so that one
// environment variable can hold it.
func (n node) words(fn func(node)) {
	if n.Kind != yaml.ScalarNode {
		n.each(fn)
		return
	}
	s, ok := n.expanded()
	if !ok || s == "" {
		return
	}
	s = strings.TrimLeftFunc(s, unseen)
	if bare := unquoted(s); bare != s { // as files of variables keep them
		n.warn("the quotes around it are left out")
		s = bare
	}
	var list []string
	switch lines := strings.FieldsFunc(s, lineEnd); {
	case strings.HasPrefix(s, "["):
		if json.Unmarshal([]byte(s), &list) != nil {
			n.fail("begins like a JSON array, but is no array of strings")
			return
		}
	case len(lines) > 1:
		n.warn("line ends separate its entries: put commas between them")
		for _, line := range lines {
			list = append(list, strings.Split(strings.TrimSuffix(strings.TrimSpace(line), ","), ",")...)
		}
	default:
		list = strings.Split(s, ",")
	}
	for i, word := range list {
		item := n.child(scalar(word, n.Line), "["+strconv.Itoa(i)+"]")
		item.literal = true
		fn(item)
	}
}

func lineEnd(c rune) bool { return c == '\n' || c == '\r' }

// list is a list of text.
func list(p *[]string) kind {
	return listOf(p, "list of text", func(n node) (string, bool) { return n.visible(n.expanded()) })
}

// listOf is a list of what read gives. Blanks and repetitions are ignored.
func listOf[T ~string](p *[]T, name string, read func(node) (T, bool)) kind {
	return kind{name: name, expands: true, at: p, read: func(n node) {
		out, seen := []T{}, map[T]bool{}
		n.words(func(item node) {
			v, ok := read(item)
			switch {
			case !ok:
			case v == "":
				item.warn("empty, ignored")
			case seen[v]:
				item.warn("the same again, ignored")
			default:
				seen[v] = true
				out = append(out, v)
			}
		})
		*p = out
	}}
}

// scalar makes a value that is not in a file.
func scalar(s string, line int) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s, Line: line}
}
