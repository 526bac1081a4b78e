package anthropic

import (
	"bytes"
	"slices"

	"hydrallm/shared/openai/rawjson"
)

// compositions are the members that the API refuses at the top of a tool's schema.
var compositions = []string{"anyOf", "oneOf", "allOf"}

// flatSchema gives a schema of an object without compositions at its top. What they say of properties is kept as far as one list of them can
// say it: the schema that comes out accepts all that the original accepts, and maybe more.
func flatSchema(schema []byte) []byte {
	top := rawjson.Given(schema)
	if !slices.ContainsFunc(compositions, func(name string) bool { return top[name] != nil }) {
		return schema
	}
	c := composer{definitions: definitionsOf(top), budget: maxSchema}
	s := c.shapeOf(schema)
	var out fields
	for _, m := range membersOf(schema) {
		if m.name != "properties" && m.name != "required" && !slices.Contains(compositions, m.name) {
			out = out.put(m.name, m.value)
		}
	}
	var properties fields
	for _, p := range s.properties {
		properties = properties.put(p.name, p.value)
	}
	out = out.put("properties", properties.end())
	if len(s.required) > 0 {
		var names [][]byte
		for _, name := range s.required {
			names = append(names, quote(name))
		}
		out = out.put("required", array(names))
	}
	return out.end()
}

// shape is what a schema says of the properties of an object.
type shape struct {
	properties []member // name and schema
	required   []string
}

func (s *shape) property(name string) int {
	return slices.IndexFunc(s.properties, func(m member) bool { return m.name == name })
}

// maxProperties bounds the properties that are put together.
const maxProperties = 1000

// composer reads the shapes of schemas.
type composer struct {
	definitions map[string][]byte
	budget      int // bytes that may still be read: compositions lie in each other, and references multiply them
}

// shapeOf reads a schema with its compositions. Of what is known of a property, the schema that holds for all alternatives counts, else that of
// each alternative.
func (c *composer) shapeOf(schema []byte) shape {
	var s shape
	in := rawjson.Given(schema)
	if definition := c.definitions[rawjson.Text(in["$ref"])]; definition != nil && in["properties"] == nil {
		schema, in = definition, rawjson.Given(definition)
	}
	if c.budget -= len(schema); c.budget < 0 {
		return s
	}
	s.properties = membersOf(in["properties"])
	for name := range rawjson.Elements(in["required"]) {
		if len(s.required) < maxProperties {
			s.required = append(s.required, rawjson.Text(name.Of(in["required"])))
		}
	}
	for _, more := range c.shapesOf(in["allOf"]) {
		for _, p := range more.properties {
			if len(s.properties) < maxProperties && s.property(p.name) < 0 {
				s.properties = append(s.properties, p)
			}
		}
		s.require(more.required)
	}
	s.choose(c.shapesOf(in["anyOf"]))
	s.choose(c.shapesOf(in["oneOf"]))
	return s
}

func (c *composer) shapesOf(list []byte) []shape {
	var all []shape
	for e := range rawjson.Elements(list) {
		if c.budget < 0 {
			break
		}
		all = append(all, c.shapeOf(e.Of(list)))
	}
	return all
}

func (s *shape) require(names []string) {
	for _, name := range names {
		if !slices.Contains(s.required, name) && len(s.required) < maxProperties {
			s.required = append(s.required, name)
		}
	}
}

// choose adds what alternatives say.
func (s *shape) choose(alternatives []shape) {
	if len(alternatives) == 0 {
		return
	}
	own := len(s.properties)
	schemas := map[string][][]byte{}
	for _, a := range alternatives {
		for _, p := range a.properties {
			if len(s.properties) >= maxProperties {
				break
			}
			switch i := s.property(p.name); {
			case i >= 0 && i < own:
				continue
			case i < 0:
				s.properties = append(s.properties, p)
			}
			if known := schemas[p.name]; !slices.ContainsFunc(known, func(k []byte) bool { return bytes.Equal(k, p.value) }) {
				schemas[p.name] = append(known, p.value)
			}
		}
	}
	for i := range s.properties[own:] {
		p := &s.properties[own+i]
		if all := schemas[p.name]; len(all) > 1 {
			p.value = fields(nil).put("anyOf", array(all)).end()
		}
	}
	for _, name := range alternatives[0].required {
		if !slices.ContainsFunc(alternatives, func(a shape) bool { return !slices.Contains(a.required, name) }) {
			s.require([]string{name})
		}
	}
}
