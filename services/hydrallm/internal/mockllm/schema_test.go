package mockllm

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

// schemas are what clients send: by hand, and as the usual generators (zod, pydantic, invopop) write them.
var schemas = map[string]string{
	"flat":              `{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"},"ratio":{"type":"number"},"ok":{"type":"boolean"},"none":{"type":"null"}},"required":["name","age","ratio","ok","none"],"additionalProperties":false}`,
	"no properties":     `{"type":"object","properties":{},"additionalProperties":false}`,
	"nested":            `{"type":"object","properties":{"steps":{"type":"array","items":{"type":"object","properties":{"explanation":{"type":"string"},"output":{"type":"string"}},"required":["explanation","output"],"additionalProperties":false}},"final_answer":{"type":"string"}},"required":["steps","final_answer"],"additionalProperties":false}`,
	"nullable":          `{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"anyOf":[{"type":"null"},{"type":"integer"}]},"c":{"oneOf":[{"type":"object","properties":{"kind":{"const":"x"}},"required":["kind"]},{"type":"null"}]}},"required":["a","b","c"]}`,
	"enum and const":    `{"type":"object","properties":{"unit":{"type":"string","enum":["celsius","fahrenheit"]},"kind":{"const":"weather"},"level":{"enum":[3,4]}},"required":["unit","kind","level"]}`,
	"references":        `{"$ref":"#/$defs/Node","$defs":{"Node":{"type":"object","properties":{"value":{"type":"number"},"next":{"anyOf":[{"$ref":"#/$defs/Node"},{"type":"null"}]}},"required":["value","next"],"additionalProperties":false}}}`,
	"itself":            `{"type":"object","properties":{"name":{"type":"string"},"children":{"type":"array","items":{"$ref":"#"}}},"required":["name","children"],"additionalProperties":false}`,
	"many of itself":    `{"type":"object","properties":{"a":{"type":"array","items":{"$ref":"#"}},"b":{"type":"array","items":{"$ref":"#"}},"c":{"type":"array","items":{"$ref":"#"}},"d":{"$ref":"#"}},"required":["a","b","c"]}`,
	"escaped reference": `{"type":"object","properties":{"x":{"$ref":"#/$defs/a~1b%20c"}},"required":["x"],"$defs":{"a/b c":{"type":"integer","minimum":7}}}`,
	"allOf":             `{"allOf":[{"$ref":"#/definitions/A"},{"type":"object","properties":{"b":{"type":"string","maxLength":3}},"required":["b"]}],"definitions":{"A":{"type":"object","properties":{"a":{"type":"integer","exclusiveMinimum":5}},"required":["a"]}}}`,
	"pydantic":          `{"properties":{"color":{"allOf":[{"$ref":"#/$defs/Color"}],"default":"red"},"when":{"format":"date-time","title":"When","type":"string"},"tags":{"default":[],"items":{"type":"string"},"title":"Tags","type":"array"}},"required":["when"],"title":"Thing","type":"object","$defs":{"Color":{"enum":["red","green"],"type":"string"}}}`,
	"formats":           `{"type":"object","properties":{"date":{"type":"string","format":"date"},"time":{"type":"string","format":"time"},"at":{"type":"string","format":"date-time"},"mail":{"type":"string","format":"email"},"id":{"type":"string","format":"uuid"},"link":{"type":"string","format":"uri"},"v4":{"type":"string","format":"ipv4"},"v6":{"type":"string","format":"ipv6"},"host":{"type":"string","format":"hostname"},"long":{"type":"string","format":"duration"}},"required":["date","time","at","mail","id","link","v4","v6","host","long"]}`,
	"patterns":          `{"type":"object","properties":{"plate":{"type":"string","pattern":"^[A-Z]{2}-\\d{3,5}$"},"hex":{"type":"string","pattern":"^#(?:[0-9a-f]{6}|none)$"},"word":{"type":"string","pattern":"^\\w+$","minLength":5},"any":{"type":"string","pattern":"a.b?c*"},"mail":{"type":"string","pattern":"^[^@\\s]+@[^@\\s]+\\.[a-z]{2,}$"}},"required":["plate","hex","word","any","mail"]}`,
	"lengths":           `{"type":"object","properties":{"description":{"type":"string","minLength":20,"maxLength":30},"id":{"type":"string","maxLength":1},"zero":{"type":"string","maxLength":0}},"required":["description","id","zero"]}`,
	"numbers":           `{"type":"object","properties":{"a":{"type":"integer","minimum":10,"maximum":10},"b":{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1},"c":{"type":"integer","exclusiveMaximum":0},"d":{"type":"number","multipleOf":0.05,"minimum":2.03},"e":{"type":"integer","multipleOf":7,"minimum":50},"f":{"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991},"g":{"type":"number","minimum":-3,"maximum":-2.5},"h":{"type":"integer","exclusiveMinimum":3}},"required":["a","b","c","d","e","f","g","h"]}`,
	"lists":             `{"type":"object","properties":{"pair":{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"items":false,"minItems":2},"many":{"type":"array","items":{"type":"string"},"minItems":4,"uniqueItems":true},"numbers":{"type":"array","items":{"type":"integer"},"minItems":3,"uniqueItems":true},"none":{"type":"array","items":{"type":"string"},"maxItems":0},"dates":{"type":"array","items":{"type":"string","format":"date"},"minItems":2,"uniqueItems":true},"words":{"type":"array","items":{"enum":["a","b"]},"minItems":2,"uniqueItems":true}},"required":["pair","many","numbers","none","dates","words"]}`,
	"record":            `{"type":"object","properties":{"scores":{"type":"object","propertyNames":{"type":"string"},"additionalProperties":{"type":"number"}}},"required":["scores"],"additionalProperties":false}`,
	"unlisted":          `{"type":"object","required":["x"],"additionalProperties":{"type":"integer"}}`,
	"without a type":    `{"properties":{"a":{},"b":true,"c":{"items":{"type":"integer"}},"d":{"minimum":4}},"required":["a","b","c","d"],"type":"object"}`,
	"odd names":         `{"type":"object","properties":{"a.b":{"type":"integer"},"c\"d":{"type":"boolean"},"*":{"type":"string"},"type":{"type":"string"},"고양이":{"type":"string"}},"required":["a.b","c\"d","*","type","고양이"],"additionalProperties":false}`,
}

// What the mock answers fits the schema, as a validator sees it.
func TestExamplesFitTheirSchemas(t *testing.T) {
	t.Parallel()
	for name, schema := range schemas {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			validate(t, schema, exampleObject([]byte(schema)))
		})
	}
}

func validate(t *testing.T, schema string, value []byte) {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(schema)))
	require.NoError(t, err)
	require.NoError(t, c.AddResource("schema.json", doc))
	compiled, err := c.Compile("schema.json")
	require.NoError(t, err)
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	require.NoError(t, err, string(value))
	require.NoError(t, compiled.Validate(v), string(value))
}

// A schema that says nothing, or nothing that can be kept to, still gives an object.
func TestExamplesOfNothing(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{"", "{}", "null", "true", `{"type":"object"}`, `{"description":"x"}`, "[]", "{"} {
		require.JSONEq(t, "{}", string(exampleObject([]byte(schema))), schema)
	}
}

// Schemas that never end are cut off.
func FuzzExample(f *testing.F) {
	for _, s := range schemas {
		f.Add(s)
	}
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`)
	f.Add(`{"allOf":[{"$ref":"#"}]}`)
	f.Add(`{"type":"object","properties":{"a":{"type":"string","pattern":"(a|b*){1000}"}}}`)
	f.Add(`{"type":"object","properties":{"a":{"type":"string","pattern":"((((((a*)*)*)*)*)*)*","minLength":90000}}}`)
	f.Fuzz(func(t *testing.T, schema string) {
		require.True(t, json.Valid(exampleObject([]byte(schema))), schema)
	})
}
