package dispatcher_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/bus"
	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/fakellm"
)

// inSession makes a request one of session "s".
func inSession(r *contract.Request) { r.SessionID, r.Principal = "s", "k:1" }

// turns reads the facts of session "s".
func (p *pipeline) turns() (turns []contract.Turn) {
	p.t.Helper()
	for from := uint64(1); ; {
		f, ok, err := p.bus.NextFact(p.t.Context(), subject.Turn("s", "*"), from)
		require.NoError(p.t, err)
		if !ok {
			return turns
		}
		turns, from = append(turns, readTurn(p.t, f)), f.Sequence+1
	}
}

func readTurn(t *testing.T, f bus.Fact) (turn contract.Turn) {
	t.Helper()
	require.NoError(t, json.Unmarshal(f.Data, &turn))
	turn.Kind = contract.TurnKind(subject.Last(f.Subject))
	return turn
}

// an answer of a session is a fact by the time that its end is there, with calls, reasoning and members of the vendor; half an answer is
// another kind; a refusal is none. Requests without a session leave nothing.
func TestAnswersOfSessionsAreFacts(t *testing.T) {
	t.Parallel()
	message := `{"role":"assistant","content":null,"reasoning_content":"hm <b>","x":{"y":1.0},"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"n\": 1.0}"}}]}`
	whole := fakellm.JSON(http.StatusOK, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":`+message+`,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`)
	tests := map[string]struct {
		body   string
		answer fakellm.Answer
		kind   contract.TurnKind // "" = no fact
		say    string            // JSON of the message; "" = not looked at
	}{
		"whole":              {plainBody, whole, contract.TurnAnswered, message},
		"whole, as a stream": {streamBody, whole, contract.TurnAnswered, ""},
		"stream":             {streamBody, fakellm.Stream("one ", "two"), contract.TurnAnswered, `{"role":"assistant","content":"one two"}`},
		"stream, collected":  {plainBody, fakellm.Stream("one ", "two"), contract.TurnAnswered, `{"role":"assistant","content":"one two"}`},
		"broken stream":      {streamBody, fakellm.Stream("one ", "two").First(2, fakellm.Reset), contract.TurnFailed, `{"role":"assistant","content":"one "}`},
		"refused":            {plainBody, fakellm.Error(http.StatusBadRequest, "no"), "", ""},
		"failed":             {plainBody, fakellm.Error(http.StatusInternalServerError, "no"), "", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t)
			p.upstream.Handle(func(fakellm.Request) fakellm.Answer { return tc.answer })
			p.start("d1", p.oneUpstream(""))
			p.get("r1", tc.body)
			require.Empty(t, p.turns(), "no session")
			r := p.get("r2", tc.body, inSession)
			require.Equal(t, "s", r.header["X-Session-Id"])
			turns := p.turns()
			if tc.kind == "" {
				require.Empty(t, turns)
				return
			}
			require.Len(t, turns, 1)
			got := turns[0]
			require.Equal(t, [...]any{tc.kind, "s", "r2", "k:1", false, false}, [...]any{got.Kind, got.Session, got.RequestID, got.Principal, got.Unsaved, got.Truncated})
			require.Len(t, got.Messages, 1)
			require.True(t, json.Valid([]byte(got.Messages[0])))
			require.Less(t, len(got.Messages[0]), 2<<20)
			if tc.say != "" {
				require.JSONEq(t, tc.say, got.Messages[0])
			}
			if tc.body == plainBody {
				require.Equal(t, "s", gjson.Get(r.body, "session_id").Str)
			}
		})
	}
}

//
func TestAnswersWithoutHistorySaySo(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.upstream.Handle(fakellm.Talk("hi"))
	p.start("d1", p.oneUpstream(""))
	r := p.get("r", plainBody, inSession, func(r *contract.Request) { r.NoHistory = true })
	require.NotEmpty(t, r.header["X-Session-Warning"])
	require.True(t, p.turns()[0].Unsaved)
	require.Empty(t, p.get("r2", plainBody, inSession).header["X-Session-Warning"])
}
