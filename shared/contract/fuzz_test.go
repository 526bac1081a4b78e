package contract_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
)

// The end of an answer is read back as it was written, and what is none is refused as such.
func FuzzParseEnd(f *testing.F) {
	f.Add([]byte(`{"outcome":"success","prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"cost_nanos":4,"later":{}}`))
	f.Add([]byte(`{"outcome":"\u0000","reason":"\ud83c","total_tokens":1e3}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := contract.ParseEnd(text)
		if err != nil {
			require.ErrorIs(t, err, contract.ErrBadFrame)
			return
		}
		again, err := contract.ParseEnd(e.AppendJSON(nil))
		require.NoError(t, err)
		require.Equal(t, e, again)
	})
}

// A position is read from the front of a message, takes no more than it has, and is the same again.
func FuzzParsePosition(f *testing.F) {
	f.Add(contract.Position{Stage: contract.StageEnriched, Delivery: 300}.Append(nil))
	f.Add([]byte{0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, msg []byte) {
		p, n := contract.ParsePosition(msg)
		require.LessOrEqual(t, n, len(msg))
		if n == 0 {
			require.Zero(t, p)
			return
		}
		again, m := contract.ParsePosition(append(p.Append(nil), msg[n:]...))
		require.Positive(t, m)
		require.Equal(t, p, again)
	})
}

// A message of a turn is kept as two texts and is the same again.
func FuzzMessage(f *testing.F) {
	f.Add("{}", "", "{}", contract.OriginalWithin)
	f.Add("{}", "{}", "", "[]")
	f.Fuzz(func(t *testing.T, body, original, body2, original2 string) {
		var turn contract.Turn
		want := []contract.Message{contract.ReadMessage(body, original), contract.ReadMessage(body2, original2)}
		for _, m := range want {
			turn.Add(m)
		}
		for i, m := range want {
			require.Equal(t, m, turn.Message(i))
		}
	})
}
