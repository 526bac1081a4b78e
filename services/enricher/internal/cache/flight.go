package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// errPanicked is the error of work that panicked, which is the affair of a page and nothing that may end the process.
var errPanicked = errors.New("the work panicked")

// flights share work by key.
type flights struct {
	mu      sync.Mutex
	running map[string]*flight
	wg      sync.WaitGroup
}

// flight is work under way.
type flight struct {
	cancel  context.CancelFunc
	waiters int           // guarded by the mutex of flights
	done    chan struct{} // closed when value and err are there
	value   any
	err     error
}

// do gives what work gives. joined says that somebody else had begun it. Work ends when nobody waits for it.
func (f *flights) do(ctx context.Context, key string, work func(context.Context) (any, error)) (value any, joined bool, err error) {
	for {
		fl, joined := f.join(ctx, key, work)
		select {
		case <-fl.done:
			if joined && ended(fl.err) && ctx.Err() == nil { // the first one had less time
				continue
			}
			return fl.value, joined, fl.err
		case <-ctx.Done():
			f.leave(key, fl)
			return nil, joined, ctx.Err()
		}
	}
}

func ended(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

func (f *flights) join(ctx context.Context, key string, work func(context.Context) (any, error)) (fl *flight, joined bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fl := f.running[key]; fl != nil {
		fl.waiters++
		return fl, true
	}
	own, cancel := detach(ctx)
	fl = &flight{cancel: cancel, waiters: 1, done: make(chan struct{})}
	f.running[key] = fl
	f.wg.Go(func() {
		defer close(fl.done)
		defer f.forget(key, fl)
		defer func() {
			if p := recover(); p != nil {
				fl.value, fl.err = nil, fmt.Errorf("%w: %v", errPanicked, p)
			}
		}()
		fl.value, fl.err = work(own)
	})
	return fl, false
}

// detach gives a context with the deadline and the values of ctx, which goes on without it.
func detach(ctx context.Context) (context.Context, context.CancelFunc) {
	own := context.WithoutCancel(ctx)
	if until, ok := ctx.Deadline(); ok {
		return context.WithDeadline(own, until)
	}
	return context.WithCancel(own)
}

// leave takes back a wait.
func (f *flights) leave(key string, fl *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fl.waiters--; fl.waiters > 0 {
		return
	}
	fl.cancel()
	if f.running[key] == fl {
		delete(f.running, key)
	}
}

func (f *flights) forget(key string, fl *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fl.cancel()
	if f.running[key] == fl {
		delete(f.running, key)
	}
}

// stop waits for what nobody waits for any more.
func (f *flights) stop() { f.wg.Wait() }
