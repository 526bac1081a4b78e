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
	survives(t, logs(), (*contract.Log).AppendJSON, contract.ParseLog, func(l *contract.Log) *time.Time { return &l.At })
}

// survives holds what is written by hand against what reflection writes, and has each read the other. at gives where the time is, whose zone may change.
func survives[T any](t *testing.T, all map[string]T, write func(*T, []byte) []byte, parse func([]byte) (T, error), at func(*T) *time.Time) {
	t.Helper()
	for name, want := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			written := write(&want, nil)
			reflected, err := json.Marshal(want)
			require.NoError(t, err)
			require.JSONEq(t, string(reflected), string(written))
			for _, text := range [][]byte{written, reflected} {
				got, err := parse(text)
				require.NoError(t, err)
				clear(text) // nothing of it is kept
				require.True(t, at(&want).Equal(*at(&got)))
				*at(&got) = *at(&want)
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
