package breaker

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync/atomic"
)

// Set holds the breakers of all channels. It does not change after New.
type Set struct {
	notify func(channel string, t Transition)
	now    atomic.Pointer[map[string]*Breaker] // never changed, but replaced
}

// NewSet makes one breaker for each channel. onTransition may be nil; see New.
func NewSet(channels map[string]Config, onTransition func(channel string, t Transition)) (*Set, error) {
	s := &Set{notify: onTransition}
	s.now.Store(&map[string]*Breaker{})
	return s, s.Renew(channels)
}

// Renew gives channels new breakers, whether they had some before or not. Calls under way report to those that they began with. With an error nothing
// changes. It must not be called by two at the same time.
func (s *Set) Renew(channels map[string]Config) error {
	all := maps.Clone(*s.now.Load())
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(channels)) {
		var notify func(Transition)
		if s.notify != nil {
			notify = func(t Transition) { s.notify(id, t) }
		}
		b, err := New(channels[id], notify)
		if err != nil {
			errs = append(errs, fmt.Errorf("channel %s: %w", id, err))
		}
		all[id] = b
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	s.now.Store(&all)
	return nil
}

// Get gives the breaker of a channel: nil, which lets everything through, when the channel has none.
func (s *Set) Get(channel string) *Breaker { return (*s.now.Load())[channel] }

// All gives the breakers in the order of their channels' names.
func (s *Set) All() iter.Seq2[string, *Breaker] {
	return func(yield func(string, *Breaker) bool) {
		all := *s.now.Load()
		for _, id := range slices.Sorted(maps.Keys(all)) {
			if !yield(id, all[id]) {
				return
			}
		}
	}
}

// Snapshot reads all breakers, for the status page. It changes nothing.
func (s *Set) Snapshot() map[string]Snapshot {
	all := map[string]Snapshot{}
	for id, b := range s.All() {
		all[id] = b.Snapshot()
	}
	return all
}
