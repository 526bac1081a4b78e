package anthropic_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/dialect/anthropic"
	"hydrallm/shared/openai/rawjson"
)

// schemas come into the subset that structured output takes, in the client's order (REQ-04); what does not fit is left out.
func TestOutputSchema(t *testing.T) {
	t.Parallel()
	const closed = `,"additionalProperties":false`
	cases := []struct{ name, in, want string }{
		{"in order", `{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer"}},"required":["z"],"additionalProperties":false}`, `{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer"}},"required":["z"]` + closed + `}`},
		{
			"bounds go into the description", `{"type":"object","properties":{"n":{"type":"integer","minimum":0,"maximum":5},"s":{"type":"string","description":"A \"name\".","minLength":3,"pattern":"^a"},"l":{"type":"array","items":{"type":"number","multipleOf":0.5},"minItems":2,"maxItems":4,"uniqueItems":true}}}`,
			`{"type":"object","properties":{"n":{"type":"integer","description":"(minimum: 0, maximum: 5)"},"s":{"type":"string","description":"A \"name\". (minLength: 3, pattern: \"^a\")"},"l":{"type":"array","items":{"type":"number","description":"(multipleOf: 0.5)"},"description":"(minItems: 2, maxItems: 4, uniqueItems: true)"}}` + closed + `}`,
		},
		{
			"objects everywhere are closed", `{"type":"object","properties":{"a":{"type":["object","null"],"properties":{"b":{"properties":{"c":{}}}},"additionalProperties":{"type":"string"}},"l":{"type":"array","items":{"type":"object"}}},"$defs":{"d":{"type":"object","properties":{}}},"definitions":{"e":{"type":"object"}}}`,
			`{"type":"object","properties":{"a":{"type":["object","null"],"properties":{"b":{"properties":{"c":{}}` + closed + `}}` + closed + `},"l":{"type":"array","items":{"type":"object"` + closed + `}}},"$defs":{"d":{"type":"object","properties":{}` + closed + `}},"definitions":{"e":{"type":"object"` + closed + `}}` + closed + `}`,
		},
		{
			"what is known stays", `{"type":"object","title":"T","properties":{"f":{"type":"string","format":"date-time","default":null},"l":{"type":"array","items":{"$ref":"#/$defs/d"},"minItems":1},"e":{"enum":["a",1,null]},"c":{"const":null}},"$defs":{"d":{"type":"integer"}}}`,
			`{"type":"object","title":"T","properties":{"f":{"type":"string","format":"date-time","default":null},"l":{"type":"array","items":{"$ref":"#/$defs/d"},"minItems":1},"e":{"enum":["a",1,null]},"c":{"const":null}},"$defs":{"d":{"type":"integer"}}` + closed + `}`,
		},
		{
			"what is not known goes", `{"type":"object","$schema":"s","$id":"i","properties":{"f":{"type":"string","format":"iri","examples":["x"]},"e":{"enum":[{"a":1}]},"t":{"type":"array","items":[{}],"prefixItems":[{}]},"b":true,"p":{"type":"object","patternProperties":{"^a":{}},"not":{},"if":{},"minProperties":1}}}`,
			`{"type":"object","properties":{"f":{"type":"string","description":"(format: \"iri\")"},"e":{"description":"(enum: [{\"a\":1}])"},"t":{"type":"array"},"b":{},"p":{"type":"object"` + closed + `,"description":"(minProperties: 1)"}}` + closed + `}`,
		},
		{"alternatives", `{"oneOf":[{"type":"object","properties":{"a":{"allOf":[{"minimum":1}]}}},{"type":"null"}]}`, `{"anyOf":[{"type":"object","properties":{"a":{"allOf":[{"description":"(minimum: 1)"}]}}` + closed + `},{"type":"null"}]}`},
		{"one of two lists of alternatives", `{"anyOf":[{"type":"string"}],"oneOf":[{"type":"null"}]}`, `{"anyOf":[{"type":"string"}]}`},
		{"a definition that is used twice", `{"type":"object","properties":{"a":{"$ref":"#/$defs/x"},"b":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"string"}}}`, `{"type":"object","properties":{"a":{"$ref":"#/$defs/x"},"b":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"string"}}` + closed + `}`},
		{"names that look like words of schemas", `{"type":"object","properties":{"minimum":{"type":"string"},"\u00e9\"":{"type":"string"}}}`, `{"type":"object","properties":{"minimum":{"type":"string"},"é\"":{"type":"string"}}` + closed + `}`},
		{"a recursive schema", `{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"object","properties":{"next":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]}}}}}`, ``},
		{"a schema that is its own part", `{"type":"object","properties":{"next":{"$ref":"#"}}}`, ``},
		{"a schema elsewhere", `{"type":"object","properties":{"a":{"$ref":"https://h/s.json"}}}`, ``},
		{"a definition that is missing", `{"type":"object","properties":{"a":{"$ref":"#/$defs/gone"}}}`, ``},
		{"any object", `{"type":"object","additionalProperties":true}`, ``},
		{"nested too deep", `{"type":"object","properties":{"a":` + strings.Repeat(`{"items":`, 60) + `{}` + strings.Repeat(`}`, 60) + `}}`, ``},
		{"far too large", `{"type":"object","properties":{"a":{"description":"` + strings.Repeat("x", 1<<20) + `"}}}`, ``},
		{"no schema", `{}`, ``},
		{"too much to say", `{"type":"object","properties":{"s":{"pattern":"` + strings.Repeat("x", 600) + `"}}}`, `{"type":"object","properties":{"s":{}}` + closed + `}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			body := request(t, asked("claude-sonnet-4-5", `"response_format":{"type":"json_schema","json_schema":{"schema":`+c.in+`}}`), false)
			require.Equal(t, c.want, gjson.Get(body, "output_config.format.schema").Raw)
		})
	}
}

// the schema of a tool has no composition at its top, and what the compositions say of properties is not lost.
func TestToolSchema(t *testing.T) {
	t.Parallel()
	const path, url = `"path":{"type":"string"}`, `"url":{"type":"string"}`
	cases := []struct{ name, in, want string }{
		{"conditions only", `{"type":"object","properties":{` + path + `,` + url + `},"anyOf":[{"required":["path"]},{"required":["url"]}]}`, `{"type":"object","properties":{` + path + `,` + url + `}}`},
		{
			"alternatives", `{"oneOf":[{"type":"object","properties":{"kind":{"const":"a"},` + path + `},"required":["kind","path"]},{"type":"object","properties":{"kind":{"const":"b"},` + url + `},"required":["url","kind"]}]}`,
			`{"properties":{"kind":{"anyOf":[{"const":"a"},{"const":"b"}]},` + path + `,` + url + `},"required":["kind"],"type":"object"}`,
		},
		{"alternatives that agree", `{"anyOf":[{"properties":{` + path + `},"required":["path"]},{"properties":{` + path + `}}]}`, `{"properties":{` + path + `},"type":"object"}`},
		{"what holds for all alternatives counts", `{"type":"object","properties":{"kind":{"type":"string"}},"anyOf":[{"properties":{"kind":{"const":"a"}}}]}`, `{"type":"object","properties":{"kind":{"type":"string"}}}`},
		{
			"all of them", `{"type":"object","description":"d","required":["a"],"allOf":[{"properties":{` + path + `},"required":["path"]},{"allOf":[{"properties":{` + path + `,` + url + `},"required":["a"]}]}],"additionalProperties":false}`,
			`{"type":"object","description":"d","additionalProperties":false,"properties":{` + path + `,` + url + `},"required":["a","path"]}`,
		},
		{
			"through references", `{"$defs":{"P":{"properties":{` + path + `},"required":["path"]},"loop":{"allOf":[{"$ref":"#/$defs/loop"},{"$ref":"#/$defs/loop"}]}},"allOf":[{"$ref":"#/$defs/P"},{"$ref":"#/$defs/gone"},{"$ref":"#/$defs/loop"}]}`,
			`{"$defs":{"P":{"properties":{` + path + `},"required":["path"]},"loop":{"allOf":[{"$ref":"#/$defs/loop"},{"$ref":"#/$defs/loop"}]}},"properties":{` + path + `},"required":["path"],"type":"object"}`,
		},
		{"nothing of use", `{"anyOf":[]}`, `{"properties":{},"type":"object"}`},
		{"further down they may be", `{"type":"object","properties":{"p":{"anyOf":[{"type":"string"},{"type":"integer"}]}}}`, `{"type":"object","properties":{"p":{"anyOf":[{"type":"string"},{"type":"integer"}]}}}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			body := request(t, asked("claude-sonnet-4-5", `"tools":[{"type":"function","function":{"name":"f","parameters":`+c.in+`}},{"name":"g","input_schema":`+c.in+`}]`), false)
			require.Equal(t, c.want, gjson.Get(body, "tools.0.input_schema").Raw)
			native := gjson.Get(body, "tools.1.input_schema")
			require.False(t, native.Get("anyOf").Exists() || native.Get("oneOf").Exists() || native.Get("allOf").Exists())
		})
	}
}

// Whatever the schemas, what goes out is JSON that keeps the rules.
func FuzzSchemas(f *testing.F) {
	for _, schema := range []string{
		`{"type":"object","properties":{"a":{"minimum":1}},"anyOf":[{"required":["a"]}]}`, `{"$ref":"#/$defs/a","$defs":{"a":{"oneOf":[{"$ref":"#/definitions/b"}]}},"definitions":{"b":{}}}`,
		`{"allOf":[true,[],7,{"properties":7,"required":{}}],"items":[],"enum":{},"description":7,"$ref":7,"type":7}`, `[{}]`, `7`,
	} {
		f.Add([]byte(schema))
	}
	f.Fuzz(func(t *testing.T, schema []byte) {
		if !rawjson.Valid(schema) {
			return
		}
		in := asked("claude-sonnet-4-5", `"tools":[{"type":"function","function":{"name":"f","parameters":`+string(schema)+`}}],"response_format":{"type":"json_schema","json_schema":{"schema":`+string(schema)+`}}`)
		got, err := anthropic.Translator{}.Request([]byte(in), false)
		if err != nil {
			return // nested too deep inside of the request
		}
		require.True(t, rawjson.Valid(got.Body), "%s", got.Body)
		top := gjson.GetBytes(got.Body, "tools.0.input_schema")
		require.Equal(t, "object", top.Get("type").Str)
		require.False(t, top.Get("anyOf").Exists() || top.Get("oneOf").Exists() || top.Get("allOf").Exists(), "%s", top.Raw)
		requireSubset(t, gjson.GetBytes(got.Body, "output_config.format.schema"))
	})
}

// requireSubset checks a schema of structured output and those inside of it.
func requireSubset(t *testing.T, schema gjson.Result) {
	t.Helper()
	schema.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "properties", "$defs", "definitions":
			value.ForEach(func(_, inside gjson.Result) bool {
				requireSubset(t, inside)
				return true
			})
		case "anyOf", "allOf":
			for _, inside := range value.Array() {
				requireSubset(t, inside)
			}
		case "items":
			requireSubset(t, value)
		default:
			require.Contains(t, []string{"type", "title", "description", "required", "const", "default", "$ref", "enum", "format", "minItems", "additionalProperties"}, key.Str)
		}
		return true
	})
	if schema.Get("type").Str == "object" {
		require.Equal(t, "false", schema.Get("additionalProperties").Raw, "%s", schema.Raw)
	}
}
