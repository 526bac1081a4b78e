package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	watchAhead    = 256
	watchInactive = 15 * time.Second // after which the server removes what is left of a watch
)

var errSkipped = errors.New("a change of the bucket was lost")

// Watch follows a bucket. It outlives outages of the server: when the bucket is back, it is read again.
type Watch struct {
	js      jetstream.JetStream
	bucket  string
	pattern string
	fn      func(Entry)
	puller  *puller

	known map[string]version // what fn knows of; used by open and take

	// The present reading, begun by open.
	seen     map[string]struct{} // keys that it has met; nil when it has caught up
	caughtUp chan struct{}       // closed then
	left     uint64              // messages until then
	last     uint64              // number of the last message
}

// version tells the values of a key apart. Revisions alone do not: a bucket that was in memory counts from 1 again.
type version struct {
	revision uint64
	created  int64 // Unix nanoseconds
}

// Watch calls fn with every current value that matches pattern ("*" and ">" as in subjects) and returns when it has seen them all; from then
// on fn gets each change, in order, one call at a time. After an outage of the server fn gets what is different then, and a deletion for each
// value that has vanished. Values that expire are not reported before that. The caller must Stop the watch.
func (k *Bucket) Watch(ctx context.Context, pattern string, fn func(Entry)) (*Watch, error) {
	w := &Watch{js: k.bus.js, bucket: k.kv.Bucket(), pattern: pattern, fn: fn, known: map[string]version{}}
	w.puller = &puller{
		bus: k.bus, name: w.bucket + " " + pattern, open: w.open, take: w.take, ahead: watchAhead, anew: true,
	}
	if err := w.puller.start(ctx); err != nil {
		return nil, err
	}
	return w, nil
}

// Stop ends the watch and waits for the last call of its function.
func (w *Watch) Stop() {
	if w != nil {
		w.puller.stop()
	}
}

func (w *Watch) subjects() string { return "$KV." + w.bucket + "." }

// open begins a reading.
func (w *Watch) open(ctx context.Context) (cons jetstream.Consumer, caughtUp <-chan struct{}, err error) {
	cons, err = w.js.CreateConsumer(ctx, "KV_"+w.bucket, jetstream.ConsumerConfig{
		FilterSubject: w.subjects() + w.pattern, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, AckPolicy: jetstream.AckNonePolicy,
		MemoryStorage: true, Replicas: 1, InactiveThreshold: watchInactive,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("reading a bucket: %w", err)
	}
	w.seen, w.caughtUp, w.last, w.left = map[string]struct{}{}, make(chan struct{}), 0, cons.CachedInfo().NumPending
	if w.left == 0 {
		w.settle()
	}
	return cons, w.caughtUp, nil
}

// take takes in a change. A missing one makes the reading worthless.
func (w *Watch) take(m *message) error {
	meta, err := m.Metadata()
	if err != nil {
		return fmt.Errorf("reading a bucket: %w", err)
	}
	if meta.Sequence.Consumer != w.last+1 {
		return errSkipped
	}
	w.last++
	e := Entry{
		Key: strings.TrimPrefix(m.Subject(), w.subjects()), Value: m.Data(), Revision: meta.Sequence.Stream, Created: meta.Timestamp,
		Deleted: m.Headers().Get("KV-Operation") != "",
	}
	w.tell(e)
	if w.seen == nil {
		return nil
	}
	if w.left--; w.left == 0 || meta.NumPending == 0 {
		w.settle()
	}
	return nil
}

func (w *Watch) tell(e Entry) {
	if e.Deleted {
		delete(w.known, e.Key)
		delete(w.seen, e.Key)
		w.fn(e)
		return
	}
	if w.seen != nil {
		w.seen[e.Key] = struct{}{}
	}
	v := version{e.Revision, e.Created.UnixNano()}
	if w.known[e.Key] != v {
		w.known[e.Key] = v
		w.fn(e)
	}
}

// settle ends the part of a reading that repeats what was there: it tells what has vanished since an earlier one.
func (w *Watch) settle() {
	for key := range w.known {
		if _, there := w.seen[key]; !there {
			delete(w.known, key)
			w.fn(Entry{Key: key, Deleted: true})
		}
	}
	w.seen = nil
	close(w.caughtUp)
}
