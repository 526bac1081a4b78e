package config

import (
	"strconv"

	"go.yaml.in/yaml/v3"
)

// inspect checks what the readers take for granted in every part of the file, also in those that nobody reads: names as keys, each of them
// once, known tags and a bounded depth. It doesn't follow aliases, so that it sees each value once.
func (r *reader) inspect(y *yaml.Node, path string, depth int) {
	if depth > maxDepth {
		r.failAt(y.Line, path, "is nested deeper than %d levels", maxDepth)
		return
	}
	switch y.Kind {
	case yaml.MappingNode:
		r.checkTag(y, path)
		r.inspectMapping(y, path, depth)
	case yaml.SequenceNode:
		r.checkTag(y, path)
		for i, item := range y.Content {
			r.inspect(item, join(path, "["+strconv.Itoa(i)+"]"), depth+1)
		}
	case yaml.ScalarNode:
		r.checkTag(y, path)
	case yaml.DocumentNode, yaml.AliasNode:
	}
}

func (r *reader) inspectMapping(y *yaml.Node, path string, depth int) {
	first := map[string]int{}
	for i := 0; i+1 < len(y.Content); i += 2 {
		key, value := y.Content[i], y.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			r.failAt(key.Line, path, "has a key that is not a name")
			continue
		}
		r.checkTag(key, path)
		at := join(path, key.Value)
		if line, twice := first[key.Value]; twice {
			r.failAt(key.Line, at, "is given twice (first on line %d)", line)
		}
		first[key.Value] = key.Line
		r.inspect(value, at, depth+1)
	}
}

// checkTag refuses the tags of YAML that have no meaning here, such as !!binary.
func (r *reader) checkTag(y *yaml.Node, path string) {
	switch y.ShortTag() {
	case "!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp", "!!merge", "!!map", "!!seq":
	default: // does not show it: it may be a secret without quotes
		r.failAt(y.Line, path, "has a tag that means nothing here (text that begins with ! needs quotes)")
	}
}
