package queue

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"
)

// run calls those who are first, while anybody waits here.
func (s *Set) run(ctx context.Context) {
	for {
		var again <-chan time.Time
		if s.callAll() {
			again = time.After(tryEvery)
		}
		select {
		case <-s.wake:
		case <-again:
		case <-ctx.Done():
			return
		}
	}
}

// callAll says whether anybody waits here.
func (s *Set) callAll() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own > 0 {
		for model := range s.lines {
			s.call(model)
		}
	}
	return s.own > 0
}

// write keeps the entries of this dispatcher in the store as they are here, and drops those that others do not renew.
func (s *Set) write(ctx context.Context) {
	renewal := time.NewTicker(s.cfg.TTL / 3)
	defer renewal.Stop()
	for {
		select {
		case <-s.news:
		case <-renewal.C:
			s.renew(time.Now())
		case <-ctx.Done():
			return
		}
		if err := s.flush(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("writing the entry of a queue", slog.Any("error", err))
			select {
			case <-time.After(storePause):
				poke(s.news)
			case <-ctx.Done():
			}
		}
	}
}

func (s *Set) renew(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for request, w := range maps.Clone(s.known) {
		switch {
		case w.place != nil:
			s.dirty[request] = struct{}{}
		case now.Sub(w.seen) > s.cfg.TTL: // its dispatcher is gone
			s.remove(w)
			s.call(w.Model)
		}
	}
}

// flush writes what has changed.
func (s *Set) flush(ctx context.Context) error {
	s.mu.Lock()
	requests := slices.Sorted(maps.Keys(s.dirty))
	s.mu.Unlock()
	for _, request := range requests {
		if err := s.tell(ctx, request); err != nil {
			return err
		}
	}
	return nil
}

// tell writes or removes an entry. What could not be told is so the next time.
func (s *Set) tell(ctx context.Context, request string) (err error) {
	s.mu.Lock()
	delete(s.dirty, request)
	w := s.known[request]
	var value []byte
	if w != nil && w.place != nil {
		value, err = w.encode(s.cfg.Owner)
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if value != nil {
		err = s.store.Put(ctx, request, value)
	} else {
		err = s.store.Remove(ctx, request)
	}
	if err != nil {
		s.mu.Lock()
		s.dirty[request] = struct{}{}
		s.mu.Unlock()
	}
	return err
}

// Dismiss ends the waiting of all who wait here, who get ErrClosed, and lets nobody in any more.
func (s *Set) Dismiss() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	for _, w := range s.known {
		if w.place != nil {
			close(w.place.turn)
		}
	}
}

// Close dismisses everybody, and removes the entries of those who left before, until ctx ends: what is left expires.
func (s *Set) Close(ctx context.Context) error {
	s.Dismiss()
	s.cancel()
	s.wg.Wait()
	return s.flush(ctx)
}
