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
	for _, want := range cfg.Streams() {
		require.True(t, matches(t.Context(), js, want), want.Name)
		want.MaxBytes++
		require.False(t, matches(t.Context(), js, want), want.Name)
	}
	for _, want := range cfg.Buckets() {
		behind := jetstream.StreamConfig{
			Name: "KV_" + want.Bucket, Description: want.Description, Storage: want.Storage, Discard: jetstream.DiscardNew,
			MaxBytes: want.MaxBytes, MaxAge: want.TTL, Replicas: want.Replicas,
		}
		require.True(t, matches(t.Context(), js, behind), want.Bucket)
	}
}
