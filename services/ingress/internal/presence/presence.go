// Package presence knows whether a dispatcher is there.
package presence

import (
	"context"
	"sync"
	"time"

	"hydrallm/shared/bus"
	"hydrallm/shared/subject"
)

// Fresh is how long an entry counts after it was written; dispatchers write theirs every few seconds.
const Fresh = 15 * time.Second

const dispatchers = "dispatcher.>"

// Watch follows the entries that dispatchers put into the state bucket.
type Watch struct {
	watch *bus.Watch

	mu   sync.Mutex
	seen map[string]time.Time
}

// Start begins to watch. The caller must Stop the watch.
func Start(ctx context.Context, b *bus.Bus) (*Watch, error) {
	bucket, err := b.Bucket(ctx, subject.StateBucket)
	if err != nil {
		return nil, err
	}
	w := &Watch{seen: map[string]time.Time{}}
	if w.watch, err = bucket.Watch(ctx, dispatchers, w.update); err != nil {
		return nil, err
	}
	return w, nil
}

func (w *Watch) update(e bus.Entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.Deleted {
		delete(w.seen, e.Key)
		return
	}
	w.seen[e.Key] = time.Now()
}

// Present says whether at least one dispatcher has shown itself lately, by the local clock.
func (w *Watch) Present() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	present := false
	for key, at := range w.seen {
		if time.Since(at) < Fresh {
			present = true
		} else {
			delete(w.seen, key)
		}
	}
	return present
}

// Stop ends the watch.
func (w *Watch) Stop() error {
	if w == nil {
		return nil
	}
	return w.watch.Stop()
}
