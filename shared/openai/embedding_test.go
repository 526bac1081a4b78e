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

func TestScanEmbeddings(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, body string
		base64     bool
		inputs     int
		tokens     bool
	}{
		{"text", `{"model":"e","input":"hi"}`, false, 1, false},
		{"white space is a text", `{"model":"e","input":" "}`, false, 1, false},
		{"texts", `{"model":"e","input":["a","b", "c"],"encoding_format":"base64"}`, true, 3, false},
		{"format in escapes", `{"model":"e","input":["a"],"encoding_format":"base\u00364"}`, true, 1, false},
		{"tokens", `{"model":"e","input":[1,2,30000],"encoding_format":"float"}`, false, 1, true},
		{"lists of tokens", `{"model":"e","input":[[1],[2,3]],"encoding_format":null}`, false, 2, true},
		{"many tokens", `{"model":"e","input":[` + strings.Repeat("1,", 8000) + `1]}`, false, 1, true},
		{"as many as fit", `{"model":"e","input":["a"` + strings.Repeat(`,"a"`, MaxInputs-1) + `]}`, false, MaxInputs, false},
		{"dimensions and others", ` { "input" : "hi" , "dimensions":256,"dimensions":1,"user":"u","model":"e","x":{"model":1,"model":2}} `, false, 1, false},
		{"fields of the gateway of any type", `{"session_id":1,"session_id":2,"has_search":"x","model":"e","input":"hi"}`, false, 1, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, err := ScanEmbeddings([]byte(c.body))
			require.NoError(t, err)
			require.Equal(t, "e", r.Model)
			require.Equal(t, c.base64, r.Base64)
			require.Equal(t, c.inputs, r.Inputs)
			require.Equal(t, c.tokens, r.Tokens)
			require.Equal(t, c.body, string(r.Body()))
		})
	}
}

func TestScanEmbeddingsRefuses(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, body, param, code string }{
		{"nothing", ``, "", CodeInvalidJSON},
		{"space", " \n", "", CodeInvalidJSON},
		{"broken", `{broken`, "", CodeInvalidJSON},
		{"cut in the input", `{"model":"e","input":["a"`, "", CodeInvalidJSON},
		{"syntax wins over meaning", `{"model":5,"input":[],`, "", CodeInvalidJSON},
		{"bad utf-8", "{\"model\":\"e\",\"input\":\"\xff\"}", "", CodeInvalidJSON},
		{"too deep", `{"model":"e","input":` + strings.Repeat("[", rawjson.MaxDepth) + strings.Repeat("]", rawjson.MaxDepth) + `}`, "", CodeInvalidJSON},
		{"array", `[]`, "", CodeInvalidType},
		{"null", `null`, "", CodeInvalidType},
		{"no model", `{"input":"hi"}`, "model", CodeMissing},                                          // REQ-12
		{"other case of the input", `{"model":"e","Input":"x","input":"hi"}`, "Input", CodeAmbiguous},
		{"unknown names that are equal in any case", `{"model":"e","input":"hi","Truncate":1,"truncate":2}`, "truncate", CodeAmbiguous},
		{"null model", `{"model":null,"input":"hi"}`, "model", CodeMissing},
		{"empty model", `{"model":"","input":"hi"}`, "model", CodeMissing},
		{"model of the wrong type", `{"model":5,"input":"hi"}`, "model", CodeInvalidType},
		{"no input", `{"model":"e"}`, "input", CodeMissing},
		{"messages instead", `{"model":"e","messages":[{"role":"user","content":"hi"}]}`, "input", CodeMissing},
		{"null input", `{"model":"e","input":null}`, "input", CodeMissing},
		{"empty input", `{"model":"e","input":""}`, "input", CodeInvalidValue},
		{"empty array", `{"model":"e","input":[ ]}`, "input", CodeInvalidValue},
		{"empty text among others", `{"model":"e","input":["a",""]}`, "input", CodeInvalidValue},
		{"empty list of tokens", `{"model":"e","input":[[1],[]]}`, "input", CodeInvalidValue},
		{"too many inputs", `{"model":"e","input":["a"` + strings.Repeat(`,"a"`, MaxInputs) + `]}`, "input", CodeInvalidValue},
		{"number", `{"model":"e","input":1}`, "input", CodeInvalidType},
		{"object", `{"model":"e","input":{}}`, "input", CodeInvalidType},
		{"objects", `{"model":"e","input":[{"text":"a"}]}`, "input", CodeInvalidType},
		{"null in the array", `{"model":"e","input":["a",null]}`, "input", CodeInvalidType},
		{"texts and tokens", `{"model":"e","input":["a",1]}`, "input", CodeInvalidType},
		{"fraction", `{"model":"e","input":[1.5]}`, "input", CodeInvalidType},
		{"exponent", `{"model":"e","input":[[1e2]]}`, "input", CodeInvalidType},
		{"negative", `{"model":"e","input":[-1]}`, "input", CodeInvalidType},
		{"text in a list of tokens", `{"model":"e","input":[["a"]]}`, "input", CodeInvalidType},
		{"three levels", `{"model":"e","input":[[[1]]]}`, "input", CodeInvalidType},
		{"unknown format", `{"model":"e","input":"hi","encoding_format":"int8"}`, "encoding_format", CodeInvalidValue},
		{"format of the wrong type", `{"model":"e","input":"hi","encoding_format":1}`, "encoding_format", CodeInvalidType},
		{"two models", `{"model":"a","input":"hi","mod\u0065l":"b"}`, "model", CodeDuplicate}, // REQ-07
		{"two inputs", `{"model":"a","input":"hi","input":"ho"}`, "input", CodeDuplicate},
		{"two formats", `{"encoding_format":"float","model":"a","input":"hi","encoding_format":"float"}`, "encoding_format", CodeDuplicate},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := ScanEmbeddings([]byte(c.body))
			wrong, ok := errors.AsType[*RequestError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, c.code, wrong.Code, wrong.Message)
			require.Equal(t, c.param, wrong.Param)
			require.NotEmpty(t, wrong.Message)
		})
	}
}

func TestEmbeddingsForAnUpstream(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, body, model, patch, want string }{
		{"model only", ` { "model" : "e" , "input":["a\u0062"], "dimensions":2.50e2 } `, "up", "", ` { "model" : "up" , "input":["a\u0062"], "dimensions":2.50e2 } `},
		{"model kept", `{"model":"e","input":[1,2]}`, "", "", `{"model":"e","input":[1,2]}`},
		{
			"fields of the gateway", `{"session_id":"s","model":"e","has_search":true,"input":"hi","fork_from":"f","prompt":"p","web_fetch":"x","auto_web_fetch":null,"user":"u","compress_context":1}`,
			"up", "", `{"model":"up","input":"hi","user":"u"}`,
		},
		{"members of a chat request are nobody's business", `{"model":"e","messages":[],"stream":true,"input":"hi"}`, "up", "", `{"model":"up","messages":[],"stream":true,"input":"hi"}`},
		{"patch", `{"model":"e","input":"hi","o":{"a":1}}`, "up", `{"o":{"b":2},"truncate":true}`, `{"model":"up","input":"hi","o":{"a":1,"b":2},"truncate":true}`},
		{"patch of the model", `{"model":"e","input":"hi"}`, "up", `{"model":"last"}`, `{"model":"last","input":"hi"}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, err := ScanEmbeddings([]byte(c.body))
			require.NoError(t, err)
			require.Equal(t, "x"+c.want, string(r.AppendUpstream([]byte("x"), Rewrite{Model: c.model, Patch: compile(t, c.patch)})))
			require.Equal(t, c.body, string(r.Body()))
		})
	}
}

// Whatever a client sends, what is accepted means the same to a decoder, and goes on as JSON.
func FuzzScanEmbeddings(f *testing.F) {
	for _, seed := range []string{
		`{"model":"e","input":"hi"}`, `{"model":"e","input":["a","b"],"encoding_format":"base64","dimensions":5}`, `{"input":[1,2],"model":"e","session_id":"s"}`,
		`{"input":[[1],[2,3]],"model":"e"}`, `{"model":"e","input":[]}`, `{"model":"e","input":["a",1]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := ScanEmbeddings(body)
		if err != nil {
			wrong, ok := errors.AsType[*RequestError](err)
			require.True(t, ok)
			if wrong.Code == CodeInvalidJSON && strings.Count(string(body), "[")+strings.Count(string(body), "{") < 500 {
				require.False(t, json.Valid(body) && utf8.Valid(body), wrong.Message)
			}
			return
		}
		var all map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(body, &all))
		require.Equal(t, r.Inputs, countInputs(t, all["input"], r.Tokens))
		var model string
		require.NoError(t, json.Unmarshal(all["model"], &model))
		require.Equal(t, model, r.Model)
		out := r.AppendUpstream(nil, Rewrite{Model: "up"})
		var sent map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(out, &sent), "%s", out)
		require.Equal(t, `"up"`, string(sent["model"]))
		require.Equal(t, string(all["input"]), string(sent["input"]))
		require.NotContains(t, sent, "session_id")
	})
}

func countInputs(t *testing.T, raw json.RawMessage, tokens bool) int {
	t.Helper()
	var text string
	var texts []string
	var numbers []json.Number
	var lists [][]json.Number
	switch {
	case json.Unmarshal(raw, &text) == nil && raw[0] == '"':
		require.False(t, tokens)
		require.NotEmpty(t, text)
		return 1
	case json.Unmarshal(raw, &texts) == nil:
		require.False(t, tokens)
		require.NotContains(t, texts, "")
		return len(texts)
	case json.Unmarshal(raw, &numbers) == nil:
		require.True(t, tokens)
		return 1
	default:
		require.NoError(t, json.Unmarshal(raw, &lists))
		require.True(t, tokens)
		return len(lists)
	}
}
