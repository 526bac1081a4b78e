package clientkey

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"hydrallm/shared/bus"
	"hydrallm/shared/fault"
	"hydrallm/shared/subject"
)

// maxKeys bounds the keys that there are, the revoked ones among them.
const maxKeys = 10_000

// Errors of changes.
var (
	ErrNoKey = fault.New(fault.NotFound, "There is no such client key")

	errRevoked = fault.New(fault.Conflict, "This client key is revoked, which is for good")
	errTaken   = &fault.Fault{Kind: fault.Conflict, Param: "name", Message: "Another client key has this name"}
	errFull    = fault.New(fault.Conflict, "There are too many client keys")
)

// Book knows all named keys. It is safe for concurrent use.
type Book struct {
	log    *slog.Logger
	bucket *bus.Bucket
	watch  *bus.Watch
	some   atomic.Bool // there is a key, revoked or not

	mu     sync.RWMutex
	byHash map[Digest]*Key // those that are not revoked, and those that are
	byID   map[string]known
}

type known struct {
	key      *Key
	revision uint64 // of the bucket
}

// NewBook makes a book without keys.
func NewBook(log *slog.Logger) *Book {
	return &Book{log: log, byHash: map[Digest]*Key{}, byID: map[string]known{}}
}

// Follow takes over the keys that there are, and from then on each change. The caller must Stop the book.
func (b *Book) Follow(ctx context.Context, from *bus.Bus) (err error) {
	if b.bucket, err = from.Bucket(ctx, subject.ClientKeysBucket); err != nil {
		return err
	}
	b.watch, err = b.bucket.Watch(ctx, "*", b.observe)
	return err
}

// Stop ends the following.
func (b *Book) Stop() {
	if b != nil {
		b.watch.Stop()
	}
}

// observe takes over what the bucket says. Keys are never removed from it: one that is gone was lost with the disk of NATS, and counts on.
func (b *Book) observe(e bus.Entry) {
	if e.Deleted {
		return
	}
	b.some.Store(true) // also when it can't be read: it is no reason to let everybody in
	k := &Key{}
	if err := json.Unmarshal(e.Value, k); err != nil || k.ID != e.Key || len(k.Hash) != len(Digest{}) {
		b.log.Warn("a client key can't be read", slog.String("id", e.Key))
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.byID[k.ID]
	if e.Revision < before.revision {
		return
	}
	if before.key != nil {
		delete(b.byHash, Digest(before.key.Hash))
	}
	b.byHash[Digest(k.Hash)] = k
	b.byID[k.ID] = known{k, e.Revision}
}

// Any says whether there ever was a key.
func (b *Book) Any() bool { return b.some.Load() }

// Find gives the key with a hash, nil if there is none. It may be revoked or have expired.
func (b *Book) Find(sum *Digest) *Key {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.byHash[*sum]
}

// Get gives the key with an id, nil if there is none.
func (b *Book) Get(id string) *Key {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.byID[id].key
}

// All gives all keys, the newest first.
func (b *Book) All() []*Key {
	b.mu.RLock()
	all := make([]*Key, 0, len(b.byID))
	for _, k := range b.byID {
		all = append(all, k.key)
	}
	b.mu.RUnlock()
	slices.SortFunc(all, func(x, y *Key) int { return cmp.Or(y.CreatedAt.Compare(x.CreatedAt), cmp.Compare(x.ID, y.ID)) })
	return all
}

// Make stores a new key with what k says, and gives it with its secret, which is not kept.
func (b *Book) Make(ctx context.Context, k Key) (made *Key, secret string, err error) {
	k.ID, k.CreatedAt, k.RevokedAt = newID(), time.Now().UTC().Truncate(time.Millisecond), time.Time{}
	if err := k.check(k.CreatedAt); err != nil {
		return nil, "", err
	}
	if err := b.room(&k); err != nil {
		return nil, "", err
	}
	secret, k.Hash = newSecret()
	revision, err := b.write(ctx, &k, b.bucket.Create)
	if err != nil {
		return nil, "", err
	}
	b.take(&k, revision)
	return &k, secret, nil
}

// Change changes a key by a function, which may be called again with a newer one.
func (b *Book) Change(ctx context.Context, id string, change func(k *Key) error) (*Key, error) {
	if !isID(id) {
		return nil, ErrNoKey
	}
	for {
		e, err := b.bucket.Get(ctx, id)
		switch {
		case errors.Is(err, bus.ErrKeyNotFound):
			return nil, ErrNoKey
		case err != nil:
			return nil, unavailable(err)
		}
		k := &Key{}
		if err := json.Unmarshal(e.Value, k); err != nil {
			return nil, fmt.Errorf("reading client key %s: %w", id, err)
		}
		expires := k.ExpiresAt
		if err := change(k); err != nil {
			return nil, err
		}
		now := time.Now()
		if k.ExpiresAt.Equal(expires) {
			now = time.Time{} // it may have expired long ago
		}
		if err := k.check(now); err != nil {
			return nil, err
		}
		if err := b.room(k); err != nil {
			return nil, err
		}
		revision, err := b.write(ctx, k, func(ctx context.Context, key string, value []byte) (uint64, error) {
			return b.bucket.Update(ctx, key, value, e.Revision)
		})
		if errors.Is(err, bus.ErrConflict) {
			continue
		}
		if err != nil {
			return nil, err
		}
		b.take(k, revision)
		return k, nil
	}
}

// Revoke takes a key back for good. Its record stays, so that its usage keeps its name, and so that the gateway does not stand open when the last one
// is revoked.
func (b *Book) Revoke(ctx context.Context, id string) (*Key, error) {
	return b.Change(ctx, id, func(k *Key) error {
		if !k.Revoked() {
			k.RevokedAt = time.Now().UTC().Truncate(time.Millisecond)
		}
		return nil
	})
}

// Rotate gives a key another secret; the one before counts no longer.
func (b *Book) Rotate(ctx context.Context, id string) (k *Key, secret string, err error) {
	secret, hash := newSecret()
	k, err = b.Change(ctx, id, func(k *Key) error {
		if k.Revoked() {
			return errRevoked
		}
		k.Hash = hash
		return nil
	})
	return k, secret, err
}

// room says whether there may be a key like this beside the others. Two that are made at the same moment over two ingresses may have one name.
func (b *Book) room(k *Key) error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if _, known := b.byID[k.ID]; !known && len(b.byID) >= maxKeys {
		return errFull
	}
	for id, other := range b.byID {
		if id != k.ID && other.key.Name == k.Name && !other.key.Revoked() && !k.Revoked() {
			return errTaken
		}
	}
	return nil
}

func (b *Book) write(ctx context.Context, k *Key, store func(ctx context.Context, key string, value []byte) (uint64, error)) (uint64, error) {
	value, err := json.Marshal(k)
	if err != nil {
		return 0, fmt.Errorf("encoding a client key: %w", err)
	}
	revision, err := store(ctx, k.ID, value)
	if err != nil && !errors.Is(err, bus.ErrConflict) {
		return 0, unavailable(err)
	}
	return revision, err
}

// take has a change count here before the bucket tells of it.
func (b *Book) take(k *Key, revision uint64) {
	value, err := json.Marshal(k)
	if err == nil {
		b.observe(bus.Entry{Key: k.ID, Value: value, Revision: revision})
	}
}

func unavailable(err error) error {
	return &fault.Fault{Kind: fault.Unavailable, Message: "The client keys can't be changed at the moment", RetryAfter: time.Second, Cause: err}
}
