package bus

import (
	"context"
	"fmt"
	"strings"
)

// reading is one reading of a bucket by a watch: what was there when it began, then the changes. What was there counts only when the leader of the bucket
// has nothing that is missing: the consumer may be at a node whose copy is old. The mutex of the watch guards it.
type reading struct {
	watch    *Watch
	caughtUp chan struct{} // closed when what was there has been told
	poke     chan struct{} // has room for one: the consumer has no more, so that it may be complete

	settled  bool
	entries  []Entry // until then
	goal     uint64  // number of the last message of the bucket when it began, 0 = not known yet
	messages uint64  // of the consumer, taken
	position uint64  // number of the last message in the bucket
	stall    stall
}

func (w *Watch) newReading() *reading {
	return &reading{watch: w, caughtUp: make(chan struct{}), poke: make(chan struct{}, 1)}
}

// take takes in a change. A missing one makes the reading worthless.
func (r *reading) take(m *message) error {
	w := r.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.present != r {
		return nil
	}
	meta, err := m.Metadata()
	if err != nil {
		return fmt.Errorf("reading a bucket: %w", err)
	}
	if meta.Sequence.Consumer != r.messages+1 {
		return errSkipped
	}
	r.messages, r.position = meta.Sequence.Consumer, meta.Sequence.Stream
	e := Entry{
		Key: strings.TrimPrefix(m.Subject(), w.subjects()), Value: m.Data(), Revision: meta.Sequence.Stream, Created: meta.Timestamp,
		Deleted: m.Headers().Get("KV-Operation") != "",
	}
	if r.settled {
		w.tell(e)
		return nil
	}
	r.entries = append(r.entries, e)
	switch {
	case r.goal > 0 && r.position >= r.goal:
		r.settle()
	case meta.NumPending == 0:
		select {
		case r.poke <- struct{}{}:
		default:
		}
	}
	return nil
}

// settle ends the part of a reading that repeats what was there: it tells what is different, and what has vanished since an earlier one.
func (r *reading) settle() {
	w := r.watch
	there := make(map[string]struct{}, len(r.entries))
	for _, e := range r.entries {
		w.tell(e)
		if delete(there, e.Key); !e.Deleted {
			there[e.Key] = struct{}{}
		}
	}
	for key := range w.known {
		if _, ok := there[key]; !ok {
			delete(w.known, key)
			w.fn(Entry{Key: key, Deleted: true})
		}
	}
	r.settled, r.entries = true, nil
	close(r.caughtUp)
}

// check compares the reading with what the leader of the bucket has.
func (r *reading) check(ctx context.Context, tick bool) error {
	w := r.watch
	w.mu.Lock()
	position := r.position // before the leader is asked, so that it knows at least as much
	w.mu.Unlock()
	missing, last, err := w.bus.misses(ctx, w.stream(), w.subjects()+w.pattern, position)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil || w.present != r {
		return nil // who can't be asked says nothing about the reading
	}
	if r.goal == 0 {
		r.goal = last
	}
	moved := r.position != position
	if !r.settled && (!missing && !moved || r.goal > 0 && r.position >= r.goal) {
		r.settle()
	}
	if tick && r.stall.judge(position, missing) && !moved {
		return errStalled
	}
	return nil
}
