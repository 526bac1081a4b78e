package store

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// what is stored is there at the next start; of several values all are stored, and one that is removed is gone.
func TestSettings(t *testing.T) {
	t.Parallel()
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			address := b.address(t)
			s, err := Open(t.Context(), address)
			require.NoError(t, err)
			all, err := s.Settings(t.Context())
			require.NoError(t, err)
			require.Empty(t, all)
			require.NoError(t, s.PutSettings(t.Context(), map[string]string{"a": `"x"`, "b": `[1]`}, nil))
			require.NoError(t, s.PutSettings(t.Context(), map[string]string{"a": `"y"`}, []string{"b", "none"}))
			require.NoError(t, s.Close())
			all, err = openStore(t, address).Settings(t.Context())
			require.NoError(t, err)
			require.Equal(t, map[string]string{"a": `"y"`}, all)
		})
	}
}
