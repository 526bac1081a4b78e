package contract_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
)

func TestHeadSurvivesTheWay(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]contract.Head{
		"bare":    {Status: 503},
		"stream":  {Status: 200, Stream: true},
		"headers": {Status: 200, Header: [][2]string{{"Content-Type", "text/event-stream; charset=utf-8"}, {"X-A", "\"имя\"\\\n"}, {"", ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			written := want.AppendJSON(nil)
			reflected, err := json.Marshal(want)
			require.NoError(t, err)
			require.JSONEq(t, string(reflected), string(written))
			got, err := contract.ParseHead(written)
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
	for _, want := range []contract.End{
		{Outcome: contract.OutcomeSuccess},
		{Outcome: contract.OutcomeError, Reason: contract.ReasonWorkerLost},
		{Outcome: contract.OutcomeSuccess, Prompt: 1, Completion: 2, Total: 3, CostNanos: 4},
	} {
		got, err := contract.ParseEnd(want.AppendJSON(nil))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := contract.ParseEnd([]byte("[]"))
	require.ErrorIs(t, err, contract.ErrBadFrame)
}

func TestWhatIsNoHead(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "x", "[]", `{"status":"1"}`, `{"stream":1}`, `{"header":{}}`, `{"header":[1]}`, `{"header":[["a"]]}`, `{"header":[["a","b","c"]]}`, `{"header":[["a",1]]}`,
	} {
		_, err := contract.ParseHead([]byte(text))
		require.ErrorIs(t, err, contract.ErrBadFrame, text)
	}
}

func FuzzParseHead(f *testing.F) {
	f.Add([]byte(`{"status":200,"header":[["A","b"]],"later":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		h, err := contract.ParseHead(text)
		if err != nil {
			return
		}
		again, err := contract.ParseHead(h.AppendJSON(nil))
		require.NoError(t, err)
		require.Equal(t, h, again)
	})
}
