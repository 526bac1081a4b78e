package config

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// setting declares one key of a mapping. The declaration is all there is to know about it: the reader of the file, the defaults, the variables of
// a start without a file, `hydrallm check` and the tables of docs/configuration.md are made from it.
type setting struct {
	key       string
	kind      kind
	byDefault string // as the file would have it; "" and null leave the zero value
	doc       string // what it means, in Markdown

	others    []string   // what other programs call it
	steers    bool       // requests go elsewhere without it: a key that may be meant to be it is an error
	required  bool       // the key must be there
	otherwise string     // where the value comes from when the key is absent; for the documentation
	variable  string     // of the environment that gives it in a start without a file
	fromText  func(node) // reads that variable
	isLive    bool       // its value may change while the gateway runs
}

// kind is what a value may be, and where it goes.
type kind struct {
	name    string     // for the documentation
	read    func(node) // sets the value, or reports why not and leaves it as it is
	fields  []setting  // of a mapping, or of each mapping in a list
	list    bool       // fields are those of its items
	expands bool       // ${NAME} stands for an environment variable
	at      any        // pointer to the value, of simple ones
}

// key declares a setting.
func key(name string, k kind, byDefault, doc string) setting {
	return setting{key: name, kind: k, byDefault: byDefault, doc: doc}
}

// not lists what other programs call it, in lower case and without "_", for whoever writes it that way.
func (s setting) not(others ...string) setting { s.others = others; return s }

// steering marks what decides where requests go. A key that may be meant to be it must not be ignored.
func (s setting) steering() setting { s.steers = true; return s }

// must is for a key that has to be there.
func (s setting) must() setting { s.required = true; return s }

// inherits says in the documentation where the value comes from when the key is absent.
func (s setting) inherits(from string) setting { s.otherwise = from; return s }

// env names the variable that gives the value in a start without a file.
func (s setting) env(name string) setting { return s.envAs(name, s.kind) }

// envAs is env for a variable of another form.
func (s setting) envAs(name string, k kind) setting {
	s.variable, s.fromText = name, k.read
	return s
}

// live marks what may change while the gateway runs. The others are read at the start.
func (s setting) live() setting { s.isLive = true; return s }

// mapping is a mapping with known keys.
func mapping(fields ...setting) kind {
	return kind{name: "mapping", fields: fields, read: func(n node) { n.fields(fields) }}
}

// entries is a list of mappings, each of which becomes one of all.
func entries[E interface{ settings() []setting }](all *[]E, begin func(path string) E) kind {
	return kind{name: "list of mappings", list: true, fields: begin("").settings(), read: func(n node) {
		n.items(func(item node) {
			e := begin(item.path)
			fields := e.settings()
			setDefaults(fields)
			if item.fields(fields) {
				*all = append(*all, e)
			}
		})
	}}
}

// setDefaults gives all settings their defaults. They are read like those of a file.
func setDefaults(all []setting) {
	r := &reader{findings: newFindings("")}
	for _, s := range all {
		if !s.kind.list {
			setDefaults(s.kind.fields)
		}
		if s.byDefault != "" && s.byDefault != "null" {
			s.kind.read(node{Node: s.defaultNode(), r: r, path: s.key, literal: true})
		}
	}
	if _, err := r.result(); err != nil {
		panic(fmt.Sprintf("config: a default is not valid: %v", err))
	}
}

func (s setting) defaultNode() *yaml.Node {
	if !strings.HasPrefix(s.byDefault, "{") && !strings.HasPrefix(s.byDefault, "[") {
		return scalar(s.byDefault, 0)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(s.byDefault), &doc); err != nil {
		panic(fmt.Sprintf("config: the default of %s is no YAML: %v", s.key, err))
	}
	return doc.Content[0]
}

// fields reads a mapping with known keys; others are warnings. A value of null is as if the key were absent. It is false for what is no mapping.
func (n node) fields(known []setting) bool {
	ok := n.pairs(func(key, value node) {
		s, ok := find(known, key.Value)
		switch {
		case !ok:
			n.unknown(key, value.path, known)
		case !value.null():
			n.r.lines[value.path] = value.Line
			if s.isLive {
				n.r.sources[value.path] = FromFile
			}
			s.kind.read(value)
		}
	})
	for _, s := range known {
		if path := join(n.path, s.key); ok && s.required && !n.r.given(path) {
			n.r.fail(path, "is missing")
		}
	}
	return ok
}

// unknown reports a key that no setting has.
func (n node) unknown(key node, path string, known []setting) {
	meant, ok := find(known, likely(key.Value, known))
	switch {
	case n.path == "" && key.Value == "model_list":
		n.r.failAt(key.Line, path, "this is a configuration of LiteLLM: hydrallm import turns it into providers, upstreams and models")
	case ok && meant.steers:
		n.r.failAt(key.Line, path, "unknown field: did you mean %s? Ignored, it would send requests elsewhere", meant.key)
	case ok:
		n.r.warnAt(key.Line, path, "unknown field, ignored: did you mean %s?", meant.key)
	default:
		n.r.warnAt(key.Line, path, "unknown field, ignored (known: %s)", strings.Join(slices.Sorted(slices.Values(names(known))), ", "))
	}
}

// likely gives the key that an unknown one is probably meant to be, or "".
func likely(word string, known []setting) string {
	plain := strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(word))
	for _, s := range known {
		if slices.Contains(s.others, plain) || plain == strings.ReplaceAll(s.key, "_", "") {
			return s.key
		}
	}
	return nearest(word, names(known))
}

func find(all []setting, key string) (setting, bool) {
	for _, s := range all {
		if s.key == key {
			return s, true
		}
	}
	return setting{}, false
}

func names(all []setting) []string {
	list := make([]string, len(all))
	for i, s := range all {
		list[i] = s.key
	}
	return list
}
