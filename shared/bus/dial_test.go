package bus_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus"
)

// no server is waited for with an identity that can't be had.
func TestIdentityThatCantBeHad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nonsense, missing := filepath.Join(dir, "nonsense"), filepath.Join(dir, "missing")
	require.NoError(t, os.WriteFile(nonsense, []byte("no seed of anything"), 0o600))
	for name, identity := range map[string]bus.Identity{
		"no credentials": {Credentials: missing},
		"no seed":        {NkeySeed: missing},
		"a wrong seed":   {NkeySeed: nonsense},
		"no authorities": {CA: missing},
		"nonsense":       {CA: nonsense},
		"no certificate": {Cert: missing, Key: missing},
	} {
		_, err := bus.Connect(t.Context(), bus.Config{URL: "nats://127.0.0.1:1", Identity: identity, Logger: slog.New(slog.DiscardHandler)})
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), "no seed of anything", name)
	}
}
