package modelindex

import (
	"context"
	"encoding/hex"
	"sync/atomic"

	"hydrallm/shared/bus"
	"hydrallm/shared/subject"
)

// Copy is a local copy of the model index that a watch keeps current. It is safe for concurrent use.
type Copy struct {
	book  atomic.Pointer[Book]
	watch *bus.Watch
}

// Follow begins to watch and returns when the copy holds what is there now. changed may be nil; it is called with the book after each
// listing, those that are there already included, in the goroutine of the watch. The caller must Stop the copy.
func Follow(ctx context.Context, b *bus.Bus, changed func(*Book)) (*Copy, error) {
	bucket, err := b.Bucket(ctx, subject.CatalogBucket)
	if err != nil {
		return nil, err
	}
	c := &Copy{}
	c.book.Store(NewBook())
	c.watch, err = bucket.Watch(ctx, prefix+"*", func(e bus.Entry) {
		c.update(e)
		if changed != nil {
			changed(c.Book())
		}
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// update takes in one entry; one that can't be read counts as none.
func (c *Copy) update(e bus.Entry) {
	provider, err := hex.DecodeString(e.Key[len(prefix):])
	if err != nil {
		return
	}
	l, err := decode(e.Value)
	if e.Deleted || err != nil {
		c.book.Store(c.Book().without(string(provider)))
		return
	}
	l.Provider = string(provider)
	c.book.Store(c.Book().with(l))
}

// Book is the model index as it is known now.
func (c *Copy) Book() *Book { return c.book.Load() }

// Stop ends the watch.
func (c *Copy) Stop() {
	if c != nil {
		c.watch.Stop()
	}
}

// prefix begins the keys of listings; the id of the provider follows in hex, because it may hold anything.
const prefix = "models."

// Put stores the listing of a provider for everyone.
func Put(ctx context.Context, b *bus.Bus, l Listing) error {
	bucket, err := b.Bucket(ctx, subject.CatalogBucket)
	if err != nil {
		return err
	}
	value, err := l.encode()
	if err != nil {
		return err
	}
	_, err = bucket.Put(ctx, keyOf(l.Provider), value)
	return err
}

// Remove takes the listing of a provider away for everyone. A copy that is followed when Remove is called may show it a moment longer.
func Remove(ctx context.Context, b *bus.Bus, provider string) error {
	bucket, err := b.Bucket(ctx, subject.CatalogBucket)
	if err != nil {
		return err
	}
	return bucket.Delete(ctx, keyOf(provider), 0)
}

func keyOf(provider string) string { return prefix + hex.EncodeToString([]byte(provider)) }
