package topology

import (
	"log/slog"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/natstest"
)

// What is there as it is wanted is not updated again.
func TestWhatMatchesIsLeftAlone(t *testing.T) {
	t.Parallel()
	nc, err := nats.Connect("", nats.InProcessServer(natstest.Start(t)))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	var cfg Config
	require.NoError(t, Ensure(t.Context(), js, cfg, slog.New(slog.DiscardHandler)))
	for _, a := range cfg.assets(js) {
		there, same, err := a.compare(t.Context(), js)
		require.NoError(t, err)
		require.True(t, there && same, a.name)
		a.stream.MaxBytes++
		there, same, err = a.compare(t.Context(), js)
		require.NoError(t, err)
		require.True(t, there && !same, a.name)
	}
}
