package breaker

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
)

// Set holds the breakers of all channels. It does not change after New.
type Set struct {
	breakers map[string]*Breaker
	ids      []string // sorted
}

// NewSet makes one breaker for each channel. onTransition may be nil; see New.
func NewSet(channels map[string]Config, onTransition func(channel string, t Transition)) (*Set, error) {
	s := &Set{breakers: make(map[string]*Breaker, len(channels)), ids: slices.Sorted(maps.Keys(channels))}
	var errs []error
	for _, id := range s.ids {
		var notify func(Transition)
		if onTransition != nil {
			notify = func(t Transition) { onTransition(id, t) }
		}
		b, err := New(channels[id], notify)
		if err != nil {
			errs = append(errs, fmt.Errorf("channel %s: %w", id, err))
		}
		s.breakers[id] = b
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return s, nil
}

// Get gives the breaker of a channel: nil, which lets everything through, when the channel has none.
func (s *Set) Get(channel string) *Breaker { return s.breakers[channel] }

// All gives the breakers in the order of their channels' names.
func (s *Set) All() iter.Seq2[string, *Breaker] {
	return func(yield func(string, *Breaker) bool) {
		for _, id := range s.ids {
			if !yield(id, s.breakers[id]) {
				return
			}
		}
	}
}

// Snapshot reads all breakers, for the status page. It changes nothing.
func (s *Set) Snapshot() map[string]Snapshot {
	all := make(map[string]Snapshot, len(s.ids))
	for id, b := range s.All() {
		all[id] = b.Snapshot()
	}
	return all
}
