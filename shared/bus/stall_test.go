package bus_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus"
	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/natstest"
)

// whoever reads notices that its consumer delivers nothing, although that gives signs of life and nothing was lost. A consumer that is paused does
// what one does whose node is behind.
func TestStallsAreNoticed(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		stream string
		read   func(t *testing.T, b *bus.Bus) (proceed func()) // begins to read; proceed returns when something new was read
	}{
		"the watch of a bucket": {"KV_" + subject.StateBucket, func(t *testing.T, b *bus.Bus) func() {
			t.Helper()
			bucket, err := b.Bucket(t.Context(), subject.StateBucket)
			require.NoError(t, err)
			seen := make(chan string, 8)
			w, err := bucket.Watch(t.Context(), "*.*", func(e bus.Entry) { seen <- e.Key })
			require.NoError(t, err)
			t.Cleanup(w.Stop)
			return func() {
				_, err := bucket.Put(t.Context(), "dispatcher.new", nil)
				require.NoError(t, err)
				require.Equal(t, "dispatcher.new", await.Value(t, seen))
			}
		}},
		"the reader of a recording": {subject.RecordingsStream, func(t *testing.T, b *bus.Bus) func() {
			t.Helper()
			begin(t, b, background("r"))
			live := reading(t, b, "r")
			return func() {
				w := await.Value(t, startDispatcher(t, b).got)
				require.NoError(t, w.reply.Head(contract.Head{Status: 200}))
				w.say(t, "text")
				w.finish(t)
				require.Equal(t, "text"+contract.OutcomeSuccess, await.Value(t, live))
			}
		}},
		"the sweeper": {subject.RecordingsStream, func(t *testing.T, b *bus.Bus) func() {
			t.Helper()
			s, err := b.FollowRecordings(t.Context())
			require.NoError(t, err)
			t.Cleanup(s.Stop)
			return func() {
				require.NoError(t, b.Record(t.Context(), background("r"), nil))
				require.Eventually(t, func() bool {
					s.SweepAt(t.Context(), time.Now().Add(time.Hour))
					rec, err := b.Recorded(t.Context(), "r")
					return err == nil && rec.State == bus.RecordingEnded
				}, testWait, 10*time.Millisecond)
			}
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := natstest.Start(t)
			proceed := tt.read(t, bustest.Connect(t, server))
			nc, err := nats.Connect("", nats.InProcessServer(server))
			require.NoError(t, err)
			t.Cleanup(nc.Close)
			js, err := jetstream.New(nc)
			require.NoError(t, err)
			stream, err := js.Stream(t.Context(), tt.stream)
			require.NoError(t, err)
			var names []string
			require.Eventually(t, func() bool {
				for name := range stream.ConsumerNames(t.Context()).Name() {
					names = append(names, name)
				}
				return len(names) == 1
			}, testWait, time.Millisecond)
			_, err = js.PauseConsumer(t.Context(), tt.stream, names[0], time.Now().Add(time.Hour))
			require.NoError(t, err)
			proceed()
			cons, err := js.Consumer(t.Context(), tt.stream, names[0])
			if err == nil { // else its reader has removed it
				require.True(t, cons.CachedInfo().Paused)
			}
		})
	}
}
