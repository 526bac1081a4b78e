package dispatcher_test

import (
	"context"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher"
	"hydrallm/services/dispatcher/internal/sessionheader"
	"hydrallm/services/dispatcher/internal/sessionheader/sessiontest"
	"hydrallm/services/dispatcher/internal/slot"
	"hydrallm/services/dispatcher/internal/slot/slottest"
	"hydrallm/shared/subject"
)

// part is a store whose keys have a prefix, so that one bucket holds a fresh store for each test.
type part struct {
	store  dispatcher.Store
	prefix string
}

func (p part) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	return p.store.Get(ctx, p.prefix+key)
}

func (p part) Swap(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	return p.store.Swap(ctx, p.prefix+key, value, revision)
}

// parts gives fresh stores on a bucket, each for n clients with connections of their own.
func parts(t *testing.T, bucket string, most int) func(n int) []part {
	t.Helper()
	p := newPipeline(t)
	stores := make([]dispatcher.Store, most)
	for i := range stores {
		b, err := p.connect().Bucket(t.Context(), bucket)
		require.NoError(t, err)
		stores[i] = dispatcher.NewStore(b)
	}
	var made atomic.Int64
	return func(n int) []part {
		prefix := "test" + strconv.FormatInt(made.Add(1), 10) + "."
		all := make([]part, n)
		for i := range all {
			all[i] = part{stores[i], prefix}
		}
		return all
	}
}

// section 19 scenario 23: what slots promise holds on a JetStream bucket.
func TestSlotsOnABucket(t *testing.T) {
	t.Parallel()
	fresh := parts(t, subject.SlotsBucket, 4)
	slottest.RunShared(t, func(_ *testing.T, clients int) []slot.KV {
		kvs := make([]slot.KV, clients)
		for i, p := range fresh(clients) {
			kvs[i] = p
		}
		return kvs
	})
}

// what dialogues promise holds on a JetStream bucket.
func TestDialoguesOnABucket(t *testing.T) {
	t.Parallel()
	const most = 2
	fresh := parts(t, subject.DialogueBucket, most)
	sessiontest.Run(t, most, func(_ *testing.T, n int) []sessionheader.Source {
		sources := make([]sessionheader.Source, n)
		for i, p := range fresh(n) {
			sources[i] = sessionheader.NewShared(p, slog.New(slog.DiscardHandler))
		}
		return sources
	})
}

// Swap is a compare-and-swap: it wins once, says so, and a loss is no error.
func TestStoreSwaps(t *testing.T) {
	t.Parallel()
	kv := parts(t, subject.SlotsBucket, 1)(1)[0]
	value, revision, err := kv.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Nil(t, value)
	require.Zero(t, revision)

	first, err := kv.Swap(t.Context(), "k", []byte("a"), 0)
	require.NoError(t, err)
	require.NotZero(t, first)
	lost, err := kv.Swap(t.Context(), "k", []byte("b"), 0)
	require.NoError(t, err)
	require.Zero(t, lost)
	second, err := kv.Swap(t.Context(), "k", []byte("c"), first)
	require.NoError(t, err)
	require.Greater(t, second, first)
	lost, err = kv.Swap(t.Context(), "k", []byte("d"), first)
	require.NoError(t, err)
	require.Zero(t, lost)

	value, revision, err = kv.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, "c", string(value))
	require.Equal(t, second, revision)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = kv.Swap(ctx, "k", []byte("e"), second)
	require.Error(t, err)
}
