package modelindex_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus"
	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/contract"
	"hydrallm/shared/modelindex"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/leaktest"
	"hydrallm/shared/testkit/natstest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const testWait = await.Limit

// follow gives a copy, and the books that it reported.
func follow(t *testing.T, b *bus.Bus) (*modelindex.Copy, <-chan *modelindex.Book) {
	t.Helper()
	books := make(chan *modelindex.Book, 64)
	c, err := modelindex.Follow(t.Context(), b, func(book *modelindex.Book) { books <- book })
	require.NoError(t, err)
	t.Cleanup(c.Stop)
	return c, books
}

func receive(t *testing.T, books <-chan *modelindex.Book) *modelindex.Book {
	t.Helper()
	select {
	case b := <-books:
		return b
	case <-time.After(testWait):
		t.Fatal("the copy does not change")
		panic("unreachable")
	}
}

// what one process puts, every other one has: what was there before it came, and each change.
func TestFollow(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	writer, reader := bustest.Connect(t, server), bustest.Connect(t, server)
	at := time.Now().Truncate(time.Millisecond).UTC()
	first := modelindex.Listing{Provider: "groq", At: at, Models: []modelindex.Model{{
		ID: "openai/gpt-oss-120b", Name: "GPT OSS <120B>", Tier: contract.TierFree, Window: 131_072, Output: 65_536, Can: contract.FeatureImages | contract.FeatureTools,
	}}}
	require.NoError(t, modelindex.Put(t.Context(), writer, first))
	c, books := follow(t, reader)
	got, ok := c.Book().Listing("groq")
	require.True(t, ok)
	require.Equal(t, first, got)
	require.Same(t, c.Book(), receive(t, books))

	odd := modelindex.Listing{Provider: "my provider.*/>", Models: []modelindex.Model{{ID: "m"}}}
	require.NoError(t, modelindex.Put(t.Context(), writer, odd))
	b := receive(t, books)
	require.Equal(t, []string{"my provider.*/>"}, b.Providers("m"))
	require.Equal(t, []string{"groq"}, b.Providers("openai/gpt-oss-120b"))

	require.NoError(t, modelindex.Put(t.Context(), writer, listing("groq", modelindex.Model{ID: "new"})))
	b = receive(t, books)
	require.Empty(t, b.Providers("openai/gpt-oss-120b"))
	require.Equal(t, []string{"groq"}, b.Providers("new"))
	_, ok = c.Book().Find("groq", "new")
	require.True(t, ok)
}

// What can't be read is none, and hurts no other listing; what is deleted is gone.
func TestBadEntries(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	bucket, err := b.Bucket(t.Context(), subject.CatalogBucket)
	require.NoError(t, err)
	_, books := follow(t, b)
	for _, provider := range []string{"a", "b"} {
		require.NoError(t, modelindex.Put(t.Context(), b, listing(provider, modelindex.Model{ID: "m"})))
		receive(t, books)
	}
	_, err = bucket.Put(t.Context(), "models.nohex", []byte("x"))
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, receive(t, books).Providers("m"))
	_, err = bucket.Put(t.Context(), "models."+hex.EncodeToString([]byte("a")), []byte("not compressed"))
	require.NoError(t, err)
	book := receive(t, books)
	require.Equal(t, []string{"b"}, book.Providers("m"))
	_, ok := book.Listing("a")
	require.False(t, ok)
	require.NoError(t, bucket.Delete(t.Context(), "models."+hex.EncodeToString([]byte("b")), 0))
	require.Empty(t, receive(t, books).Providers("m"))
}

// The most models that a provider may have, each of which tells all it can, fit into one message.
func TestLargestListing(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	l := modelindex.Listing{Provider: "p", At: time.Now()}
	for i := range 5000 {
		l.Models = append(l.Models, modelindex.Model{
			ID: fmt.Sprintf("vendor-%x/model-%x-%d-instruct", i*2_654_435_761%977, i*40_503, i), Name: fmt.Sprintf("Vendor %x: Model %x", i%977, i*7919),
			Tier: contract.TierUnknown, Window: 1000 * i, Output: 100 * i, Can: contract.Features(i % 32), Cannot: contract.Features(31 - i%32),
		})
	}
	require.NoError(t, modelindex.Put(t.Context(), b, l))
	bucket, err := b.Bucket(t.Context(), subject.CatalogBucket)
	require.NoError(t, err)
	e, err := bucket.Get(t.Context(), "models."+hex.EncodeToString([]byte("p")))
	require.NoError(t, err)
	t.Logf("5000 models take %d bytes", len(e.Value))
	require.Less(t, len(e.Value), 512<<10)
	c, _ := follow(t, b)
	got, ok := c.Book().Listing("p")
	require.True(t, ok)
	require.Equal(t, l.Models, got.Models)
}

func TestFollowNeedsABus(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := modelindex.Follow(ctx, b, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, modelindex.Put(ctx, b, listing("p")), context.Canceled)
	var none *modelindex.Copy
	none.Stop()
}

// A listing that is removed is gone for everyone, and one that is not there can be removed too.
func TestRemove(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	require.NoError(t, modelindex.Put(t.Context(), b, modelindex.Listing{Provider: "groq", Models: []modelindex.Model{{ID: "m"}}}))
	require.NoError(t, modelindex.Put(t.Context(), b, modelindex.Listing{Provider: "other", From: "there", Models: []modelindex.Model{{ID: "n"}}}))
	c, _ := follow(t, b)
	require.NoError(t, modelindex.Remove(t.Context(), b, "groq"))
	require.NoError(t, modelindex.Remove(t.Context(), b, "nobody"))
	await.True(t, func() bool { _, ok := c.Book().Listing("groq"); return !ok })
	l, ok := c.Book().Listing("other")
	require.True(t, ok)
	require.Equal(t, "there", l.From)
}
