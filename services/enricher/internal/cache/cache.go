// Package cache keeps what was read from the web, in a bucket that all enrichers share, and has one of many who ask for the same thing at the
// same time do the work.
package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"hydrallm/shared/bus"
)

// bucketLimit bounds a look into the bucket and a write to it: without it, a request reads the page itself.
const bucketLimit = 500 * time.Millisecond

// Bucket is where things are kept; *bus.Bucket is one.
type Bucket interface {
	// Get gives the current value. The error is bus.ErrKeyNotFound when there is none.
	Get(ctx context.Context, key string) (bus.Entry, error)
	// Put stores a value whatever was there.
	Put(ctx context.Context, key string, value []byte) (revision uint64, err error)
}

// Cache keeps things by name. It is safe for concurrent use. What is asked of it at the end must be over before Stop.
type Cache struct {
	bucket Bucket
	ttl    time.Duration
	log    *slog.Logger
	shared flights
}

// New makes a cache that keeps things for ttl at most; with 0 it only shares work.
func New(bucket Bucket, ttl time.Duration, log *slog.Logger) *Cache {
	return &Cache{bucket: bucket, ttl: ttl, log: log, shared: flights{running: map[string]*flight{}}}
}

// Stop ends work that nobody waits for any more.
func (c *Cache) Stop() { c.shared.stop() }

// entry is a value with the time at which it was made.
type entry[T any] struct {
	At    time.Time `json:"at"`
	Value T         `json:"value"`
}

// Get gives the thing of a kind and a name: one that is kept and no older than maxAge, or what make gives, which is kept if keep says so. cached says that
// it is not new. make is called once for all who wait for it; its context ends when none does any more, and has the deadline of the first. An error of make
// is everybody's, and nothing is kept.
func Get[T any](ctx context.Context, c *Cache, kind, name string, maxAge time.Duration, keep func(T) bool, produce func(context.Context) (T, error)) (value T, cached bool, err error) {
	key := keyOf(kind, name)
	if maxAge = min(maxAge, c.ttl); maxAge > 0 {
		if value, ok := read[T](ctx, c, key, maxAge); ok {
			return value, true, nil
		}
	}
	got, joined, err := c.shared.do(ctx, key, func(ctx context.Context) (any, error) {
		value, err := produce(ctx)
		if err == nil && c.ttl > 0 && keep(value) {
			c.write(ctx, key, entry[T]{time.Now(), value})
		}
		return value, err
	})
	if err != nil {
		return value, false, err
	}
	return got.(T), joined, nil
}

// keyOf names an entry. Names are of any length and hold anything.
func keyOf(kind, name string) string {
	sum := sha256.Sum256([]byte(name))
	return kind + "." + hex.EncodeToString(sum[:])
}

func read[T any](ctx context.Context, c *Cache, key string, maxAge time.Duration) (value T, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, bucketLimit)
	defer cancel()
	stored, err := c.bucket.Get(ctx, key)
	if err != nil {
		if !errors.Is(err, bus.ErrKeyNotFound) {
			c.log.DebugContext(ctx, "looking for what was read before", slog.Any("error", err))
		}
		return value, false
	}
	var e entry[T]
	if err := json.Unmarshal(stored.Value, &e); err != nil { // of another version
		return value, false
	}
	age := time.Since(e.At)
	return e.Value, age >= 0 && age <= maxAge
}

// write keeps a value. Who asked for it has it in any case.
func (c *Cache) write(ctx context.Context, key string, e any) {
	data, err := json.Marshal(e)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bucketLimit)
		defer cancel()
		_, err = c.bucket.Put(ctx, key, data)
	}
	if err != nil {
		c.log.DebugContext(ctx, "keeping what was read", slog.Any("error", err))
	}
}
