package gateway

import (
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/config"
	"hydrallm/shared/process"
)

// bodies and answers stay in the process only where requests do.
func TestLocalTraffic(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*config.NATS)
		local  bool
	}{
		"alone":            {func(*config.NATS) {}, true},
		"others may come":  {func(n *config.NATS) { n.Listen = "127.0.0.1:4222" }, false},
		"work outlives it": {func(n *config.NATS) { n.WorkOnDisk = true }, false},
		"another server":   {func(n *config.NATS) { n.URL = "nats://127.0.0.1:4222" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings := process.Settings{Config: &config.Config{}}
			tt.change(&settings.NATS)
			require.Equal(t, tt.local, localTraffic(settings) != nil)
		})
	}
}
