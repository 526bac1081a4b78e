package compat_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/dialect/compat"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// odd are values that must not be touched: number text, escapes, white space.
var odd = []string{`1.0`, `1e2`, `-0`, `9223372036854775808`, `"\u00e9\/\ud83d\ude00"`, `{ "a" : [ 1 , 2 ] }`, "[\n]", `null`, `true`, `{}`}

// object writes members with random space between them and puts one that is refused before or after a random one. It gives the object with
// and without it.
func object(rnd *rand.Rand, items []string, refused string) (with, without string) {
	spaces := []string{"", " ", "\n\t"}
	space := func() string { return spaces[rnd.IntN(len(spaces))] }
	at := rnd.IntN(len(items) + 1)
	var a, b strings.Builder
	both := func(s string) { a.WriteString(s); b.WriteString(s) }
	both("{" + space())
	for i, item := range items {
		if i > 0 {
			both(space() + "," + space())
		}
		if i == at && i == 0 && refused != "" {
			a.WriteString(refused + space() + "," + space())
		}
		both(item)
		if (i == at-1 || i == at && i > 0) && refused != "" {
			a.WriteString(space() + "," + space() + refused)
			at = -1
		}
	}
	both(space() + "}")
	return a.String(), b.String()
}

// What no rule names keeps its bytes, wherever something else is left out (REQ-02, REQ-04, R-024).
func TestOnlyWhatARuleNamesIsLost(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		vendor := []string{"gemini", "groq", "cerebras", "mistral"}[rnd.IntN(4)]
		value := func() string { return odd[rnd.IntN(len(odd))] }
		refused := fmt.Sprintf(`"x_%d" : %s`, rnd.IntN(9), value())
		level := rnd.IntN(5)
		pick := func(n int) string {
			if level == n {
				return refused
			}
			return ""
		}
		part, wantPart := object(rnd, []string{`"type":"text"`, `"text":"a\u00e9"`}, pick(0))
		image := `{"type":"image_url" , "image_url":{"url":"data:x"} }`
		parts, wantParts := `[`+part+` , `+image+`]`, `[`+wantPart+` , `+image+`]`
		call, wantCall := object(rnd, []string{`"id":"abcDEF123"`, `"type":"function"`, `"function":{"name":"f","arguments":"{\"a\": 1.0}"}`}, pick(1))
		said, wantSaid := object(rnd, []string{`"role":"assistant"`, `"content":"a"`, `"tool_calls":[` + call + `]`}, pick(2))
		wantSaid = strings.Replace(wantSaid, call, wantCall, 1)
		user, wantUser := object(rnd, []string{`"role" : "user"`, `"content":` + parts}, pick(3))
		wantUser = strings.Replace(wantUser, parts, wantParts, 1)
		more := []string{`"temperature":1.0`, `"stop": ` + value(), `"tools":[{"type":"function","function":{"name":"f","parameters":` + value() + `}}]`}
		in, want := object(rnd, append([]string{`"messages" : [` + user + `,` + said + `,` + user + `]`}, more...), pick(4))
		want = strings.ReplaceAll(strings.Replace(want, said, wantSaid, 1), user, wantUser)
		out, err := compat.Request(vendor, []byte(in))
		require.NoError(t, err)
		require.Equal(t, want, string(out), "%s: %s", vendor, in)
	}
}

func FuzzRequest(f *testing.F) {
	for _, body := range bodies(f) {
		f.Add(string(body))
	}
	for _, c := range members {
		f.Add(c.in)
	}
	for _, c := range history {
		f.Add(c.in)
	}
	f.Add(`{"messages":[{"role":"user","role":"tool","content":"","content":[]},{},{"name":1}, 7 ,[],{"role":"assistant","tool_calls":[[],{},{"id":""}]}],"messages":0}`)
	f.Fuzz(func(t *testing.T, body string) { sound(t, body) })
}

// sound checks what must hold for every body: valid stays valid, adapting twice is adapting once, and the caller's bytes are left alone.
func sound(t *testing.T, body string) {
	t.Helper()
	valid := rawjson.Valid([]byte(body))
	for _, vendor := range all {
		in := []byte(body)
		out, err := compat.Request(vendor, in)
		require.Equal(t, body, string(in))
		if !valid {
			continue
		}
		if bad := new(openai.RequestError); errors.As(err, &bad) {
			require.Equal(t, "messages", bad.Param)
			continue
		}
		require.NoError(t, err)
		require.True(t, rawjson.Valid(out), "%s: %s of %s", vendor, out, body)
		again, err := compat.Request(vendor, out)
		require.NoError(t, err)
		require.Equal(t, string(out), string(again), "%s: %s", vendor, body)
	}
	memory, in := compat.NewSignatures(), []byte(body)
	memory.Learn("a", "c2ln")
	signed := memory.Inject(in)
	blind, n := compat.WithoutImages(in)
	require.Equal(t, body, string(in))
	if valid {
		require.True(t, rawjson.Valid(signed), "%s of %s", signed, body)
		require.Equal(t, string(signed), string(memory.Inject(signed)))
		require.True(t, rawjson.Valid(blind), "%s of %s", blind, body)
		_, more := compat.WithoutImages(blind)
		require.Zero(t, more)
		require.Equal(t, n == 0, string(blind) == body)
	}
}

// words are names and values that rules know; names are keys, and often in the wrong place or there twice.
var (
	names = strings.Fields(`role role role content content content name tool_calls tool_call_id id type type text function arguments image_url url refusal
		reasoning reasoning_content extra_content google thought_signature cache_control prefix index function_call custom input_audio x`)
	tops = strings.Fields(`model max_tokens max_completion_tokens temperature seed random_seed reasoning_effort thinking tools tool_choice stream_options n
		response_format reasoning_format include_reasoning parallel_tool_calls extra_body store top_p x`)
	values = strings.Fields(`null true 0 1 0.0 2 "" "a" "none" "low" "max" "default" "any" "auto" "raw" "user" "assistant" "tool" "system" "developer" "text"
		"image_url" "refusal" "function" "gpt-5" "gemini-3.8-flash" "qwen3" "MiniMax-M3" {} [] [{}] [""] {"type":"disabled"} {"google":{"thinking_config":{}}}
		{"include_usage":true,"x":1} {"type":"allowed_tools","allowed_tools":{"mode":"required"}} {"google":{"thought_signature":"s"}}`)
)

// anyRequest is a body that looks like a request and is seldom a sane one.
func anyRequest(rnd *rand.Rand) string {
	one := func(from []string) string { return from[rnd.IntN(len(from))] }
	var value func(depth int) string
	members := func(from []string, depth int) string {
		var b []string
		for range rnd.IntN(5) {
			b = append(b, fmt.Sprintf("%q:%s", one(from), value(depth-1)))
		}
		return one([]string{"{", "{ "}) + strings.Join(b, one([]string{",", " , "})) + "}"
	}
	value = func(depth int) string {
		switch n := rnd.IntN(5); {
		case n == 0 && depth > 0:
			return members(names, depth)
		case n <= 2 && depth > 0:
			var b []string
			for range rnd.IntN(4) {
				b = append(b, members(names, depth))
			}
			return "[" + strings.Join(b, ",") + "]"
		default:
			return one(values)
		}
	}
	var b []string
	for range rnd.IntN(6) {
		b = append(b, fmt.Sprintf("%q:%s", one(tops), value(2)))
	}
	var messages []string
	for range rnd.IntN(6) {
		m := members(names, 3)
		if rnd.IntN(3) > 0 {
			m = `{"role":` + one([]string{`"user"`, `"assistant"`, `"tool"`, `"system"`}) + strings.Replace(","+m[1:], ",}", "}", 1)
		}
		messages = append(messages, m)
	}
	b = append(b, `"messages":[`+strings.Join(messages, " ,")+`]`)
	rnd.Shuffle(len(b), func(i, j int) { b[i], b[j] = b[j], b[i] })
	return "{" + strings.Join(b, ",") + "}"
}

func TestSoundForAnyRequest(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 4))
	n := 0
	for range 1500 {
		body := anyRequest(rnd)
		if rawjson.Valid([]byte(body)) {
			n++
		}
		sound(t, body)
	}
	require.Greater(t, n, 1000)
}
