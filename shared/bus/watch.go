package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	watchAhead    = 256
	watchInactive = 15 * time.Second // after which the server removes what is left of a watch
)

var errSkipped = errors.New("a change was lost")

// Watch follows a bucket. It outlives outages of the server: when the bucket is back, it is read again. It does not rely on the signs of life of the
// server either: those come also from a node that is behind with its copy of the bucket, or that does not deliver for another reason.
type Watch struct {
	bus     *Bus
	bucket  string
	pattern string
	fn      func(Entry)
	puller  *puller

	mu      sync.Mutex         // held while fn runs
	known   map[string]version // what fn knows of
	present *reading           // the only one that may call fn; nil after Stop
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
	w := &Watch{bus: k.bus, bucket: k.kv.Bucket(), pattern: pattern, fn: fn, known: map[string]version{}}
	w.puller = &puller{bus: k.bus, name: w.bucket + " " + pattern, open: w.open, ahead: watchAhead, anew: true}
	if err := w.puller.start(ctx); err != nil {
		w.release()
		return nil, err
	}
	return w, nil
}

// Stop ends the watch and waits for the last call of its function.
func (w *Watch) Stop() {
	if w != nil {
		w.puller.stop()
		w.release()
	}
}

// release keeps messages that are still on their way from fn.
func (w *Watch) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.present = nil
}

func (w *Watch) stream() string   { return "KV_" + w.bucket }
func (w *Watch) subjects() string { return "$KV." + w.bucket + "." }

// open begins a reading.
func (w *Watch) open(ctx context.Context) (*source, error) {
	cons, err := w.bus.createConsumer(ctx, w.stream(), jetstream.ConsumerConfig{
		FilterSubject: w.subjects() + w.pattern, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, AckPolicy: jetstream.AckNonePolicy,
		MemoryStorage: true, Replicas: 1, InactiveThreshold: watchInactive,
	})
	if err != nil {
		return nil, fmt.Errorf("reading a bucket: %w", err)
	}
	r := w.newReading()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.present = r
	return &source{cons: cons, take: r.take, caughtUp: r.caughtUp, check: r.check, poke: r.poke}, nil
}

func (w *Watch) tell(e Entry) {
	if e.Deleted {
		delete(w.known, e.Key)
		w.fn(e)
		return
	}
	v := version{e.Revision, e.Created.UnixNano()}
	if w.known[e.Key] != v {
		w.known[e.Key] = v
		w.fn(e)
	}
}
