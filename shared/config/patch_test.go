package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/config"
)

// a patch keeps the order, the digits and the nulls of the file.
func TestPatch(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ yaml, want string }{
		"order":                   {"{z: 1, a: 2, m: {y: 1, b: 2}}", `{"z":1,"a":2,"m":{"y":1,"b":2}}`},
		"large numbers":           {"{a: 9223372036854775807, b: 18446744073709551616, c: -9223372036854775808}", `{"a":9223372036854775807,"b":18446744073709551616,"c":-9223372036854775808}`},
		"digits":                  {"{a: 1.0, b: 1e2, c: 0.10, d: -0, e: 1000000, f: 3.141592653589793238}", `{"a":1.0,"b":1e2,"c":0.10,"d":-0,"e":1000000,"f":3.141592653589793238}`},
		"other notations":         {"{a: 0x1f, b: 1_000, c: +1, d: .5, e: 1., f: 0o17, g: 0b101, h: 0xFFFFFFFFFFFFFFFF}", `{"a":31,"b":1000,"c":1,"d":0.5,"e":1,"f":15,"g":5,"h":18446744073709551615}`},
		"null stays":              {"{a: null, b: ~, c: }", `{"a":null,"b":null,"c":null}`},
		"booleans":                {"{a: true, b: False}", `{"a":true,"b":false}`},
		"words of old YAML":       {"{a: off, b: yes, yes: n}", `{"a":"off","b":"yes","yes":"n"}`},
		"quoted is text":          {`{a: "1", b: 'true', c: "null", "2": x}`, `{"a":"1","b":"true","c":"null","2":"x"}`},
		"dates are text":          {"{a: 2024-01-02}", `{"a":"2024-01-02"}`},
		"characters":              {`{a: "<b>&\"\\ \n é 한글 😀"}`, `{"a":"<b>&\"\\ \n é 한글 😀"}`},
		"lists":                   {"{a: [], b: [1, [2, {c: 3}], null]}", `{"a":[],"b":[1,[2,{"c":3}],null]}`},
		"nothing is substituted":  {`{a: "${HOME}", "${X}": 1}`, `{"a":"${HOME}","${X}":1}`},
		"stream goes":             {"{a: 1, stream: true, b: 2}", `{"a":1,"b":2}`},
		"stream further down":     {"{a: {stream: true}, stream_options: {include_usage: true}}", `{"a":{"stream":true},"stream_options":{"include_usage":true}}`},
		"model and messages stay": {"{model: x, messages: []}", `{"model":"x","messages":[]}`}, // C-14
		"aliases":                 {"{a: &a {b: 1}, c: *a, d: {<<: *a, e: 2}}", `{"a":{"b":1},"c":{"b":1},"d":{"e":2,"b":1}}`},
		"explicit tags":           {"{a: !!str 5, b: !!float 5}", `{"a":"5","b":5}`},
		"empty":                   {"{}", ""},
		"only stream":             {"{stream: true}", ""},
		"null":                    {"~", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := sound(t, "providers: [{id: groq, patch: "+tc.yaml+"}]")
			require.Equal(t, tc.want, string(c.Providers[0].Patch))
			require.Equal(t, tc.want == "", c.Providers[0].Patch == nil)
		})
	}
}

func TestPatchErrors(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ yaml, want string }{
		"number as a key":  {"{a: {1: x}}", `config.yaml:1: providers[0].patch.a.1: "1" is not a text: put the key in quotes`},
		"boolean as a key": {"{true: x}", `providers[0].patch.true: "true" is not a text: put the key in quotes`},
		"null as a key":    {"{~: x}", "is not a text: put the key in quotes"},
		"list as a key":    {"{[a]: x}", "providers[0].patch: has a key that is not a name"},
		"infinity":         {"{a: [.inf]}", `providers[0].patch.a[0]: JSON has no number such as ".inf"`},
		"not a number":     {"{a: .NaN}", `providers[0].patch.a: JSON has no number such as ".NaN"`},
		"tag that lies":    {"{a: !!int x}", `providers[0].patch.a: JSON has no number such as "x"`},
		"boolean that is":  {"{a: !!bool x}", `providers[0].patch.a: must be true or false (got "x")`},
		"binary":           {"{a: !!binary aGk=}", "providers[0].patch.a: has a tag that means nothing here"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := parse(nil, "providers: [{id: groq, patch: "+tc.yaml+"}]")
			require.ErrorContains(t, err, tc.want)
		})
	}
}

// the layers of the worked example, each where its consumer finds it.
func TestPatchLayers(t *testing.T) {
	t.Parallel()
	c := sound(t, `
providers: [{id: routerai, url: "https://routerai.ru/api/v1", key: k, patch: {provider: {allow_fallbacks: false}}}]
upstreams: [{id: routerai-gpt4o, provider: routerai, model: gpt-4o, patch: {provider: {ignore: ["deepseek"]}}}]
models: [{name: my-gpt, upstreams: [routerai-gpt4o], patch: {reasoning: {enabled: false}}}]
`)
	var p config.Provider
	u, _ := c.Upstream("routerai-gpt4o")
	p, _ = c.Provider(u.Provider)
	m, _ := c.Model("my-gpt")
	require.Equal(t, `{"provider":{"allow_fallbacks":false}}`, string(p.Patch))
	require.Equal(t, `{"provider":{"ignore":["deepseek"]}}`, string(u.Patch))
	require.Equal(t, `{"reasoning":{"enabled":false}}`, string(m.Patch))
}

// defaults have the form of patches, at each of the three places.
func TestDefaultsOfRequests(t *testing.T) {
	t.Parallel()
	c := sound(t, `
providers: [{id: p, url: "http://h", key: k, defaults: {temperature: 1.0, provider: {sort: price}}}]
upstreams: [{id: u, provider: p, model: m, defaults: {max_tokens: 100}}]
models: [{name: m, upstreams: [u], defaults: {}, patch: {top_p: 0.5}}]
`)
	require.Equal(t, `{"temperature":1.0,"provider":{"sort":"price"}}`, string(c.Providers[0].Defaults))
	require.Equal(t, `{"max_tokens":100}`, string(c.Upstreams[0].Defaults))
	require.Nil(t, c.Models[0].Defaults)
}
