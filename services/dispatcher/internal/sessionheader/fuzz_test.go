package sessionheader

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What the bucket of dialogues holds is an id of the gateway's own, which a header can carry, or counts as none.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"id":"0123456789abcdef0123456789abcdef","used":1}`))
	f.Add([]byte("{\"id\":\"0123456789abcdef0123456789abcde\\r\\n\"}"))
	f.Fuzz(func(t *testing.T, value []byte) {
		s, ok := decode(value)
		if !ok {
			return
		}
		require.Regexp(t, `^[0-9a-fA-F]{32}$`, s.ID)
		again, ok := decode(s.encode())
		require.True(t, ok)
		require.Equal(t, s, again)
	})
}
