package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Errors of buckets.
var (
	ErrKeyNotFound = errors.New("key not found")
	ErrConflict    = errors.New("key was changed meanwhile") // a lost compare-and-swap
)

// Bucket is a key-value store shared by all services.
type Bucket struct{ kv jetstream.KeyValue }

// Bucket opens a bucket of the topology.
func (b *Bus) Bucket(ctx context.Context, name string) (*Bucket, error) {
	kv, err := b.js.KeyValue(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("opening bucket %s: %w", name, err)
	}
	return &Bucket{kv: kv}, nil
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

const jsErrWrongLastSequence jetstream.ErrorCode = 10071

func bucketError(doing, key string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return fmt.Errorf("%s %s: %w", doing, key, ErrKeyNotFound)
	}
	api, ok := errors.AsType[*jetstream.APIError](err)
	if errors.Is(err, jetstream.ErrKeyExists) || ok && api.ErrorCode == jsErrWrongLastSequence {
		return fmt.Errorf("%s %s: %w", doing, key, ErrConflict)
	}
	return fmt.Errorf("%s %s: %w", doing, key, err)
}

func entry(e jetstream.KeyValueEntry) Entry {
	return Entry{
		Key: e.Key(), Value: e.Value(), Revision: e.Revision(), Created: e.Created(), Deleted: e.Operation() != jetstream.KeyValuePut,
	}
}

// Watch is a running watch of a bucket.
type Watch struct {
	watcher jetstream.KeyWatcher
	wg      sync.WaitGroup
}

// Watch calls fn with every current value that matches pattern ("*" and ">" as in subjects) and returns when it has seen them all; from then
// on fn gets each change, in order, in the watch's own goroutine. Values that expire are not reported. The caller must Stop the watch.
func (k *Bucket) Watch(ctx context.Context, pattern string, fn func(Entry)) (*Watch, error) {
	watcher, err := k.kv.Watch(context.WithoutCancel(ctx), pattern)
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", pattern, err)
	}
	w := &Watch{watcher: watcher}
	seen := make(chan struct{})
	w.wg.Go(func() {
		initial := true
		for e := range watcher.Updates() {
			if e != nil {
				fn(entry(e))
				continue
			}
			if initial { // nil marks the end of the current values
				initial = false
				close(seen)
			}
		}
		if initial {
			close(seen)
		}
	})
	select {
	case <-seen:
		return w, nil
	case <-ctx.Done():
		return nil, errors.Join(fmt.Errorf("watching %s: %w", pattern, ctx.Err()), w.Stop())
	}
}

// Stop ends the watch and waits for its goroutine.
func (w *Watch) Stop() error {
	if w == nil {
		return nil
	}
	err := w.watcher.Stop()
	w.wg.Wait()
	if err != nil {
		return fmt.Errorf("ending a watch: %w", err)
	}
	return nil
}
