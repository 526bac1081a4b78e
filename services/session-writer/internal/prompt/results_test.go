package prompt_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/session-writer/internal/prompt"
	"hydrallm/shared/contract"
)

// no provider takes a call without its result.
func TestCallsWithoutResults(t *testing.T) {
	t.Parallel()
	const none = `"There is no result: the call was not carried out, or its result is not known."`
	tests := map[string]struct{ history, sent, want string }{
		"the user goes on":               {"u1 cx", "u2", "u1 cx Xx u2"},
		"and on":                         {"u1 cx u2 a2", "u3", "u1 cx Xx u2 a2 u3"},
		"after a summary":                {"Ssum cx", "u2", "Ssum cx Xx u2"},
		"the transcript without it":      {"u1 cx", "u1 cx u2", "u1 cx Xx u2"},
		"only a system message":          {"u1 cx", "s1", "s1 u1 cx Xx"},
		"the result comes":               {"u1 cx", "tx", "u1 cx tx"},
		"the result comes with a word":   {"u1 cx", "tx u2", "u1 cx tx u2"},
		"another result comes":           {"u1 cx", "ty u2", "u1 cx Xx ty u2"},
		"it has come":                    {"u1 cx tx a1", "u2", "u1 cx tx a1 u2"},
		"two calls in a row":             {"u1 cx u2 cy", "u3", "u1 cx Xx u2 cy Xy u3"},
		"one of the client's own":        {"u1 a1", "u2 cx u3", "u1 a1 u2 cx u3"},
		"one that the session has":       {"u1 cx u2 a2", "u1 cx u2 a2 u3", "u1 cx Xx u2 a2 u3"},
		"the result is only in the body": {"u1 cx a2", "u1 cx tx a2 u3", "u1 cx tx a2 u3"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole, _ := assemble(t, talk(tt.history), `{"messages":`+array(talk(tt.sent))+`}`)
			want := array(talk(strings.ReplaceAll(tt.want, "X", "t")))
			for word := range strings.FieldsSeq(tt.want) {
				if id, ok := strings.CutPrefix(word, "X"); ok {
					want = strings.ReplaceAll(want, `{"role":"tool","tool_call_id":"`+id+`","content":"r"}`, `{"role":"tool","tool_call_id":"`+id+`","content":`+none+`}`)
				}
			}
			require.Equal(t, `{"messages":`+want+`}`, whole)
		})
	}
}

// of several calls those that have no result get one; the client's own form of the others stays as it is.
func TestParallelCallsWithoutResults(t *testing.T) {
	t.Parallel()
	const (
		called = `{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"b","name":"f","input":{}}]}`
		call   = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]}`
		given  = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r"},{"type":"text","text":"and?","cache_control":{"type":"ephemeral"}}]}`
	)
	history := append(talk("u1"), asHistory(contract.SurfaceMessages, []contract.Message{{Body: []byte(call), Original: []byte(called)}})...)
	r, err := prompt.Read(contract.SurfaceMessages, []byte(`{"messages":[`+given+`]}`))
	require.NoError(t, err)
	whole := string(r.Assemble(history).Body)
	require.Contains(t, whole, called)
	require.Contains(t, whole, given)
	require.Equal(t, 1, strings.Count(whole, `"tool_use_id":"b"`), whole)
	require.Less(t, strings.Index(whole, called), strings.Index(whole, `"tool_use_id":"b"`))
	require.Less(t, strings.Index(whole, `"tool_use_id":"b"`), strings.Index(whole, given))
}

// what a client reads and writes anew is the same message, however it writes it.
func TestWrittenAnew(t *testing.T) {
	t.Parallel()
	const tool = `{"role":"tool","tool_call_id":"c","content":"r"}`
	call := func(arguments string) string {
		return `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":` + arguments + `}}]}`
	}
	image := func(part string) string { return `{"role":"user","content":[` + part + `]}` }
	tests := map[string]struct {
		stored, sent string
		same         bool
	}{
		"arguments with spaces":      {call(`"{\"a\":1,\"b\":[1.0,\"\\u00e9\"]}"`), call(`"{ \"a\": 1, \"b\": [1, \"é\"] }"`), true},
		"arguments in another order": {call(`"{\"a\":1,\"b\":{\"c\":1,\"d\":2}}"`), call(`"{\"b\":{\"d\":2,\"c\":1},\"a\":1}"`), true},
		"no arguments":               {call(`""`), call(`"{}"`), true},
		"broken arguments":           {call(`"{\"a\":"`), call(`"{\"a\":"`), true},
		"other arguments":            {call(`"{\"a\":1}"`), call(`"{\"a\":2}"`), false},
		"other large numbers":        {call(`"{\"a\":9007199254740993}"`), call(`"{\"a\":9007199254740992}"`), false},
		"another list":               {call(`"{\"a\":[1,2]}"`), call(`"{\"a\":[2,1]}"`), false},
		"an image in another order": {
			image(`{"type":"image_url","image_url":{"url":"data:,x","detail":"low"}}`), image(`{ "image_url": {"detail":"low", "url":"data:,\u0078"}, "type":"image_url"}`), true,
		},
		"an image with null": {image(`{"type":"image_url","image_url":{"url":"data:,x"}}`), image(`{"type":"image_url","image_url":{"url":"data:,x","detail":null}}`), true},
		"another image":      {image(`{"type":"image_url","image_url":{"url":"data:,x"}}`), image(`{"type":"image_url","image_url":{"url":"data:,y"}}`), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			history := talk("u1")
			for _, m := range []string{tt.stored, tool, `{"role":"assistant","content":"done"}`} {
				history = append(history, prompt.Message{Message: contract.Message{Body: []byte(m)}, Surface: contract.SurfaceChat})
			}
			whole, fresh := assemble(t, history, `{"messages":[{"role":"user","content":"1"},`+tt.sent+`,`+tool+`,{"role":"assistant","content":"done"},{"role":"user","content":"2"}]}`)
			require.Equal(t, `[{"role":"user","content":"2"}]`, fresh)
			if tt.same {
				require.Equal(t, `{"messages":`+array(append(history, talk("u2")...))+`}`, whole)
				return
			}
			require.Contains(t, whole, tt.stored)
			require.Contains(t, whole, tt.sent)
		})
	}
}

// servers that give the same ids in each turn have a result for each call.
func TestIDsThatComeAgain(t *testing.T) {
	t.Parallel()
	whole, _ := assemble(t, talk("u1 cx u2 cx tx a1"), `{"messages":`+array(talk("u3"))+`}`)
	before, after, ok := strings.Cut(whole, `"content":"2"`)
	require.True(t, ok)
	require.Contains(t, before, `{"role":"tool","tool_call_id":"x","content":"There is no result`)
	require.Equal(t, 1, strings.Count(after, `"role":"tool"`))
	require.Contains(t, after, `{"role":"tool","tool_call_id":"x","content":"r"}`)
}
