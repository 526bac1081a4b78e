package slot

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A record that can be read gives no more slots to others than it says, and is the same again; what can't be read is an error.
func FuzzDecodeRecord(f *testing.F) {
	f.Add([]byte(`{"a":{"n":2,"until":99999999999999},"b":{"n":1,"until":0}}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, value []byte) {
		r, err := decodeRecord(value)
		if err != nil {
			return
		}
		again, err := decodeRecord(r.encode())
		require.NoError(t, err)
		require.Len(t, again, len(r))
		now := time.UnixMilli(1)
		require.Equal(t, r.others("a", now), again.others("a", now))
		next := r.with("a", 3, now, now.Add(time.Second))
		require.Equal(t, share{Slots: 3, Until: now.Add(time.Second).UnixMilli()}, next["a"])
		require.Equal(t, r.others("a", now), next.others("a", now))
	})
}
