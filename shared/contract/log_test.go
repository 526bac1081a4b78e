package contract_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
)

func logs() map[string]contract.Log {
	at := time.Date(2026, 5, 4, 3, 2, 1, 987654321, time.UTC)
	return map[string]contract.Log{
		"empty": {},
		"full": {
			ID: "r1.routing", Level: "INFO", Category: "ROUTING", Message: "имя \"q\"\n\u2028", RequestID: "r1", Metadata: json.RawMessage(`{"a":[1.50,null]}`),
			At: at,
		},
		"another zone": {At: at.In(time.FixedZone("x", 3600)), Message: "<&>"},
	}
}

// what is written by hand says the same as what reflection writes, and each reads the other.
func TestLogSurvivesTheWay(t *testing.T) {
	t.Parallel()
	for name, want := range logs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			written := want.AppendJSON(nil)
			reflected, err := json.Marshal(want)
			require.NoError(t, err)
			require.JSONEq(t, string(reflected), string(written))
			for _, text := range [][]byte{written, reflected} {
				got, err := contract.ParseLog(text)
				require.NoError(t, err)
				clear(text)
				require.True(t, want.At.Equal(got.At))
				got.At = want.At
				require.Equal(t, want, got)
			}
		})
	}
}

func TestWhatIsNoLog(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "x", "[]", "{", `{"id":1}`, `{"message":{}}`, `{"at":"yesterday"}`, `{"at":1}`} {
		_, err := contract.ParseLog([]byte(text))
		require.ErrorIs(t, err, contract.ErrNotLog, text)
	}
	got, err := contract.ParseLog([]byte(`{"id":null,"metadata":null,"colour":"red","level":"INFO"}`))
	require.NoError(t, err)
	require.Equal(t, contract.Log{Level: "INFO"}, got)
}

func FuzzParseLog(f *testing.F) {
	for _, l := range logs() {
		f.Add(l.AppendJSON(nil))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := contract.ParseLog(text)
		if err != nil {
			require.ErrorIs(t, err, contract.ErrNotLog)
			return
		}
		again, err := contract.ParseLog(l.AppendJSON(nil))
		require.NoError(t, err)
		require.True(t, l.At.Equal(again.At))
		again.At = l.At
		require.Equal(t, l, again)
	})
}
