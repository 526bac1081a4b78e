package movein

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Bounds of a source. Aliases and merge keys can make a small file large, or endless.
const (
	maxYAML   = 1 << 20 // bytes, as of our own
	maxJSON   = 8 << 20 // bytes: exports of keys are large
	maxDepth  = 60      // of mappings and lists inside each other
	maxValues = 200_000 // an alias counting as all that it stands for
)

// parser makes the tree of one file.
type parser struct {
	file   string
	values int
	first  map[*yaml.Node]*value // where each node was met first; aliases come later
}

// parse reads YAML, or JSON. Errors name the line and show nothing of the source.
func parse(file string, data []byte) (*value, error) {
	p := &parser{file: file, first: map[*yaml.Node]*value{}}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	switch {
	case len(data) > maxJSON:
		return nil, fmt.Errorf("%s is larger than %d bytes", file, maxJSON)
	case !utf8.Valid(data):
		return nil, p.broken(1+bytes.Count(data[:invalidAt(data)], []byte("\n")), "a byte that is not UTF-8")
	}
	if begin := bytes.TrimLeft(data, " \t\r\n"); len(begin) > 0 && (begin[0] == '{' || begin[0] == '[') {
		v, err := p.json(data)
		if err == nil || !errors.Is(err, errNoJSON) {
			return v, err
		}
		if v, yerr := p.yaml(data); yerr == nil { // YAML may begin so too
			return v, nil
		}
		return nil, err
	}
	return p.yaml(data)
}

func invalidAt(data []byte) int {
	at := 0
	for at < len(data) {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return at
}

func (p *parser) broken(line int, problem string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", p.file, line, fmt.Sprintf(problem, args...))
}

var yamlProblem = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

func (p *parser) yaml(data []byte) (*value, error) {
	if len(data) > maxYAML {
		return nil, fmt.Errorf("%s is larger than %d bytes of YAML", p.file, maxYAML)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF), err == nil && len(doc.Content) == 0:
		return nil, fmt.Errorf("%s holds nothing", p.file)
	case err != nil:
		return nil, p.syntax(err)
	}
	if err := dec.Decode(&second); err == nil {
		return nil, p.broken(second.Line, "holds more than one YAML document")
	} else if !errors.Is(err, io.EOF) {
		return nil, p.syntax(err)
	}
	return p.node(doc.Content[0], "", 1)
}

// syntax is the library's error without what it may quote.
func (p *parser) syntax(err error) error {
	line, problem := 1, "is no YAML"
	if m := yamlProblem.FindStringSubmatch(err.Error()); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			line = n
			if strings.Contains(m[2], "did not find expected") || strings.Contains(m[2], "undefined tag") { // its parser counts from 0, its scanner from 1
				line++
			}
		}
		if problem = "is no YAML: " + m[2]; strings.Contains(problem, "anchor") {
			problem = "has an alias without an anchor"
		}
	}
	return p.broken(line, "%s", problem)
}

// add counts a value and makes it.
func (p *parser) add(s shape, scalar, path string, line, depth int) (*value, error) {
	p.values++
	switch {
	case p.values > maxValues:
		return nil, fmt.Errorf("%s holds more than %d values, counting what aliases stand for", p.file, maxValues)
	case depth > maxDepth:
		return nil, p.broken(line, "is nested deeper than %d levels", maxDepth)
	}
	return &value{shape: s, scalar: scalar, path: path, file: p.file, line: line}, nil
}

// node makes the value of a YAML node, and of all below it.
func (p *parser) node(n *yaml.Node, path string, depth int) (*value, error) {
	line, origin := n.Line, n
	if n.Kind == yaml.AliasNode {
		origin = n.Alias
	}
	v, err := p.add(shapes[origin.ShortTag()], origin.Value, path, line, depth)
	if err != nil {
		return nil, err
	}
	if first := p.first[origin]; first != nil {
		first.copies = append(first.copies, v)
	} else {
		p.first[origin] = v
	}
	switch origin.Kind {
	case yaml.MappingNode:
		v.shape = mapping
		v.fields = map[string]*value{}
		err = p.members(v, origin, depth)
	case yaml.SequenceNode:
		v.shape = list
		for i, item := range origin.Content {
			var child *value
			if child, err = p.node(item, index(path, i), depth+1); err != nil {
				break
			}
			v.items = append(v.items, child)
		}
	case yaml.ScalarNode:
		if _, known := shapes[origin.ShortTag()]; !known {
			err = p.broken(line, "has a tag that means nothing here (text that begins with ! needs quotes)")
		}
	case yaml.DocumentNode, yaml.AliasNode:
	}
	return v, err
}

var shapes = map[string]shape{
	"!!str": text, "!!int": number, "!!float": number, "!!bool": boolean, "!!null": nothing, "!!timestamp": text, "!!merge": text, "!!map": mapping, "!!seq": list,
}

// members adds the members of a mapping: its own, then those of merge keys that it lacks.
func (p *parser) members(v *value, n *yaml.Node, depth int) error {
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, member := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		switch {
		case key.ShortTag() == "!!merge":
			merged = append(merged, member)
			continue
		case key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str":
			return p.broken(n.Content[i].Line, "has a key that is not text: put it in quotes")
		case v.fields[key.Value] != nil:
			return p.broken(key.Line, "gives %s twice (first on line %d)", under(v.path, key.Value), v.fields[key.Value].line)
		}
		child, err := p.node(member, under(v.path, key.Value), depth+1)
		if err != nil {
			return err
		}
		v.put(key.Value, child)
	}
	for _, m := range merged {
		if err := p.merge(v, m, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (v *value) put(key string, child *value) {
	v.keys = append(v.keys, key)
	v.fields[key] = child
}

// merge adds what a merge key ("<<") leads to: a mapping, or a list of them.
func (p *parser) merge(v *value, n *yaml.Node, depth int) error {
	origin := n
	if n.Kind == yaml.AliasNode {
		origin = n.Alias
	}
	if origin.Kind == yaml.SequenceNode {
		for _, item := range origin.Content {
			if depth > maxDepth {
				return p.broken(n.Line, "is nested deeper than %d levels", maxDepth)
			}
			if err := p.merge(v, item, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	if origin.Kind != yaml.MappingNode {
		return p.broken(n.Line, "has a merge key that leads to no mapping")
	}
	m, err := p.node(n, v.path, depth)
	if err != nil {
		return err
	}
	for _, k := range m.keys {
		if v.fields[k] == nil {
			v.put(k, m.fields[k])
		} else {
			m.fields[k].take() // it means nothing here
		}
	}
	return nil
}
