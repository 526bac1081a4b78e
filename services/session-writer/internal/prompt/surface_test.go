package prompt_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/session-writer/internal/prompt"
	"hydrallm/shared/contract"
	"hydrallm/shared/openai/rawjson"
)

// asHistory makes a history of what a turn was stored with.
func asHistory(s contract.Surface, list []contract.Message) (history []prompt.Message) {
	for _, m := range list {
		history = append(history, prompt.Message{Message: contract.ReadMessage(string(m.Body), m.OriginalText()), Surface: s})
	}
	return history
}

// a session over Messages gets its own blocks back; one over another surface what Chat Completions has of them.
func TestSurfaces(t *testing.T) {
	t.Parallel()
	const (
		first  = `{"role":"user","content":[{"type":"text","text":"q","cache_control":{"type":"ephemeral"}}]}`
		called = `{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"a","name":"f","input":{"n":1.50}}]}`
		given  = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r"},{"type":"text","text":"and?"}]}`
		call   = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"n\":1.50}"}}]}`
	)
	body := func(list ...string) []byte {
		return []byte(`{"model":"m","system":"S","messages":[` + strings.Join(list, ",") + `],"x":1.0}`)
	}
	read := func(s contract.Surface, list ...string) *prompt.Request {
		r, err := prompt.Read(s, body(list...))
		require.NoError(t, err)
		return r
	}
	turn := read(contract.SurfaceMessages, first).Assemble(nil)
	require.Nil(t, turn.Body)
	history := asHistory(contract.SurfaceMessages, turn.Fresh)
	history = append(history, asHistory(contract.SurfaceMessages, []contract.Message{{Body: []byte(call), Original: []byte(called)}})...)

	// The client sends only what is new.
	turn = read(contract.SurfaceMessages, given).Assemble(history)
	require.Equal(t, string(body(first, called, given)), string(turn.Body))
	require.Len(t, turn.Fresh, 2, "R-690: the result is kept with the words behind it")
	// It sends everything again, the answer as it likes.
	turn = read(contract.SurfaceMessages, first, `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"n":1.50}}]}`, given).Assemble(history)
	require.Equal(t, string(body(first, called, given)), string(turn.Body))
	require.Len(t, turn.Fresh, 2, "the result and the words are two in the hub")
	require.Equal(t, given, string(turn.Fresh[0].Original))
	require.True(t, turn.Fresh[1].Within)
	history = append(history, asHistory(contract.SurfaceMessages, turn.Fresh)...)
	turn = read(contract.SurfaceMessages, `{"role":"user","content":"next"}`).Assemble(history)
	require.Equal(t, string(body(first, called, given, `{"role":"user","content":"next"}`)), string(turn.Body))

	// Another surface goes on with the same session.
	turn = read(contract.SurfaceChat, `{"role":"user","content":"next"}`).Assemble(history)
	require.Equal(t, string(body(`{"role":"user","content":[{"type":"text","text":"q"}]}`, call, `{"role":"tool","tool_call_id":"a","content":"r"}`,
		`{"role":"user","content":[{"type":"text","text":"and?"}]}`, `{"role":"user","content":"next"}`)), string(turn.Body))
	// And back: what Chat Completions said is in the form of Messages, a summary in the member system.
	history = append([]prompt.Message{{Message: contract.Message{Body: []byte(`{"role":"system","content":"so far"}`)}, Summary: true}}, history[2:]...)
	history = append(history, asHistory(contract.SurfaceChat, []contract.Message{{Body: []byte(`{"role":"assistant","content":"x"}`)}})...)
	turn = read(contract.SurfaceMessages, `{"role":"user","content":"next"}`).Assemble(history)
	require.JSONEq(t, `{"model":"m","system":[{"type":"text","text":"S"},{"type":"text","text":"so far"}],"messages":[`+given+`,{"role":"assistant","content":[{"type":"text","text":"x"}]},{"role":"user","content":"next"}],"x":1.0}`, string(turn.Body))
	// An original of which a part is missing is not sent.
	turn = read(contract.SurfaceMessages, `{"role":"user","content":"next"}`).Assemble(history[2:3])
	require.JSONEq(t, `[{"role":"user","content":[{"type":"text","text":"and?"}]},{"role":"user","content":"next"}]`, string(rawjson.Get(turn.Body, "messages")))
}
