package config

import (
	"encoding/json"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// words calls fn for each item of a list of text. The list may also be one text: separated by commas, or a JSON array, so that one
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
	list := strings.Split(s, ",")
	if strings.HasPrefix(s, "[") {
		list = nil
		if json.Unmarshal([]byte(s), &list) != nil {
			n.fail("begins like a JSON array, but is no array of strings")
			return
		}
	}
	for i, word := range list {
		item := n.child(scalar(word, n.Line), "["+strconv.Itoa(i)+"]")
		item.literal = true
		fn(item)
	}
}

// list reads a list of text. Blanks and repetitions are ignored.
func list(p *[]string) func(node) {
	return func(n node) {
		out, seen := []string{}, map[string]bool{}
		n.words(func(item node) {
			s, ok := item.expanded()
			switch {
			case !ok:
			case s == "":
				item.warn("empty, ignored")
			case seen[s]:
				item.warn("%s again, ignored", item.shown())
			default:
				seen[s] = true
				out = append(out, s)
			}
		})
		*p = out
	}
}

// scalar makes a value that is not in a file.
func scalar(s string, line int) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s, Line: line}
}
