package mockllm

import (
	"encoding/json"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// deepest is how far a schema that refers to itself is followed where it leaves a choice, deepestOfAll where it does not.
const (
	deepest      = 4
	deepestOfAll = 32
	mostValues   = 10_000 // after which everything counts as deep
)

// exampleObject makes an object that fits a JSON schema, with all its properties; "{}" without a schema that says more.
func exampleObject(schema json.RawMessage) []byte {
	if !gjson.ValidBytes(schema) || len(schema) == 0 {
		return []byte("{}")
	}
	root := gjson.ParseBytes(schema)
	x := &examples{root: root}
	value := x.of(root, place{name: "value"})
	if len(value) == 0 || value[0] != '{' && root.Get("type").Str == "" && !root.Get("enum").Exists() {
		return []byte("{}")
	}
	return value
}

// examples makes values that fit the parts of a schema. Understood are types, enum, const, properties, items, bounds of numbers, texts and
// lists, patterns, formats, references, allOf, and the first possible branch of anyOf and oneOf.
type examples struct {
	root   gjson.Result
	made   int // values
	joined int // parts of allOf
}

// place is where a value stands.
type place struct {
	name    string // of the property, which texts repeat
	variant int    // of several items of one list, so that they differ
	depth   int
}

func (p place) property(name string) place { return place{name: name, depth: p.depth + 1} }

func (p place) item(i int) place { return place{name: p.name, variant: i, depth: p.depth + 1} }

func (x *examples) of(s gjson.Result, p place) []byte {
	if x.made++; x.made > mostValues {
		p.depth = max(p.depth, deepest)
	}
	s = x.resolved(s, p.depth)
	switch {
	case p.depth > deepestOfAll:
		return []byte("null")
	case s.Get("const").Exists():
		return []byte(s.Get("const").Raw)
	case len(s.Get("enum").Array()) > 0:
		all := s.Get("enum").Array()
		return []byte(all[p.variant%len(all)].Raw)
	}
	switch typeOf(s) {
	case "object":
		return x.object(s, p)
	case "array":
		return x.array(s, p)
	case "integer":
		return number(s, p, true)
	case "number":
		return number(s, p, false)
	case "boolean":
		return strconv.AppendBool(nil, p.variant%2 == 0)
	case "null":
		return []byte("null")
	}
	return encode(text(s, p))
}

// typeOf is the type that a schema names first, but for null, or that its members speak of.
func typeOf(s gjson.Result) string {
	types := s.Get("type").Array() // one text is a list of one
	for _, t := range types {
		if t.Str != "null" {
			return t.Str
		}
	}
	switch {
	case len(types) > 0:
		return "null"
	case s.Get("properties").Exists(), s.Get("additionalProperties").Exists():
		return "object"
	case s.Get("items").Exists(), s.Get("prefixItems").Exists():
		return "array"
	case s.Get("minimum").Exists(), s.Get("maximum").Exists(), s.Get("multipleOf").Exists():
		return "number"
	}
	return "string"
}

// resolved follows references, chooses branches, and joins what has to hold together.
func (x *examples) resolved(s gjson.Result, depth int) gjson.Result {
	for range deepestOfAll {
		if ref := s.Get("$ref"); ref.Exists() {
			s = merged(without(s, "$ref"), x.at(ref.Str))
			continue
		}
		if all := s.Get("allOf"); all.Exists() {
			rest := without(s, "allOf")
			for _, part := range all.Array() {
				if x.joined++; x.joined > mostValues {
					return gjson.Result{} // its parts refer to each other
				}
				rest = merged(rest, x.resolved(part, depth))
			}
			s = rest
			continue
		}
		key := "anyOf"
		if !s.Get(key).Exists() {
			key = "oneOf"
		}
		branches := s.Get(key).Array()
		if len(branches) == 0 {
			return s
		}
		s = merged(without(s, key), x.branch(branches, depth))
	}
	return s
}

// branch is the first that is not null. Deep down it is null, or the first without a reference, so that a list of lists of lists ends.
func (x *examples) branch(branches []gjson.Result, depth int) gjson.Result {
	isNull := func(b gjson.Result) bool { return b.Get("type").Str == "null" }
	if depth >= deepest {
		if i := slices.IndexFunc(branches, isNull); i >= 0 {
			return branches[i]
		}
		if i := slices.IndexFunc(branches, func(b gjson.Result) bool { return !strings.Contains(b.Raw, `"$ref"`) }); i >= 0 {
			return branches[i]
		}
	}
	if i := slices.IndexFunc(branches, func(b gjson.Result) bool { return !isNull(b) }); i >= 0 {
		return branches[i]
	}
	return branches[0]
}

// at finds what a reference within the schema points to; nothing for one that leads elsewhere.
func (x *examples) at(ref string) gjson.Result {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return gjson.Result{}
	}
	if plain, err := url.PathUnescape(pointer); err == nil {
		pointer = plain
	}
	found := x.root
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if step != "" {
			found = member(found, strings.NewReplacer("~1", "/", "~0", "~").Replace(step))
		}
	}
	return found
}

// member gives a member of an object, or an item of a list, whatever its name.
func member(v gjson.Result, name string) gjson.Result {
	var found gjson.Result
	i := 0
	v.ForEach(func(key, value gjson.Result) bool {
		if v.IsArray() && strconv.Itoa(i) == name || v.IsObject() && key.Str == name {
			found = value
		}
		i++
		return !found.Exists()
	})
	return found
}

// without is an object without one of its members.
func without(s gjson.Result, name string) gjson.Result {
	return rebuilt(s, func(key string, value gjson.Result) (string, bool) { return value.Raw, key != name })
}

// merged is both objects in one: properties are joined and required lists too, else the first one counts.
func merged(a, b gjson.Result) gjson.Result {
	if !b.IsObject() {
		return a
	}
	joined := rebuilt(a, func(key string, value gjson.Result) (string, bool) {
		other := member(b, key)
		switch {
		case key == "properties" && other.Exists():
			return merged(value, other).Raw, true
		case key == "required" && other.Exists():
			return string(encode(names(value, other))), true
		}
		return value.Raw, true
	})
	raw := strings.TrimSuffix(joined.Raw, "}")
	b.ForEach(func(key, value gjson.Result) bool {
		if !member(a, key.Str).Exists() {
			if raw != "{" {
				raw += ","
			}
			raw += key.Raw + ":" + value.Raw
		}
		return true
	})
	return gjson.Parse(raw + "}")
}

// names gives the names of some lists, each once.
func names(lists ...gjson.Result) []string {
	var all []string
	for _, list := range lists {
		for _, name := range list.Array() {
			if !slices.Contains(all, name.Str) {
				all = append(all, name.Str)
			}
		}
	}
	return all
}

// rebuilt makes an object of the members that keep says to, with the values that it gives.
func rebuilt(s gjson.Result, keep func(key string, value gjson.Result) (string, bool)) gjson.Result {
	raw := "{"
	s.ForEach(func(key, value gjson.Result) bool {
		if text, ok := keep(key.Str, value); ok && s.IsObject() {
			if raw != "{" {
				raw += ","
			}
			raw += key.Raw + ":" + text
		}
		return true
	})
	return gjson.Parse(raw + "}")
}

// object has the properties of the schema in its order. Deep down those that are not required are left out.
func (x *examples) object(s gjson.Result, p place) []byte {
	required := names(s.Get("required"))
	out := []byte{'{'}
	add := func(name string, schema gjson.Result) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, encode(name)...)
		out = append(append(out, ':'), x.of(schema, p.property(name))...)
	}
	properties := s.Get("properties")
	properties.ForEach(func(key, schema gjson.Result) bool {
		if p.depth < deepest || slices.Contains(required, key.Str) {
			add(key.Str, schema)
		}
		return true
	})
	others := s.Get("additionalProperties")
	for _, name := range required {
		if !member(properties, name).Exists() {
			add(name, others)
		}
	}
	if len(out) == 1 && others.IsObject() && p.depth < deepest {
		add("key", others)
	}
	return append(out, '}')
}

// array has one item, or as many as there must be.
func (x *examples) array(s gjson.Result, p place) []byte {
	fixed := s.Get("prefixItems").Array()
	n := max(int(s.Get("minItems").Int()), len(fixed))
	if n == 0 && p.depth < deepest {
		n = 1
	}
	if most := s.Get("maxItems"); most.Exists() {
		n = min(n, int(most.Int()))
	}
	out := []byte{'['}
	for i := range min(n, 1000) {
		if i > 0 {
			out = append(out, ',')
		}
		schema := s.Get("items")
		if i < len(fixed) {
			schema = fixed[i]
		}
		out = append(out, x.of(schema, p.item(i))...)
	}
	return append(out, ']')
}

// number is 1, or what the bounds leave.
func number(s gjson.Result, p place, whole bool) []byte {
	step := s.Get("multipleOf").Num
	if step <= 0 {
		step = 1
	}
	low, high := math.Inf(-1), math.Inf(1)
	if v := s.Get("minimum"); v.Exists() {
		low = v.Num
	}
	if v := s.Get("exclusiveMinimum"); v.Type == gjson.Number { // in old schemas it is a boolean
		low = max(low, math.Nextafter(v.Num, math.Inf(1)))
	}
	if v := s.Get("maximum"); v.Exists() {
		high = v.Num
	}
	if v := s.Get("exclusiveMaximum"); v.Type == gjson.Number {
		high = min(high, math.Nextafter(v.Num, math.Inf(-1)))
	}
	x := 1 + float64(p.variant)
	if whole || s.Get("multipleOf").Exists() {
		x = math.Ceil(x/step) * step
	}
	if x < low {
		x = math.Ceil(low/step)*step + float64(p.variant)*step
	}
	if x > high {
		x = math.Floor(high/step) * step
	}
	if !whole && !s.Get("multipleOf").Exists() && (x < low || x > high) {
		x = low + (high-low)/2 // no whole number is between the bounds
	}
	if step < 1 {
		x = math.Round(x*1e9) / 1e9 // products of fractions are not exact
	}
	return strconv.AppendFloat(nil, x, 'f', -1, 64)
}
