package config

import (
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// reader is the state of reading one file or the environment.
type reader struct {
	*findings
	lookup func(string) (string, bool) // environment variables
	used   map[string]bool             // those that the file names
	visits int
}

// Bounds of what a file may hold. Aliases and merge keys can make a small file large, or endless.
const (
	maxDepth  = 100     // of mappings and lists inside each other
	maxVisits = 500_000 // values that are read, an alias counting as what it stands for
)

// node is a YAML value with the path that leads to it. Its methods report what does not fit; then there is no value.
type node struct {
	*yaml.Node
	r       *reader
	path    string
	literal bool // comes from the environment, so that ${...} means nothing
}

func (n node) fail(format string, args ...any) { n.r.failAt(n.Line, n.path, format, args...) }
func (n node) warn(format string, args ...any) { n.r.warnAt(n.Line, n.path, format, args...) }

func (n node) null() bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// child gives the value y below n, at the place of an alias what it stands for.
func (n node) child(y *yaml.Node, name string) node {
	if y.Kind == yaml.AliasNode {
		y = y.Alias
	}
	return node{Node: y, r: n.r, path: join(n.path, name), literal: n.literal}
}

// join puts a name or an index such as [0] behind a path.
func join(path, name string) string {
	if name == "" || strings.ContainsFunc(name, unicode.IsControl) {
		name = strconv.Quote(name)
	}
	switch {
	case path == "":
		return name
	case strings.HasPrefix(name, "["):
		return path + name
	default:
		return path + "." + name
	}
}

// visit counts a value. It is false when there were too many.
func (r *reader) visit() bool {
	r.visits++
	if r.visits == maxVisits {
		r.fail("", "aliases and merge keys make the file hold more than %d values", maxVisits)
	}
	return r.visits < maxVisits
}

// pairs calls fn for each key and value of a mapping: its own in the order of the file, then those of merge keys ("<<") that it lacks.
// It is false for what is no mapping.
func (n node) pairs(fn func(key, value node)) bool {
	if n.Kind != yaml.MappingNode {
		n.fail("must be a mapping (got %s)", n.shape())
		return false
	}
	n.walk(map[string]bool{}, 0, fn)
	return true
}

func (n node) walk(seen map[string]bool, depth int, fn func(key, value node)) {
	var merges []node
	for i := 0; i+1 < len(n.Content) && n.r.visit(); i += 2 {
		key := n.child(n.Content[i], "")
		value := n.child(n.Content[i+1], key.Value)
		switch {
		case key.ShortTag() == "!!merge":
			value.path = n.path
			merges = append(merges, value)
		case !seen[key.Value]:
			seen[key.Value] = true
			fn(key, value)
		}
	}
	for _, m := range merges {
		m.merge(seen, depth+1, fn)
	}
}

// merge adds the value of a merge key: a mapping or a list of mappings.
func (n node) merge(seen map[string]bool, depth int, fn func(key, value node)) {
	switch {
	case depth > maxDepth:
		n.fail("merge keys go deeper than %d", maxDepth)
	case n.Kind == yaml.MappingNode:
		n.walk(seen, depth, fn)
	case n.Kind == yaml.SequenceNode:
		for _, y := range n.Content {
			if !n.r.visit() {
				return
			}
			item := n.child(y, "")
			item.path = n.path
			item.merge(seen, depth+1, fn)
		}
	default:
		n.fail("a merge key takes a mapping or a list of mappings (got %s)", n.shape())
	}
}

// each calls fn for each item of a list.
func (n node) each(fn func(node)) {
	if n.Kind != yaml.SequenceNode {
		n.fail("must be a list (got %s)", n.shape())
		return
	}
	for i, y := range n.Content {
		if !n.r.visit() {
			return
		}
		fn(n.child(y, "["+strconv.Itoa(i)+"]"))
	}
}

// items is each for lists whose items are checked again later, so that their lines matter.
func (n node) items(fn func(node)) {
	n.each(func(item node) {
		n.r.lines[item.path] = item.Line
		fn(item)
	})
}

// shape names the form of the value and shows nothing of it, since it may be a secret.
func (n node) shape() string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.null():
		return "nothing"
	default:
		return "a single value"
	}
}

// shown is the value as the file has it, for fields that never hold secrets.
func (n node) shown() string {
	if n.Kind == yaml.ScalarNode && !n.null() {
		return strconv.Quote(short(n.Value))
	}
	return n.shape()
}

// short cuts text to a length that fits a message.
func short(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "..."
	}
	return s
}
