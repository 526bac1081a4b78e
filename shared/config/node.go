package config

import (
	"math"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// node is a YAML value with the path that leads to it. Its readers report what does not fit and then leave the target as it is.
type node struct {
	*yaml.Node
	d    *decoder
	path string
}

// decoder is the state of reading one file.
type decoder struct {
	*findings
	lookup func(string) (string, bool) // environment
	merged int                         // mappings merged so far
}

func (n node) fail(format string, args ...any) { n.d.add(true, n.Line, n.path, format, args...) }
func (n node) warn(format string, args ...any) { n.d.add(false, n.Line, n.path, format, args...) }

func (n node) null() bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func (n node) child(y *yaml.Node, name string) node {
	path := name
	switch {
	case n.path == "":
	case strings.HasPrefix(name, "["):
		path = n.path + name
	default:
		path = n.path + "." + name
	}
	for y.Kind == yaml.AliasNode {
		y = y.Alias
	}
	return node{y, n.d, path}
}

// shape names the form of the value. It shows nothing of it, since it may be a secret.
func (n node) shape() string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.null():
		return "empty"
	default:
		return "a single value"
	}
}

// shown is the value itself where it is a scalar, for fields that never hold secrets.
func (n node) shown() string {
	if n.Kind == yaml.ScalarNode && !n.null() {
		return strconv.Quote(short(n.Value))
	}
	return n.shape()
}

func short(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "..."
	}
	return s
}

// members calls fn for each key of a mapping, in the order of the file, with merge keys ("<<") resolved last.
func (n node) members(fn func(key string, value node)) {
	if n.null() {
		return
	}
	if n.Kind != yaml.MappingNode {
		n.fail("must be a mapping, is %s", n.shape())
		return
	}
	seen := map[string]bool{}
	n.visit(seen, fn)
}

// maxMerges bounds what merge keys inside merge keys can make of a small file.
const maxMerges = 10_000

func (n node) visit(seen map[string]bool, fn func(string, node)) {
	own := map[string]bool{}
	var merges []node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.child(n.Content[i], "")
		name := key.Value
		value := n.child(n.Content[i+1], name)
		switch {
		case key.Kind != yaml.ScalarNode:
			n.d.add(true, key.Line, n.path, "has a key that is not a name")
		case key.Tag == "!!merge":
			merges = append(merges, value)
		case own[name]:
			n.d.add(true, key.Line, value.path, "is given twice")
		default:
			own[name] = true
			if !seen[name] {
				seen[name] = true
				fn(name, value)
			}
		}
	}
	for _, m := range merges {
		m.path = n.path
		m.merge(seen, fn)
	}
}

// merge adds the members of the value of a merge key: a mapping or a list of mappings.
func (n node) merge(seen map[string]bool, fn func(string, node)) {
	if n.d.merged++; n.d.merged > maxMerges {
		if n.d.merged == maxMerges+1 {
			n.fail("has too many merge keys")
		}
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		n.visit(seen, fn)
	case yaml.SequenceNode:
		for _, y := range n.Content {
			item := n.child(y, "")
			item.path = n.path
			item.merge(seen, fn)
		}
	default:
		n.fail("merges %s: only mappings can be merged", n.shape())
	}
}

// fields reads a mapping with known keys; others are reported as warnings.
func (n node) fields(known map[string]func(node)) {
	n.members(func(key string, value node) {
		if read, ok := known[key]; ok {
			read(value)
			return
		}
		value.warn("unknown field, ignored")
	})
}

// items calls fn for each item of a list.
func (n node) items(fn func(i int, item node)) {
	if n.null() {
		return
	}
	if n.Kind != yaml.SequenceNode {
		n.fail("must be a list, is %s", n.shape())
		return
	}
	for i, y := range n.Content {
		fn(i, n.child(y, "["+strconv.Itoa(i)+"]"))
	}
}

// text gives a scalar as it is written. YAML words such as off or 1 are fine where text is wanted.
func (n node) text() (string, bool) {
	if n.null() {
		return "", true
	}
	if n.Kind != yaml.ScalarNode {
		n.fail("must be text, is %s", n.shape())
		return "", false
	}
	return n.Value, true
}

func str(p *string) func(node) {
	return func(n node) {
		if s, ok := n.text(); ok {
			*p = s
		}
	}
}

// oneOf reads text that must be one of some words.
func oneOf[T ~string](p *T, words ...T) func(node) {
	return func(n node) {
		s, ok := n.text()
		if !ok {
			return
		}
		for _, w := range words {
			if strings.EqualFold(s, string(w)) {
				*p = w
				return
			}
		}
		list := make([]string, len(words))
		for i, w := range words {
			list[i] = string(w)
		}
		n.fail("must be one of %s, is %q", strings.Join(list, ", "), short(s))
	}
}

// env reads text in which ${NAME} stands for an environment variable.
func env(p *string) func(node) {
	return func(n node) {
		if s, ok := n.text(); ok {
			*p = n.expand(s)
		}
	}
}

func secret(p *Secret) func(node) {
	return func(n node) {
		var s string
		env(&s)(n)
		*p = Secret(strings.TrimSpace(s))
	}
}

// expand replaces ${NAME}. An unset variable is an error that names it; a "$" without a brace is itself.
func (n node) expand(s string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "${")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			n.fail("has ${ without a closing brace")
			return ""
		}
		value, ok := n.d.lookup(name)
		if !ok {
			n.fail("the environment variable %s is not set", short(name))
		}
		b.WriteString(value)
		s = after
	}
}

func boolean(p *bool) func(node) {
	return func(n node) {
		if n.null() {
			return
		}
		if b, ok := n.truth(); ok {
			*p = b
			return
		}
		n.fail("must be true or false, is %s", n.shown())
	}
}

func (n node) truth() (value, ok bool) {
	if n.Kind != yaml.ScalarNode {
		return false, false
	}
	switch strings.ToLower(n.Value) {
	case "true", "yes", "on":
		return true, true
	case "false", "no", "off":
		return false, true
	}
	return false, false
}

// integer reads a whole number within bounds.
func integer(p *int, low, high int) func(node) {
	return func(n node) {
		if n.null() {
			return
		}
		i, err := strconv.Atoi(n.Value)
		switch {
		case n.Kind != yaml.ScalarNode || err != nil:
			n.fail("must be a whole number, is %s", n.shown())
		case i < low && low == 0:
			n.fail("must not be negative, is %d", i)
		case i < low || i > high:
			n.fail("must be from %d to %d, is %d", low, high, i)
		default:
			*p = i
		}
	}
}

// optional reads a whole number that may be absent.
func optional(p **int) func(node) {
	return func(n node) {
		if n.null() {
			return
		}
		i := -1
		integer(&i, 0, math.MaxInt32)(n)
		if i >= 0 {
			*p = &i
		}
	}
}

func fraction(p *float64, low, high float64) func(node) {
	return func(n node) {
		if n.null() {
			return
		}
		f, err := strconv.ParseFloat(n.Value, 64)
		if n.Kind != yaml.ScalarNode || err != nil || math.IsNaN(f) || f < low || f > high {
			n.fail("must be a number from %g to %g, is %s", low, high, n.shown())
			return
		}
		*p = f
	}
}

// duration reads a Go duration that is not negative.
func duration(p *time.Duration) func(node) {
	return func(n node) {
		if n.null() {
			return
		}
		d, err := time.ParseDuration(n.Value)
		switch {
		case n.Kind != yaml.ScalarNode || err != nil && n.Value != "0":
			n.fail("must be a duration such as 30s or 5m, is %s", n.shown())
		case d < 0:
			n.fail("must not be negative, is %s", n.Value)
		default:
			*p = d
		}
	}
}

func stringsOf(p *[]string) func(node) {
	return func(n node) {
		list := []string{}
		n.items(func(_ int, item node) {
			if s, ok := item.text(); ok {
				list = append(list, strings.TrimSpace(s))
			}
		})
		*p = list
	}
}

func stringMap(p *map[string]string) func(node) {
	return func(n node) {
		m := map[string]string{}
		n.members(func(key string, value node) {
			if s, ok := value.text(); ok {
				m[key] = s
			}
		})
		*p = m
	}
}

// positive reads a duration above zero.
func positive(p *time.Duration) func(node) {
	return func(n node) {
		d := *p
		duration(&d)(n)
		if d == 0 {
			n.fail("must be more than zero")
			return
		}
		*p = d
	}
}

// scalar makes a value that comes from the environment.
func scalar(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }
