package openai

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/openai/rawjson"
)

const hi = `"messages":[{"role":"user","content":"hi"}]`

func TestScanRequest(t *testing.T) {
	t.Parallel()
	r, err := ScanRequest([]byte(` {"model":"m\u00e9","stream":true,"stream_options":{"x":1,"include_usage":true},"session_id":"s1","has_search":true,
		"auto_web_fetch":false,"web_fetch":"http://a","compress_context":true,"fork_from":"m9","n":2,"max_tokens":5,"max_completion_tokens":7.0,` + hi + `} `))
	require.NoError(t, err)
	require.Equal(t, "mé", r.Model)
	require.True(t, r.Stream)
	require.True(t, r.IncludeUsage)
	require.Equal(t, "s1", r.SessionID)
	require.True(t, r.HasSearch)
	require.Equal(t, new(false), r.AutoWebFetch)
	require.Equal(t, new(true), r.CompressContext)
	require.Equal(t, "http://a", r.WebFetch)
	require.Equal(t, "m9", r.ForkFrom)
	require.Equal(t, int64(7), r.MaxTokens)
	require.Equal(t, 2, r.Choices)
	require.Equal(t, `[{"role":"user","content":"hi"}]`, string(r.Messages.Of(r.Body())))
	require.Equal(t, "7.0", string(r.Value("max_completion_tokens")))
	require.Nil(t, r.Value("nothing"))

	r, err = ScanRequest([]byte(`{"model":null,"stream":null,"stream_options":null,"auto_web_fetch":null,"messages":null,"prompt":"hello"}`))
	require.NoError(t, err)
	require.Empty(t, r.Model)
	require.Equal(t, 1, r.Choices)
	require.False(t, r.Stream)
	require.Nil(t, r.AutoWebFetch)
	require.True(t, r.Messages.IsZero())
	require.Equal(t, `"hello"`, string(r.Prompt.Of(r.Body())))
}

func TestScanRequestAccepts(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{` + hi + `}`,
		`{"messages":[],"prompt":"x"}`,
		`{"prompt":" x "}`,
		`{"prompt":"\u0041"}`,
		`{"messages":[{"role":"user","content":"hi"}],"prompt":""}`, // messages win
		`{"messages":[{"role":"user","content":[{"type":"text","text":""},{"type":"image_url","image_url":{"url":"x"}}]}]}`,
		`{"messages":[{"role":"user","content":{"type":"image_url","image_url":"x"}}]}`,
		`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[]},{"role":"tool","content":""}]}`, // REQ-06
		`{"messages":[{"role":"user","content":""},{"role":"assistant","content":"x"},{"role":"user","content":"go on"}]}`,
		`{"messages":[{"role":"system","content":""}]}`,
		`{"messages":[{"role":"user","content":["a"]}]}`,
		`{"stop":"END","x":{"a":1,"a":2},` + hi + `}`, // REQ-07: deep duplicates are not ours
		`{"temperature":1,"temperature":2,` + hi + `}`,
		`{"topK":1,"enableThinking":{"Model":1,"model":2},"X":1,"` + "\u00e9" + `":1,` + hi + `}`, // only what others read as something else is refused
		`{"x":` + strings.Repeat("[", 900) + strings.Repeat("]", 900) + `,` + hi + `}`,
	} {
		_, err := ScanRequest([]byte(body))
		require.NoError(t, err, body)
	}
}

// either way of asking for the usage is enough, and other values of OpenRouter's member ask for nothing.
func TestAskingForUsage(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		`{"usage":{"include":true},` + hi + `}`:                                                    true,
		`{"usage":{"x":1, "include" : true },"stream_options":{"include_usage":false},` + hi + `}`: true,
		`{"stream_options":{"include_usage":false},` + hi + `,"usage":{"include":true}}`:           true,
		`{"stream_options":{"include_usage":true},` + hi + `,"usage":{"include":false}}`:           true,
		`{"stream_options":{"include_usage":true,"include_usage":false},` + hi + `}`:               false,
		`{"usage":{"include":false},` + hi + `}`:                                                   false,
		`{"usage":{"include":"true"},` + hi + `}`:                                                  false,
		`{"usage":{},` + hi + `}`:                                                                  false,
		`{"usage":true,` + hi + `}`:                                                                false,
		`{"usage":[{"include":true}],` + hi + `}`:                                                  false,
		`{"usage":null,` + hi + `}`:                                                                false,
	} {
		r, err := ScanRequest([]byte(body))
		require.NoError(t, err, body)
		require.Equal(t, want, r.IncludeUsage, body)
	}
}

func TestScanRequestRefuses(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", rawjson.MaxDepth) + strings.Repeat("]", rawjson.MaxDepth)
	cases := []struct{ name, body, param, code string }{
		{"nothing", ``, "", CodeInvalidJSON},
		{"space", " \n", "", CodeInvalidJSON},
		{"broken", `{broken`, "", CodeInvalidJSON},
		{"cut", `{"model":"m"`, "", CodeInvalidJSON},
		{"two values", `{` + hi + `}{}`, "", CodeInvalidJSON},
		{"bad utf-8", "{\"model\":\"\xff\"," + hi + "}", "", CodeInvalidJSON},
		{"too deep", `{"x":` + deep + `,` + hi + `}`, "", CodeInvalidJSON},
		{"syntax wins over meaning", `{"model":5,` + hi, "", CodeInvalidJSON},
		{"array", `[]`, "", CodeInvalidType},
		{"string", `"x"`, "", CodeInvalidType},
		{"model", `{"model":5,` + hi + `}`, "model", CodeInvalidType}, // REQ-12
		{"stream", `{"stream":"true",` + hi + `}`, "stream", CodeInvalidType},
		{"stream options", `{"stream_options":true,` + hi + `}`, "stream_options", CodeInvalidType},
		{"include usage", `{"stream_options":{"include_usage":1},` + hi + `}`, "stream_options.include_usage", CodeInvalidType},
		{"session", `{"session_id":1,` + hi + `}`, "session_id", CodeInvalidType},
		{"has_search", `{"has_search":"yes",` + hi + `}`, "has_search", CodeInvalidType},
		{"auto_web_fetch", `{"auto_web_fetch":1,` + hi + `}`, "auto_web_fetch", CodeInvalidType},
		{"compress_context", `{"compress_context":[],` + hi + `}`, "compress_context", CodeInvalidType},
		{"web_fetch", `{"web_fetch":{},` + hi + `}`, "web_fetch", CodeInvalidType},
		{"fork_from", `{"fork_from":3,` + hi + `}`, "fork_from", CodeInvalidType},
		{"messages a string", `{"messages":"hi"}`, "messages", CodeInvalidType},
		{"message no object", `{"messages":["hi"]}`, "messages[0]", CodeInvalidType},
		{"role", `{"messages":[{"role":1,"content":"x"}]}`, "messages[0].role", CodeInvalidType},
		{"no role", `{"messages":[{"content":"x"}]}`, "messages[0].role", CodeMissing},
		{"content", `{"messages":[{"role":"user","content":5}]}`, "messages[0].content", CodeInvalidType},
		{"prompt", `{"prompt":["x"]}`, "prompt", CodeInvalidType},
		{"no input", `{"model":"m"}`, "messages", CodeMissing},
		{"no messages", `{"messages":[]}`, "messages", CodeMissing},
		{"blank prompt", `{"prompt":"  \n"}`, "prompt", CodeInvalidValue},
		{"blank wide prompt", `{"prompt":"\u3000　"}`, "prompt", CodeInvalidValue},
		{"empty content", `{"messages":[{"role":"user","content":"a"},{"role":"user","content":""}]}`, "messages[1].content", CodeInvalidValue},
		{"no content", `{"messages":[{"role":"user"}]}`, "messages[0].content", CodeInvalidValue},
		{"empty parts", `{"messages":[{"role":"user","content":[{"type":"text","text":""}]}]}`, "messages[0].content", CodeInvalidValue},
		{"two models", `{"model":"a","model":"b",` + hi + `}`, "model", CodeDuplicate}, // REQ-07
		{"two models, escaped", `{"model":"a","mod\u0065l":"b",` + hi + `}`, "model", CodeDuplicate},
		{"two streams", `{"stream":false,` + hi + `,"stream":true}`, "stream", CodeDuplicate},
		{"other case beside", `{"model":"a","Model":"b",` + hi + `}`, "Model", CodeAmbiguous},
		{"other case before", `{"MODEL":"b","model":"a",` + hi + `}`, "MODEL", CodeAmbiguous},
		{"other case alone", `{"Stream":true,` + hi + `}`, "Stream", CodeAmbiguous},
		{"other case, escaped", `{"\u004dodel":"b",` + hi + `}`, "Model", CodeAmbiguous},
		{"long s", "{\"\u017ftream\":true," + hi + "}", "\u017ftream", CodeAmbiguous},
		{"kelvin sign", "{\"to\u212aen\":1,\"token\":2," + hi + "}", "token", CodeAmbiguous},
		{"other case of what a dialect reads", `{"Tools":[],` + hi + `}`, "Tools", CodeAmbiguous},
		{"other case of a field of the gateway", `{"Session_ID":"x",` + hi + `}`, "Session_ID", CodeAmbiguous},
		{"two unknown ones", `{"topK":1,` + hi + `,"TopK":2}`, "TopK", CodeAmbiguous},
		{"unknown ones in lower case", `{"Min_p":1,` + hi + `,"min_p":2}`, "min_p", CodeAmbiguous},
		{"other case in a message", `{"messages":[{"role":"user","content":"hi"},{"role":"user","Content":"x","content":"y"}]}`, "messages[1].Content", CodeAmbiguous},
		{"other case of a role", `{"messages":[{"Role":"system","role":"user","content":"hi"}]}`, "messages[0].Role", CodeAmbiguous},
		{"other case in a part", `{"messages":[{"role":"user","content":[{"type":"text","text":"a","TEXT":"b"}]}]}`, "messages[0].content[].TEXT", CodeAmbiguous},
		{"other case in a call", `{"messages":[{"role":"assistant","tool_calls":[{"Function":{}}]}]}`, "messages[0].tool_calls[].Function", CodeAmbiguous},
		{"other case of arguments", `{"messages":[{"role":"assistant","tool_calls":[{"function":{"Arguments":""}}]}]}`, "messages[0].tool_calls[].function.Arguments", CodeAmbiguous},
		{"other case of an option", `{"stream_options":{"Include_usage":true},` + hi + `}`, "stream_options.Include_usage", CodeAmbiguous},
		{"two messages", `{` + hi + `,` + hi + `}`, "messages", CodeDuplicate},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := ScanRequest([]byte(c.body))
			wrong, ok := errors.AsType[*RequestError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, c.code, wrong.Code, wrong.Message)
			require.Equal(t, c.param, wrong.Param)
			require.NotEmpty(t, wrong.Message)
		})
	}
}

func FuzzScanRequest(f *testing.F) {
	for _, seed := range []string{`{` + hi + `}`, `{"model":"m","stream":true,"prompt":"x"}`, `{"messages":[{"role":"assistant","tool_calls":[{"function":{"arguments":""}}]}]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := ScanRequest(body)
		if err != nil {
			wrong, ok := errors.AsType[*RequestError](err)
			require.True(t, ok)
			if wrong.Code == CodeInvalidJSON && strings.Count(string(body), "[")+strings.Count(string(body), "{") < rawjson.MaxDepth {
				require.False(t, json.Valid(body) && utf8.Valid(body), wrong.Message)
			} else {
				require.True(t, json.Valid(body))
			}
			return
		}
		var want struct {
			Model  *string
			Stream *bool
		}
		var fold map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(body, &fold))
		want.Model, want.Stream = new(""), new(false)
		var server struct { // a server that reads names in any case reads the same
			Model  json.RawMessage
			Stream json.RawMessage
		}
		require.NoError(t, json.Unmarshal(body, &server))
		require.Equal(t, fold["model"], server.Model)
		require.Equal(t, fold["stream"], server.Stream)
		if raw, ok := fold["model"]; ok && string(raw) != "null" {
			require.NoError(t, json.Unmarshal(raw, want.Model))
		}
		if raw, ok := fold["stream"]; ok && string(raw) != "null" {
			require.NoError(t, json.Unmarshal(raw, want.Stream))
		}
		require.Equal(t, *want.Model, r.Model)
		require.Equal(t, *want.Stream, r.Stream)
		out := r.AppendUpstream(nil, Rewrite{Model: "up"})
		require.True(t, json.Valid(out), "%s", out)
	})
}

// promptBody is a request of n bytes whose prompt looks like code and prose.
func promptBody(n int) []byte {
	line := `if err := run(ctx); err != nil {\n\treturn fmt.Errorf(\"running: %w\", err)\n}\nThe lamp is green and nobody knows why. `
	return []byte(`{"model":"my-gpt","stream":true,"temperature":0.7,"messages":[{"role":"system","content":"You help."},{"role":"user","content":"` +
		strings.Repeat(line, n/len(line)) + `"}]}`)
}

func BenchmarkScanRequest(b *testing.B) {
	for _, c := range []struct {
		name string
		body []byte
	}{{"256KiB", promptBody(256 << 10)}, {"small", promptBody(200)}, {"tools", toolsBody(64 << 10)}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ScanRequest(c.body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// toolsBody is a request of about n bytes with a long history of tool calls.
func toolsBody(n int) []byte {
	turn := `,{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"/a/b.go\"}"}}]},` +
		`{"role":"tool","tool_call_id":"call_1","content":"package a\n\nfunc F() int { return 1 }\n"}`
	return []byte(`{"model":"my-gpt","messages":[{"role":"user","content":"go"}` + strings.Repeat(turn, n/len(turn)) + `]}`)
}
