package bus

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/natstest"
)

// delivery is a message of a bucket as a consumer delivers it.
type delivery struct {
	jetstream.Msg

	key  string
	meta jetstream.MsgMetadata
}

func (d *delivery) Subject() string                           { return "$KV." + subject.StateBucket + "." + d.key }
func (d *delivery) Data() []byte                              { return []byte(d.key) }
func (d *delivery) Headers() nats.Header                      { return nil }
func (d *delivery) Metadata() (*jetstream.MsgMetadata, error) { return &d.meta, nil }

// observed is a watch of a real bucket whose consumer the test plays: it stands for one at a node whose copy of the bucket may be old.
type observed struct {
	*testing.T
	*Watch

	bucket *Bucket
	told   []string
}

func observe(t *testing.T) *observed {
	t.Helper()
	b, err := Connect(t.Context(), Config{InProcess: natstest.Start(t), Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close(context.WithoutCancel(t.Context()))) })
	x := &observed{T: t}
	x.bucket, err = b.Bucket(t.Context(), subject.StateBucket)
	require.NoError(t, err)
	x.Watch = &Watch{bus: b, bucket: subject.StateBucket, pattern: "d.*", known: map[string]version{}, fn: func(e Entry) {
		word := e.Key
		if e.Deleted {
			word = "no " + e.Key
		}
		x.told = append(x.told, word)
	}}
	return x
}

// put stores a value and gives its number.
func (x *observed) put(key string) uint64 {
	x.Helper()
	revision, err := x.bucket.Put(x.Context(), key, []byte(key))
	require.NoError(x, err)
	return revision
}

func (x *observed) begin() *reading {
	r := x.newReading()
	x.present = r
	return r
}

// deliver plays the consumer: it delivers what is stored under a number, and says how much is left.
func (x *observed) deliver(r *reading, key string, revision, left uint64) error {
	d := &delivery{key: key, meta: jetstream.MsgMetadata{
		Sequence: jetstream.SequencePair{Consumer: r.messages + 1, Stream: revision}, NumPending: left, Timestamp: time.Unix(int64(revision), 0),
	}}
	return r.take(&message{Msg: d, bus: x.bus})
}

// what a reading says counts when the leader of the bucket has nothing that is missing in it.
func TestReading(t *testing.T) {
	t.Parallel()
	tests := map[string]func(x *observed){
		"it is told when it is complete": func(x *observed) {
			a, b := x.put("d.a"), x.put("d.b")
			r := x.begin()
			require.NoError(x, x.deliver(r, "d.a", a, 0)) // as far as its consumer knows
			require.NoError(x, r.check(x.Context(), false))
			require.Empty(x, x.told)
			require.NoError(x, x.deliver(r, "d.b", b, 0))
			require.Equal(x, []string{"d.a", "d.b"}, x.told)
			require.True(x, closed(r.caughtUp))
		},
		"an old copy has nothing vanish": func(x *observed) {
			a := x.put("d.a")
			first := x.begin()
			require.NoError(x, x.deliver(first, "d.a", a, 0))
			require.NoError(x, first.check(x.Context(), false))
			require.Equal(x, []string{"d.a"}, x.told)
			b := x.put("d.b")
			second := x.begin() // at a node that has nothing yet
			require.NoError(x, second.check(x.Context(), false))
			require.NoError(x, x.deliver(second, "d.a", a, 0))
			require.NoError(x, x.deliver(second, "d.b", b, 0))
			require.Equal(x, []string{"d.a", "d.b"}, x.told)
		},
		"what has vanished is told": func(x *observed) {
			a := x.put("d.a")
			first := x.begin()
			require.NoError(x, x.deliver(first, "d.a", a, 0))
			require.NoError(x, first.check(x.Context(), false))
			require.NoError(x, x.bus.js.DeleteStream(x.Context(), x.stream()))
			require.Eventually(x, func() bool {
				_, err := x.bus.js.Stream(x.Context(), x.stream())
				return err == nil
			}, await.Limit, time.Millisecond)
			require.NoError(x, x.begin().check(x.Context(), false))
			require.Equal(x, []string{"d.a", "no d.a"}, x.told)
		},
		"other keys of the bucket are not waited for": func(x *observed) {
			a := x.put("d.a")
			x.put("other.key")
			r := x.begin()
			require.NoError(x, x.deliver(r, "d.a", a, 0))
			require.NotEmpty(x, r.poke)
			require.NoError(x, r.check(x.Context(), false))
			require.Equal(x, []string{"d.a"}, x.told)
			require.NoError(x, r.check(x.Context(), true))
			require.NoError(x, r.check(x.Context(), true))
		},
		"an empty bucket is read at once": func(x *observed) {
			r := x.begin()
			require.NoError(x, r.check(x.Context(), false))
			require.True(x, closed(r.caughtUp))
		},
		"it is stalled when it misses something and does not move": func(x *observed) {
			r := x.begin()
			require.NoError(x, r.check(x.Context(), false))
			x.put("d.a")
			require.NoError(x, r.check(x.Context(), false))
			require.NoError(x, r.check(x.Context(), true), "it may be on its way")
			require.ErrorIs(x, r.check(x.Context(), true), errStalled)
		},
		"slow is not stalled": func(x *observed) {
			a, b := x.put("d.a"), x.put("d.b")
			x.put("d.c")
			r := x.begin()
			require.NoError(x, r.check(x.Context(), true))
			require.NoError(x, x.deliver(r, "d.a", a, 2))
			require.NoError(x, r.check(x.Context(), true))
			require.NoError(x, x.deliver(r, "d.b", b, 1))
			require.NoError(x, r.check(x.Context(), true))
			require.ErrorIs(x, r.check(x.Context(), true), errStalled)
		},
		"a bucket that counts anew is noticed": func(x *observed) {
			a := x.put("d.a")
			r := x.begin()
			require.NoError(x, x.deliver(r, "d.a", a+100, 0)) // before it was lost
			require.NoError(x, r.check(x.Context(), true))
			require.ErrorIs(x, r.check(x.Context(), true), errStalled)
		},
		"a lost change makes it worthless": func(x *observed) {
			r := x.begin()
			require.NoError(x, x.deliver(r, "d.a", 1, 9))
			r.messages++ // one that did not come
			require.ErrorIs(x, r.take(&message{Msg: &delivery{key: "d.b", meta: jetstream.MsgMetadata{
				Sequence: jetstream.SequencePair{Consumer: 2, Stream: 2},
			}}, bus: x.bus}), errSkipped)
		},
		"an earlier reading says nothing": func(x *observed) {
			earlier := x.begin()
			require.NoError(x, earlier.check(x.Context(), false))
			x.begin()
			require.NoError(x, x.deliver(earlier, "d.a", 1, 0))
			require.NoError(x, earlier.check(x.Context(), true))
			require.Empty(x, x.told)
		},
		"after the stop nothing is told": func(x *observed) {
			a := x.put("d.a")
			r := x.begin()
			require.NoError(x, r.check(x.Context(), false))
			x.release()
			require.NoError(x, x.deliver(r, "d.a", a, 0))
			require.Empty(x, x.told)
		},
	}
	for name, run := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(observe(t))
		})
	}
}
