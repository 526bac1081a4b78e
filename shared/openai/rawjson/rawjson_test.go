package rawjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

var validTexts = []string{
	`{}`, ` [ ] `, `{"a":1}`, `[1,2.5,-0,1e9,1E+2,-1.5e-3]`, `"\u00e9\n\/\"\\"`, `true`, `null`, "\"안녕 🌍 é\"", `{"a":{"b":[{"c":null}]}}`,
	`{"` + strings.Repeat("k", 40) + `":"` + strings.Repeat("v", 100) + `"}`, `"\ud800"`, "\n\t{ \"a\" : [ 1 , 2 ] , \"b\" : { } }\r\n",
	`"` + strings.Repeat("한글 ", 50) + `"`,
}

var invalidTexts = []string{
	``, ` `, `{`, `[`, `{"a"}`, `{"a":}`, `{"a":1,}`, `[1,]`, `[,1]`, `{,}`, `01`, `-`, `1.`, `.5`, `1e`, `+1`, `tru`, `nulll`, `"`, `"\x"`, `"\u12g4"`,
	`"\u12"`, "\"a\nb\"", "\"\x00\"", "\"\xff\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xe0\x80\x80\"", "\"\xf0\x80\x80\x80\"",
	"\"\xe2\x82", "\"\xe2\x82\"", `{} {}`, `[1 2]`, `{"a":1 "b":2}`, `{a:1}`, `'a'`, `[1]]`, "\ufeff{}", `{"a":1,"b"`, "{\"a\xff\":1}", `"\`,
}

func TestValid(t *testing.T) {
	t.Parallel()
	for _, text := range validTexts {
		require.True(t, Valid([]byte(text)), "%q", text)
	}
	for _, text := range invalidTexts {
		require.False(t, Valid([]byte(text)), "%q", text)
	}
}

// TestValidEverywhere puts each kind of string content at each offset, so that all paths of the word-wise scan are met.
func TestValidEverywhere(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{`\n`, `\u00e9`, "é", "한", "🌍", "\x01", "\xff", `\q`, "\xed\xa0\x80", "\xe2\x82"} {
		for n := range 40 {
			for _, tail := range []string{"", "x", strings.Repeat("y", 30), "é"} {
				text := `["` + strings.Repeat("a", n) + piece + tail + `"]`
				want := json.Valid([]byte(text)) && utf8.ValidString(text)
				require.Equal(t, want, Valid([]byte(text)), "%q", text)
			}
		}
	}
}

func TestDepth(t *testing.T) {
	t.Parallel()
	nested := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	require.True(t, Valid(nested(MaxDepth)))
	require.False(t, Valid(nested(MaxDepth+1)))
	require.False(t, Valid([]byte(strings.Repeat(`{"a":`, 100000))))

	s := Scan(nested(MaxDepth + 1))
	s.Skip()
	require.EqualError(t, s.Err(), fmt.Sprintf("nesting is deeper than %d at byte %d", MaxDepth, MaxDepth), "the container that is too deep")
}

func TestScannerReportsPosition(t *testing.T) {
	t.Parallel()
	s := Scan([]byte(`{"a": 1, "b" 2}`))
	require.True(t, s.Enter('{'))
	for s.Member() {
		s.Skip()
	}
	require.False(t, s.End())
	require.EqualError(t, s.Err(), "unexpected character or end at byte 13")
	require.True(t, s.Failed())
	require.False(t, s.Member())
	require.False(t, s.Element())
	require.True(t, s.Skip().IsZero())
}

func TestScannerKeys(t *testing.T) {
	t.Parallel()
	s := Scan([]byte(`{"mod\u0065l":"x", "" : [1, {"q":2}], "é":{}}`))
	var keys []string
	require.True(t, s.Enter('{'))
	for s.Member() {
		keys = append(keys, string(s.Key()))
		if s.Kind() != '[' {
			s.Skip()
			continue
		}
		require.True(t, s.Enter('['))
		for s.Element() {
			if s.Enter('{') {
				for s.Member() {
					keys = append(keys, string(s.Key()))
					s.Skip()
				}
			}
		}
	}
	require.True(t, s.End())
	require.Equal(t, []string{"model", "", "q", "é"}, keys)
}

func TestText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`""`, `"a"`, `"\u00e9\n\t\r\b\f\/\\\""`, `"\ud83c\udf0d"`, `"\ud83c"`, `"\ud83c\n"`, `"\udf0d\ud83c"`, `"안녕"`, `"\ud83cx"`} {
		var want string
		require.NoError(t, json.Unmarshal([]byte(text), &want))
		require.Equal(t, want, Text([]byte(text)), text)
	}
	require.Empty(t, Text([]byte(`12`)))
}

func TestAppendString(t *testing.T) {
	t.Parallel()
	require.Equal(t, `"안녕 <b>&\"\\\n\r\t\u0001"`, string(AppendString(nil, "안녕 <b>&\"\\\n\r\t\x01")))
	require.Equal(t, "\"a\ufffdb\ufffd\"", string(AppendString(nil, []byte("a\xffb\xe2"))))
}

func TestSetAndDelete(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, in, key, set, wantSet, wantDelete string }{
		{"first", `{"a":1, "b":2,"c":3}`, "a", "9", `{"a":9, "b":2,"c":3}`, `{"b":2,"c":3}`},
		{"middle", `{"a":1, "b":2,"c":3}`, "b", "9", `{"a":1, "b":9,"c":3}`, `{"a":1,"c":3}`},
		{"last", `{"a":1, "b":2 } `, "b", "9", `{"a":1, "b":9 } `, `{"a":1 } `},
		{"only", ` { "a" : 1 } `, "a", "9", ` { "a" : 9 } `, ` { } `},
		{"absent", `{"a":1 }`, "z", "9", `{"a":1,"z":9 }`, `{"a":1 }`},
		{"empty", `{ }`, "z", "9", `{"z":9 }`, `{ }`},
		{"twice", `{"a":1,"b":2,"a":3}`, "a", "9", `{"a":9,"b":2,"a":9}`, `{"b":2}`},
		{"escaped", `{"\u0061":1,"b":2}`, "a", "9", `{"\u0061":9,"b":2}`, `{"b":2}`},
		{"run", `{"a":1,"a":2,"b":3,"a":4,"c":5}`, "a", "9", `{"a":9,"a":9,"b":3,"a":9,"c":5}`, `{"b":3,"c":5}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.wantSet, string(AppendSet(nil, []byte(c.in), c.key, []byte(c.set))))
			require.Equal(t, c.wantDelete, string(AppendDelete(nil, []byte(c.in), c.key)))
		})
	}
}

func TestGetTakesTheLast(t *testing.T) {
	t.Parallel()
	require.Equal(t, "3", string(Get([]byte(`{"a":1,"b":2,"\u0061":3}`), "a")))
	require.Nil(t, Get([]byte(`{"b":2}`), "a"))
	require.Nil(t, Get([]byte(`[1]`), "a"))
}

func FuzzValid(f *testing.F) {
	for _, text := range append(validTexts, invalidTexts...) {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) > MaxDepth {
			t.Skip("the oracle has another limit of depth")
		}
		require.Equal(t, json.Valid(text) && utf8.Valid(text), Valid(text))
		require.Equal(t, Valid(text), walk(text))
	})
}

// walk visits every value with the scanner instead of skipping.
func walk(text []byte) bool {
	s := Scan(text)
	var value func()
	value = func() {
		switch s.Kind() {
		case '{':
			if s.Enter('{') {
				for s.Member() {
					_ = s.Key()
					value()
				}
			}
		case '[':
			if s.Enter('[') {
				for s.Element() {
					value()
				}
			}
		default:
			s.Skip()
		}
	}
	value()
	return s.End()
}

func FuzzSet(f *testing.F) {
	f.Add([]byte(`{"a":1, "b":[2]}`), "a")
	f.Add([]byte(`{ }`), "b")
	f.Fuzz(func(t *testing.T, object []byte, name string) {
		var want map[string]any
		if !Valid(object) || json.Unmarshal(object, &want) != nil || want == nil || !utf8.ValidString(name) {
			t.Skip()
		}
		for _, set := range []bool{true, false} {
			var got map[string]any
			var text []byte
			if set {
				want[name] = "new"
				text = AppendSet(nil, object, name, []byte(`"new"`))
			} else {
				delete(want, name)
				text = AppendDelete(nil, object, name)
			}
			require.NoError(t, json.Unmarshal(text, &got), "%s", text)
			require.Equal(t, want, got)
		}
	})
}

func FuzzText(f *testing.F) {
	f.Add([]byte(`"\ud83c\udf0d \n"`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var want string
		if !Valid(text) || json.Unmarshal(text, &want) != nil || bytes.TrimSpace(text)[0] != '"' {
			t.Skip()
		}
		got := Text(bytes.TrimSpace(text))
		require.Equal(t, want, got)
		require.Equal(t, got, Text(AppendString(nil, got)))
	})
}

func benchmarkValid(b *testing.B, text []byte) {
	b.Helper()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if !Valid(text) {
			b.Fatal("not valid")
		}
	}
}

func BenchmarkValid(b *testing.B) {
	english := "The lamp on the desk is green, and nobody knows who switched it on.\\n"
	korean := "책상 위의 등은 초록색이고 누가 켰는지 아무도 모른다.\\n"
	b.Run("ascii", func(b *testing.B) { benchmarkValid(b, []byte(`"`+strings.Repeat("a", 256<<10)+`"`)) })
	b.Run("english", func(b *testing.B) {
		benchmarkValid(b, []byte(`"`+strings.Repeat(english, 256<<10/len(english))+`"`))
	})
	b.Run("korean", func(b *testing.B) { benchmarkValid(b, []byte(`"`+strings.Repeat(korean, 256<<10/len(korean))+`"`)) })
	tool := `{"type":"function","function":{"name":"get_time","parameters":{"type":"object","properties":{"city":{"type":"string"},"n":{"type":"integer"}},"required":["city"]}}}`
	b.Run("tools", func(b *testing.B) {
		benchmarkValid(b, []byte("["+strings.Repeat(tool+",", 256<<10/len(tool))+"1]"))
	})
}

// The members of an object and the elements of an array are those that encoding/json reads, in their order and with their names.
func FuzzParts(f *testing.F) {
	for _, text := range validTexts {
		f.Add([]byte(text))
	}
	f.Add([]byte(`{"a":{"b":[1,{}]},"\u0061":"\ud83c","":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if !Valid(text) || bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) > MaxDepth {
			t.Skip()
		}
		text = bytes.TrimSpace(text)
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.UseNumber() // some are too large for its own
		open, err := dec.Token()
		require.NoError(t, err)
		next := func() string {
			var value json.RawMessage
			require.NoError(t, dec.Decode(&value))
			return string(value)
		}
		switch open {
		case json.Delim('{'):
			for m := range Members(text) {
				name, err := dec.Token()
				require.NoError(t, err)
				require.Equal(t, name, string(m.Name()))
				require.Equal(t, next(), string(m.Value.Of(text)))
			}
			require.False(t, dec.More())
		case json.Delim('['):
			for span := range Elements(text) {
				require.Equal(t, next(), string(span.Of(text)))
			}
			require.False(t, dec.More())
		default:
			for range Members(text) {
				t.Fatal("members of what is no object")
			}
			for range Elements(text) {
				t.Fatal("elements of what is no array")
			}
		}
	})
}
