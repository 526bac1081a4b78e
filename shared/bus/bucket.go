package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Errors of buckets.
var (
	ErrKeyNotFound = errors.New("key not found")
	ErrConflict    = errors.New("key was changed meanwhile") // a lost compare-and-swap
)

// Bucket is a key-value store shared by all services.
type Bucket struct {
	bus *Bus
	kv  jetstream.KeyValue
}

// bucketAppears is for how long a bucket may be unknown to the server that answers: one of a cluster learns what another one has made a while later.
const bucketAppears = 15 * time.Second

// Bucket opens a bucket of the topology. While the server is away it waits, until ctx ends.
func (b *Bus) Bucket(ctx context.Context, name string) (*Bucket, error) {
	begin := time.Now()
	for {
		if err := b.session.await(ctx); err != nil {
			return nil, err
		}
		kv, err := b.js.KeyValue(ctx, name)
		if err == nil {
			return &Bucket{bus: b, kv: kv}, nil
		}
		err = fmt.Errorf("opening bucket %s: %w", name, err)
		appears := errors.Is(err, jetstream.ErrBucketNotFound) && time.Since(begin) < bucketAppears
		if !appears && !passing(err) && !errors.Is(err, context.DeadlineExceeded) {
			return nil, err
		}
		select {
		case <-time.After(reopenPause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// Entry is one value of a bucket.
type Entry struct {
	Key      string
	Value    []byte
	Revision uint64
	Created  time.Time // by the server's clock
	Deleted  bool
}

// Get gives the current value. The error is ErrKeyNotFound when there is none.
func (k *Bucket) Get(ctx context.Context, key string) (Entry, error) {
	e, err := k.kv.Get(ctx, key)
	if err != nil {
		return Entry{}, bucketError("reading", key, err)
	}
	return entry(e), nil
}

// Create stores the first value of a key. The error is ErrConflict when there is one already.
func (k *Bucket) Create(ctx context.Context, key string, value []byte) (revision uint64, err error) {
	rev, err := k.kv.Create(ctx, key, value)
	return rev, bucketError("creating", key, err)
}

// Update replaces the value of the revision. The error is ErrConflict when the key has another revision by now.
func (k *Bucket) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	rev, err := k.kv.Update(ctx, key, value, revision)
	return rev, bucketError("updating", key, err)
}

// Put stores a value whatever was there.
func (k *Bucket) Put(ctx context.Context, key string, value []byte) (revision uint64, err error) {
	rev, err := k.kv.Put(ctx, key, value)
	return rev, bucketError("writing", key, err)
}

// Delete removes a key; with a revision other than 0 only if that is the current one.
func (k *Bucket) Delete(ctx context.Context, key string, revision uint64) error {
	var opts []jetstream.KVDeleteOpt
	if revision != 0 {
		opts = append(opts, jetstream.LastRevision(revision))
	}
	return bucketError("deleting", key, k.kv.Delete(ctx, key, opts...))
}

// bucketError says in the terms of this package what went wrong. A lost compare-and-swap has another code on replicated streams.
func bucketError(doing, key string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrKeyNotFound):
		err = ErrKeyNotFound
	case errors.Is(err, jetstream.ErrKeyExists), errors.Is(err, jetstream.ErrKeyRevisionMismatch):
		err = ErrConflict
	}
	return fmt.Errorf("%s %s: %w", doing, key, err)
}

func entry(e jetstream.KeyValueEntry) Entry {
	return Entry{
		Key: e.Key(), Value: e.Value(), Revision: e.Revision(), Created: e.Created(), Deleted: e.Operation() != jetstream.KeyValuePut,
	}
}
