package lifecycle

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// undoLimit bounds the undoing of a start that failed.
const undoLimit = 10 * time.Second

// Switch is the Start and Stop of a service, for embedding. What exists of the service between the two is a Run, which each start makes anew. It
// keeps the contract of Service for any number of goroutines.
type Switch[Run any] struct {
	begin, end func(context.Context, *Run) error

	mu  sync.Mutex          // held while the service starts or stops
	run atomic.Pointer[Run] // from the end of begin to the end of end, else nil
}

// NewSwitch makes the switch of a service. begin fills in an empty Run and returns when the service works; end stops what there is of a Run,
// which may be a part when begin failed. Both are called one at a time; neither may call Start or Stop.
func NewSwitch[Run any](begin, end func(context.Context, *Run) error) *Switch[Run] {
	return &Switch[Run]{begin: begin, end: end}
}

// Start implements Service.
func (s *Switch[Run]) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run.Load() != nil {
		return nil
	}
	r := new(Run)
	if err := s.begin(ctx, r); err != nil {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
		defer cancel()
		return errors.Join(err, s.end(undo, r))
	}
	s.run.Store(r)
	return nil
}

// Stop implements Service.
func (s *Switch[Run]) Stop(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.run.Load()
	if r == nil {
		return nil
	}
	defer s.run.Store(nil)
	return s.end(ctx, r)
}

// Running gives the run of a service that is started or being stopped, or nil. It does not wait for a start or a stop.
func (s *Switch[Run]) Running() *Run { return s.run.Load() }
