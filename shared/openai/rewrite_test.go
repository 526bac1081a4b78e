package openai

import (
	"bytes"
	"encoding/json"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
)

func compile(tb testing.TB, layers ...string) *Patch {
	tb.Helper()
	raw := make([][]byte, len(layers))
	for i, l := range layers {
		raw[i] = []byte(l)
	}
	p, err := CompilePatch(raw...)
	require.NoError(tb, err)
	return p
}

func scan(tb testing.TB, body string) *Request {
	tb.Helper()
	r, err := ScanRequest([]byte(body))
	require.NoError(tb, err)
	return r
}

func TestAppendUpstream(t *testing.T) {
	t.Parallel()
	const msgs = `"messages":[{"role":"user","content":"hi"}]`
	cases := []struct {
		name   string
		body   string
		model  string
		layers []string
		want   string
	}{
		{name: "model only", body: ` { "model" : "m" , "seed":9223372036854775807,"temperature":1.0,"x":1e2, ` + msgs + ` } `, model: "up", // REQ-02
			want: ` { "model" : "up" , "seed":9223372036854775807,"temperature":1.0,"x":1e2, ` + msgs + ` } `},
		{name: "model added", body: `{` + msgs + `}`, model: "up", want: `{` + msgs + `,"model":"up"}`},
		{name: "model kept", body: `{"model":"m",` + msgs + `}`, want: `{"model":"m",` + msgs + `}`},
		{name: "model escaped", body: `{"mod\u0065l":"m",` + msgs + `}`, model: `a"b`, want: `{"mod\u0065l":"a\"b",` + msgs + `}`},
		{
			name: "gateway fields", model: "up", // R-027, REQ-11
			body: `{"session_id":"s","model":"m","has_search":false,"auto_web_fetch":false,` + msgs + `,"web_fetch":"x","compress_context":null,"prompt":"p","fork_from":"f","user":"u"}`,
			want: `{"model":"up",` + msgs + `,"user":"u"}`,
		},
		{name: "prompt", body: `{"model":"m","prompt":"he\u006clo"}`, model: "up", // R-025, REQ-12b
			want: `{"model":"up","messages":[{"role":"user","content":"he\u006clo"}]}`},
		{
			name: "prompt, messages null", body: `{"prompt":"x","messages":null,"model":"m"}`, model: "up",
			want: `{"messages":[{"role":"user","content":"x"}],"model":"up"}`,
		},
		{
			name: "prompt, messages empty", body: `{"messages":[],"model":"m","prompt":"x"}`, model: "up",
			want: `{"messages":[{"role":"user","content":"x"}],"model":"up"}`,
		},
		{
			name: "empty arguments", model: "up", // TOOL-07
			body: `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments": ""}},{"function":{"arguments":"{}"}}]},{"role":"assistant","function_call":{"arguments":""}},{"role":"tool","content":""}]}`,
			want: `{"model":"up","messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments": "{}"}},{"function":{"arguments":"{}"}}]},{"role":"assistant","function_call":{"arguments":"{}"}},{"role":"tool","content":""}]}`,
		},
		{
			name: "worked example", model: "gpt-4o",
			body:   `{"model":"my-gpt",` + msgs + `,"temperature":0.7}`,
			layers: []string{`{"provider":{"allow_fallbacks":false}}`, `{"provider":{"ignore":["deepseek"]}}`, `{"reasoning":{"enabled":false}}`},
			want:   `{"model":"gpt-4o",` + msgs + `,"temperature":0.7,"provider":{"allow_fallbacks":false,"ignore":["deepseek"]},"reasoning":{"enabled":false}}`,
		},
		{
			name: "worked example, fallback", model: "qwen", body: `{"model":"my-gpt",` + msgs + `,"temperature":0.7}`, layers: []string{"", "", `{"reasoning":{"enabled":false}}`},
			want: `{"model":"qwen",` + msgs + `,"temperature":0.7,"reasoning":{"enabled":false}}`,
		},
		{
			name: "shapes", body: `{"a":{"b":1,"c":2},"stop":["x"],"o":{"k":1},"p":"scalar",` + msgs + `}`, // PATCH-01
			layers: []string{`{"a":{"b":9},"stop":["y"],"o":"s","p":{"q":1}}`},
			want:   `{"a":{"b":9,"c":2},"stop":["y"],"o":"s","p":{"q":1},` + msgs + `}`,
		},
		{
			name: "shapes turned", body: `{"a":5,"stop":"x","o":[1],` + msgs + `}`,
			layers: []string{`{"a":{"b":9},"stop":["y"],"o":"s","p":{"q":1}}`},
			want:   `{"a":{"b":9},"stop":["y"],"o":"s",` + msgs + `,"p":{"q":1}}`,
		},
		{name: "null sets null", body: `{"a":{"b":1},"c":2,` + msgs + `}`, layers: []string{`{"a":{"b":null,"d":null},"c":null}`}, want: `{"a":{"b":null,"d":null},"c":null,` + msgs + `}`},
		{name: "numbers of a patch", body: `{` + msgs + `}`, layers: []string{`{"x_big": 9223372036854775807, "f": 1.0}`}, want: `{` + msgs + `,"x_big":9223372036854775807,"f":1.0}`},
		{name: "deep order", body: `{"t":{"z":1, "a" : {"q":2}},` + msgs + `}`, layers: []string{`{"t":{"a":{"n":1},"m":2}}`}, want: `{"t":{"z":1, "a" : {"q":2,"n":1},"m":2},` + msgs + `}`},
		{name: "patch of model and messages", body: `{"model":"m",` + msgs + `}`, model: "up", // C-14
			layers: []string{`{"messages":[{"role":"user","content":"other"}],"model":"last"}`}, want: `{"model":"last","messages":[{"role":"user","content":"other"}]}`},
		{name: "patch of model without one", body: `{` + msgs + `}`, model: "up", layers: []string{`{"model":"last"}`}, want: `{` + msgs + `,"model":"last"}`},
		{name: "patch of messages over a prompt", body: `{"prompt":"x","model":"m"}`, layers: []string{`{"messages":[]}`}, want: `{"messages":[],"model":"m"}`},
		{name: "object over object over scalar", body: `{"a":{"x":1},` + msgs + `}`, layers: []string{`{"a":5}`, `{"a":{"y":2}}`}, want: `{"a":{"y":2},` + msgs + `}`},
		{name: "layers replace what a layer set", body: `{"a":{"x":1},` + msgs + `}`, layers: []string{`{"a":5}`, `{"a":{"y":2}}`, `{"a":{"z":3}}`}, want: `{"a":{"y":2,"z":3},` + msgs + `}`},
		{name: "twice in the body", body: `{"a":{"x":1},` + msgs + `,"a":{"x":2}}`, layers: []string{`{"a":{"y":1}}`}, want: `{"a":{"x":1,"y":1},` + msgs + `,"a":{"x":2,"y":1}}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := scan(t, c.body)
			w := Rewrite{Model: c.model}
			if c.layers != nil {
				w.Patch = compile(t, c.layers...)
			}
			require.Equal(t, c.want, string(r.AppendUpstream(nil, w)))
			require.Equal(t, "x"+c.want, string(r.AppendUpstream([]byte("x"), w)))
			require.Equal(t, c.body, string(r.Body()))
		})
	}
}

// a default is for what the client left out; a patch comes last.
func TestDefaults(t *testing.T) {
	t.Parallel()
	const msgs = `"messages":[{"role":"user","content":"hi"}]`
	for _, c := range []struct {
		name, body string
		defaults   []string
		patch      string
		want       string
	}{
		{"left out", `{` + msgs + `}`, []string{`{"temperature": 0.20}`}, "", `{` + msgs + `,"temperature":0.20}`},
		{"set by the client", `{"temperature": 1,` + msgs + `}`, []string{`{"temperature":0.2}`}, "", `{"temperature": 1,` + msgs + `}`},
		{"null of the client", `{"temperature":null,` + msgs + `}`, []string{`{"temperature":0.2}`}, "", `{"temperature":null,` + msgs + `}`},
		{"nothing at all", `{` + msgs + `}`, nil, "", `{` + msgs + `}`},
		{"layers", `{"b":0,` + msgs + `}`, []string{`{"a":1,"b":1,"o":{"x":1}}`, `{"a":2,"o":{"y":2}}`}, "", `{"b":0,` + msgs + `,"a":2,"o":{"x":1,"y":2}}`},
		{"objects are filled", `{"o":{"k": 1,"p":{"z":9}},` + msgs + `}`, []string{`{"o":{"k":2,"l":3,"p":{"q":{}}}}`}, "", `{"o":{"k": 1,"p":{"z":9,"q":{}},"l":3},` + msgs + `}`},
		{"a scalar for an object", `{"o":5,` + msgs + `}`, []string{`{"o":{"k":2}}`}, "", `{"o":5,` + msgs + `}`},
		{"an object for a scalar", `{"o":{"k":2},` + msgs + `}`, []string{`{"o":5}`}, "", `{"o":{"k":2},` + msgs + `}`},
		{"one name for the limit", `{"max_completion_tokens":7,` + msgs + `}`, []string{`{"max_tokens":9}`}, "", `{"max_completion_tokens":7,` + msgs + `}`},
		{"the other name", `{"max_tokens":7,` + msgs + `}`, []string{`{"max_completion_tokens":9,"top_p":1}`}, "", `{"max_tokens":7,` + msgs + `,"top_p":1}`},
		{"twice in the body", `{"o":{"a":1},` + msgs + `,"o":{"b":1}}`, []string{`{"o":{"a":0}}`}, "", `{"o":{"a":1},` + msgs + `,"o":{"b":1,"a":0}}`},
		{"a patch wins", `{` + msgs + `}`, []string{`{"a":1,"b":1}`}, `{"a":2}`, `{` + msgs + `,"a":2,"b":1}`},
		{"a patch into a default", `{` + msgs + `}`, []string{`{"o":{"x":1,"y":1}}`}, `{"o":{"y":2}}`, `{` + msgs + `,"o":{"x":1,"y":2}}`},
		{"a patch into both", `{"o":{"c":0},` + msgs + `}`, []string{`{"o":{"x":1,"y":1,"c":1}}`}, `{"o":{"y":2}}`, `{"o":{"c":0,"x":1,"y":2},` + msgs + `}`},
		{"a patch over a rival", `{"max_tokens":7,` + msgs + `}`, []string{`{"max_completion_tokens":9}`}, `{"max_completion_tokens":5}`, `{"max_tokens":7,` + msgs + `,"max_completion_tokens":5}`},
		{"a prompt", `{"prompt":"hi"}`, []string{`{"a":1}`}, "", `{` + msgs + `,"a":1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := scan(t, c.body)
			w := Rewrite{Defaults: compile(t, c.defaults...), Patch: compile(t, c.patch)}
			require.Equal(t, c.want, string(r.AppendUpstream(nil, w)))
			require.Equal(t, "x"+c.want, string(r.AppendUpstream([]byte("x"), w)))
		})
	}
}

func TestCompilePatchRefuses(t *testing.T) {
	t.Parallel()
	for _, layer := range []string{`[]`, `1`, `{`, `{"a":1,"a":2}`, `{"a":{"b":1,"b":2}}`, `{"a":1}x`} {
		_, err := CompilePatch([]byte(`{}`), []byte(layer))
		require.ErrorContains(t, err, "layer 2", layer)
	}
	p := compile(t)
	require.True(t, p.Empty())
	require.False(t, p.Has("a"))
	require.True(t, compile(t, `{"a":1}`).Has("a"))
}

// mergeOracle is the definition of R-182 on decoded values.
func mergeOracle(value, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	out := map[string]any{}
	if v, ok := value.(map[string]any); ok {
		maps.Copy(out, v)
	}
	for k, x := range p {
		out[k] = mergeOracle(out[k], x)
	}
	return out
}

func decode(tb testing.TB, text []byte) any {
	tb.Helper()
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	require.NoError(tb, dec.Decode(&v), "%s", text)
	return v
}

func FuzzPatch(f *testing.F) {
	f.Add([]byte(`{"a":{"b":1,"c":2},"stop":["x"]}`), []byte(`{"a":{"b":9},"o":{"p":{}}}`), []byte(`{"a":5,"o":{"p":{"q":1}}}`), []byte(`{"a":{"z":{}}}`), []byte(`{"o":{"a":{"d":1}},"n":{}}`))
	f.Fuzz(func(t *testing.T, body, one, two, three, four []byte) {
		defaults, err := CompilePatch(four)
		if err != nil || defaults.Has("max_tokens") || defaults.Has("max_completion_tokens") || defaults.Has("messages") || defaults.Has("prompt") {
			t.Skip()
		}
		p, err := CompilePatch(one, two, three)
		if err != nil {
			t.Skip()
		}
		r, err := ScanRequest(append([]byte(`{"prompt":"x","o":`), append(body, '}')...))
		if err != nil {
			t.Skip()
		}
		got := r.AppendUpstream(nil, Rewrite{Defaults: defaults, Patch: p})
		require.Equal(t, got, r.AppendUpstream(nil, Rewrite{Defaults: defaults, Patch: p}))

		want := decode(t, r.Body()).(map[string]any)
		delete(want, "prompt")
		want["messages"] = decode(t, []byte(`[{"role":"user","content":"x"}]`))
		var merged any = want
		if len(bytes.TrimSpace(four)) > 0 {
			merged = mergeOracle(decode(t, four), want)
		}
		for _, layer := range [][]byte{one, two, three} {
			if len(bytes.TrimSpace(layer)) > 0 {
				merged = mergeOracle(merged, decode(t, layer))
			}
		}
		require.Equal(t, merged, decode(t, got), "%s", got)
	})
}

func BenchmarkAppendUpstream(b *testing.B) {
	patch := compile(b, `{"provider":{"allow_fallbacks":false}}`, `{"provider":{"ignore":["deepseek"]}}`, `{"reasoning":{"enabled":false}}`)
	r := scan(b, string(promptBody(256<<10)))
	for name, w := range map[string]Rewrite{"model": {Model: "gpt-4o"}, "patch": {Model: "gpt-4o", Patch: patch}} {
		b.Run(name, func(b *testing.B) {
			dst := make([]byte, 0, len(r.Body())+1024)
			b.SetBytes(int64(len(r.Body())))
			b.ReportAllocs()
			for b.Loop() {
				dst = r.AppendUpstream(dst[:0], w)
			}
		})
	}
}
