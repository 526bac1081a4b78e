package anthropic

import (
	"bytes"
	"slices"
	"strings"

	"hydrallm/shared/openai/rawjson"
)

// member is a member of a JSON object.
type member struct {
	name  string
	value []byte
}

// membersOf gives the members of a JSON object in order; of two with one name, the last.
func membersOf(raw []byte) []member {
	var all []member
	index := map[string]int{}
	for m := range rawjson.Members(raw) {
		name := string(m.Name())
		if i, known := index[name]; known {
			all[i].value = m.Value.Of(raw)
			continue
		}
		index[name] = len(all)
		all = append(all, member{name, m.Value.Of(raw)})
	}
	return all
}

// put adds a member under any name.
func (f fields) put(name string, raw []byte) fields {
	f = append(f, ',')
	if len(f) == 1 {
		f[0] = '{'
	}
	f = append(rawjson.AppendString(f, name), ':')
	return append(f, raw...)
}

// Bounds of what structured output takes; the API's own are narrower.
const (
	maxSchema = 1 << 20
	maxNested = 50
)

// outputSchema brings a schema into the subset that structured output takes, as the provider's own SDKs do: objects are closed, oneOf is said
// as anyOf, and bounds and other checks go into the description, where the model sees them. It is nil for a schema that can't be said so: one
// that is recursive, that refers to another document, or that any object fits.
func outputSchema(schema []byte) []byte {
	if len(schema) > maxSchema {
		return nil
	}
	top := rawjson.Given(schema)
	open := isObjectType(top["type"])
	for _, name := range [...]string{"properties", "$ref", "anyOf", "oneOf", "allOf"} {
		open = open && top[name] == nil
	}
	r := references{definitions: definitionsOf(top), state: map[string]int{}}
	if len(top) == 0 || open || !r.sound(schema, 0) {
		return nil
	}
	return subset(schema)
}

// formats are those of strings that structured output knows.
var formats = []string{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}

// subset rewrites a schema and those inside of it.
func subset(schema []byte) []byte {
	if schema[0] != '{' {
		return []byte("{}") // true: anything will do
	}
	var out fields
	var notes []string
	var description []byte
	closed, alternatives := false, false
	for _, m := range membersOf(schema) {
		v := m.value
		switch m.name {
		case "type":
			closed = closed || isObjectType(v)
			out = out.put(m.name, v)
		case "title", "required", "const", "default", "$ref":
			out = out.put(m.name, v)
		case "description":
			description = v
		case "properties", "$defs", "definitions":
			closed = closed || m.name == "properties"
			out = out.put(m.name, subsets(v))
		case "items":
			if v[0] == '{' {
				out = out.put(m.name, subset(v))
			}
		case "anyOf", "oneOf":
			if !alternatives && v[0] == '[' {
				alternatives = true
				out = out.put("anyOf", subsets(v))
			}
		case "allOf":
			if v[0] == '[' {
				out = out.put(m.name, subsets(v))
			}
		default:
			if allowed(m) {
				out = out.put(m.name, v)
			} else if slices.Contains(checks, m.name) {
				notes = append(notes, m.name+": "+string(compact(v)))
			}
		}
	}
	if closed {
		out = out.put("additionalProperties", []byte("false"))
	}
	if description = described(description, notes); description != nil {
		out = out.put("description", description)
	}
	return out.end()
}

// checks are the members that only narrow what is valid.
var checks = []string{
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern", "format", "minItems",
	"maxItems", "uniqueItems", "minProperties", "maxProperties", "enum",
}

// allowed says whether a check is one of those that structured output takes.
func allowed(m member) bool {
	switch m.name {
	case "format":
		return slices.Contains(formats, rawjson.Text(m.value))
	case "minItems":
		return string(m.value) == "0" || string(m.value) == "1"
	case "enum":
		for e := range rawjson.Elements(m.value) {
			if c := e.Of(m.value)[0]; c == '{' || c == '[' {
				return false
			}
		}
		return true
	}
	return false
}

// maxNote bounds what of a check goes into a description.
const maxNote = 500

// described adds the checks that were left out to a description, a raw string or nil.
func described(description []byte, notes []string) []byte {
	note := strings.Join(notes, ", ")
	switch {
	case note == "" || len(note) > maxNote:
		return description
	case len(inner(description)) == 0:
		return quote("(" + note + ")")
	}
	return quote(string(text(description)) + " (" + note + ")")
}

// subsets rewrites the schemas of an object or an array.
func subsets(raw []byte) []byte {
	if raw[0] != '{' {
		var all [][]byte
		for e := range rawjson.Elements(raw) {
			all = append(all, subset(e.Of(raw)))
		}
		return append(append([]byte{'['}, bytes.Join(all, []byte{','})...), ']')
	}
	var out fields
	for _, m := range membersOf(raw) {
		out = out.put(m.name, subset(m.value))
	}
	return out.end()
}

func isObjectType(raw []byte) bool {
	if len(raw) > 0 && raw[0] == '[' {
		for e := range rawjson.Elements(raw) {
			if isObjectType(e.Of(raw)) {
				return true
			}
		}
	}
	return rawjson.Is(raw, "object")
}

// references follows the references of a schema.
type references struct {
	definitions map[string][]byte
	state       map[string]int // of each definition: under way or done
}

const (
	underWay = iota + 1
	done
)

// sound says that no schema refers to itself, or to something that is no definition, and that they are not nested too deep.
func (r *references) sound(schema []byte, depth int) bool {
	if depth > maxNested {
		return false
	}
	if schema[0] == '[' {
		for e := range rawjson.Elements(schema) {
			if !r.sound(e.Of(schema), depth+1) {
				return false
			}
		}
		return true
	}
	for _, m := range membersOf(schema) {
		sound := true
		switch m.name {
		case "$ref":
			sound = r.follow(rawjson.Text(m.value), depth)
		case "properties", "$defs", "definitions":
			for _, inside := range membersOf(m.value) {
				sound = sound && r.sound(inside.value, depth+1)
			}
		case "items", "anyOf", "oneOf", "allOf":
			sound = r.sound(m.value, depth+1)
		}
		if !sound {
			return false
		}
	}
	return true
}

// follow goes on with the definition that a reference names.
func (r *references) follow(ref string, depth int) bool {
	definition, known := r.definitions[ref]
	if !known || r.state[ref] == underWay {
		return false
	}
	if r.state[ref] == done {
		return true
	}
	r.state[ref] = underWay
	sound := r.sound(definition, depth+1)
	r.state[ref] = done
	return sound
}

// definitionsOf gives the schemas that references inside of a document name.
func definitionsOf(top map[string][]byte) map[string][]byte {
	all := map[string][]byte{}
	for _, group := range [...]string{"$defs", "definitions"} {
		for _, m := range membersOf(top[group]) {
			all["#/"+group+"/"+m.name] = m.value
		}
	}
	return all
}
