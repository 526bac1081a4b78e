package discover

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/shared/modelindex"
)

// How often sources are asked. One that gave no list is asked again soon, and then less and less often.
const (
	interval      = time.Hour
	firstRetry    = time.Minute
	sourceTimeout = 20 * time.Second
	publishLimit  = 10 * time.Second
)

// ErrStopped says that the runner was stopped.
var ErrStopped = errors.New("discovery is stopped")

// Config says whom to ask and what to do with the answers. The functions must be safe for concurrent use.
type Config struct {
	Sources []Source
	Client  dialect.Client
	Premium []string // parts of ids that make a model premium
	Free    []string // parts of ids that make a model free
	Logger  *slog.Logger

	// Keys gives keys of a provider in the order in which to try them, one that is "" for a provider that needs none. When there are none to
	// use now, nobody is asked.
	Keys func(provider string) []Key
	// Publish tells everyone what a provider offers.
	Publish func(ctx context.Context, l modelindex.Listing) error
	// Reached is told whether there was a connection to a provider that was asked. May be nil.
	Reached func(provider string, ok bool)
	// Fresh says that another dispatcher asked the same source a moment ago, so that it need not be done here. May be nil. Refresh does not ask.
	Fresh func(s Source) bool
}

// Key is a credential. Logs name it by its index.
type Key struct {
	Index int
	Value string
}

// maxKeys bounds how many keys are tried for one list.
const maxKeys = 3

// Runner asks the sources when it starts, then every hour, and on demand. A source that fails, or hangs, keeps nobody waiting but itself,
// and what it said before stays published.
type Runner struct {
	cfg Config

	ctx    context.Context //nolint:containedctx // the lifetime of the runner, ended by Stop
	cancel context.CancelFunc
	wg     sync.WaitGroup
	turn   chan struct{} // held during a round: there is one at a time
	due    []time.Time   // by source; guarded by turn
	misses []int         // failures in a row, by source; guarded by turn

	mu      sync.Mutex
	stopped bool
	refresh chan struct{}   // closed at the end of the round that Refresh waits for; nil when there is none
	hurried map[string]bool // providers that Hurry named
	hurry   chan struct{}   // has room for one: somebody was named
	wake    chan struct{}   // has room for one: the times have changed
}

// NewRunner makes a runner that does nothing before Start or Refresh.
func NewRunner(cfg Config) *Runner {
	if cfg.Reached == nil {
		cfg.Reached = func(string, bool) {}
	}
	if cfg.Fresh == nil {
		cfg.Fresh = func(Source) bool { return false }
	}
	n := len(cfg.Sources)
	r := &Runner{cfg: cfg, turn: make(chan struct{}, 1), due: make([]time.Time, n), misses: make([]int, n), hurried: map[string]bool{}, hurry: make(chan struct{}, 1), wake: make(chan struct{}, 1)}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Start begins to ask in the background and returns at once. It must be called once at most, and not after Stop.
func (r *Runner) Start() {
	r.wg.Go(r.loop)
	r.wg.Go(r.expedite)
}

// Stop ends what is going on and waits for it. It is idempotent.
func (r *Runner) Stop() {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()
	r.cancel()
	r.wg.Wait()
}

// Refresh asks all sources now and returns when each has answered or failed; failures are logged. Concurrent calls share a round. The error
// is ErrStopped, or the cause of ctx, which ends the waiting but not the round.
func (r *Runner) Refresh(ctx context.Context) error {
	r.mu.Lock()
	if r.stopped {
		r.mu.Unlock()
		return ErrStopped
	}
	done := r.refresh
	if done == nil {
		done = make(chan struct{})
		r.refresh = done
		r.wg.Go(func() { r.forced(done) }) //nolint:contextcheck // the round is the runner's and outlives the call
	}
	r.mu.Unlock()
	select {
	case <-done:
	case <-ctx.Done():
		return fmt.Errorf("waiting for the models: %w", context.Cause(ctx))
	}
	if r.ctx.Err() != nil {
		return ErrStopped
	}
	return nil
}

// RefreshSoon has a source asked at once, because something about its provider has changed, such as its keys. It does not wait, and nothing happens
// before Start.
func (r *Runner) RefreshSoon(provider string) {
	r.mu.Lock()
	r.hurried[provider] = true
	r.mu.Unlock()
	signal(r.hurry)
}

// signal wakes who waits, or will wait, for a channel with room for one.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// expedite asks the sources that Hurry named, whatever a round waits for meanwhile.
func (r *Runner) expedite() {
	for {
		select {
		case <-r.hurry:
		case <-r.ctx.Done():
			return
		}
		r.mu.Lock()
		named := r.hurried
		r.hurried = map[string]bool{}
		r.mu.Unlock()
		var wg sync.WaitGroup
		for i, s := range r.cfg.Sources {
			if named[s.Provider] {
				wg.Go(func() { r.now(i, s) })
			}
		}
		wg.Wait()
	}
}

// now asks a source out of turn and plans its next time anew.
func (r *Runner) now(i int, s Source) {
	good := r.ask(s, false)
	select {
	case r.turn <- struct{}{}:
	case <-r.ctx.Done():
		return
	}
	r.misses[i] = 0
	r.plan(i, good)
	<-r.turn
	signal(r.wake)
}

// forced makes the round of Refresh.
func (r *Runner) forced(done chan struct{}) {
	r.round(true)
	r.mu.Lock()
	r.refresh = nil
	r.mu.Unlock()
	close(done)
}

func (r *Runner) loop() {
	for r.ctx.Err() == nil {
		next := r.round(false)
		timer := time.NewTimer(time.Until(next))
		select {
		case <-timer.C:
		case <-r.wake:
			timer.Stop()
		case <-r.ctx.Done():
			timer.Stop()
			return
		}
	}
}

// round asks the sources that are due, or all, at the same time, and gives the time at which the next one is due.
func (r *Runner) round(all bool) (next time.Time) {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-r.ctx.Done():
		return time.Time{}
	}
	var wg sync.WaitGroup
	for i, s := range r.cfg.Sources {
		if all || !r.due[i].After(time.Now()) {
			wg.Go(func() { r.plan(i, r.ask(s, all)) })
		}
	}
	wg.Wait()
	next = time.Now().Add(interval)
	for _, due := range r.due {
		if due.Before(next) {
			next = due
		}
	}
	return next
}

// plan sets when a source is asked again. The times of several dispatchers, and of several sources, drift apart.
func (r *Runner) plan(i int, good bool) {
	wait := interval
	if good {
		r.misses[i] = 0
	} else {
		wait = min(interval, firstRetry<<min(r.misses[i], 6))
		r.misses[i]++
	}
	wait += rand.N(wait / 10) //nolint:gosec // spreading load needs no secrecy
	r.due[i] = time.Now().Add(wait)
}

// ask asks one source and publishes what it says. It answers whether the source has a listing now.
func (r *Runner) ask(s Source, all bool) bool {
	provider := slog.String("provider", s.Provider)
	if !all && r.cfg.Fresh(s) {
		return true
	}
	keys := r.cfg.Keys(s.Provider)
	if len(keys) == 0 {
		r.cfg.Logger.Debug("models not listed: no key to use", provider)
		return false
	}
	ctx, cancel := context.WithTimeoutCause(r.ctx, sourceTimeout, classify.ErrTotalTimeout)
	defer cancel()
	for _, key := range keys[:min(len(keys), maxKeys)] {
		models, err := List(ctx, r.cfg.Client, s, key.Value)
		if ok, known := reached(err); known {
			r.cfg.Reached(s.Provider, ok)
		}
		if err == nil {
			return r.publish(modelindex.Listing{
				Provider: s.Provider, From: s.Fingerprint(), Models: Classify(models, s.Rules(r.cfg.Premium, r.cfg.Free)), At: time.Now(),
			})
		}
		if r.ctx.Err() == nil {
			r.cfg.Logger.Warn("models not listed", provider, slog.Int("key", key.Index), slog.Any("error", err))
		}
		if !ofKey(err) {
			return false
		}
	}
	return false
}

func (r *Runner) publish(l modelindex.Listing) bool {
	ctx, cancel := context.WithTimeout(r.ctx, publishLimit)
	defer cancel()
	if err := r.cfg.Publish(ctx, l); err != nil {
		if r.ctx.Err() == nil {
			r.cfg.Logger.Warn("models not published", slog.String("provider", l.Provider), slog.Any("error", err))
		}
		return false
	}
	r.cfg.Logger.Info("models listed", slog.String("provider", l.Provider), slog.Int("models", len(l.Models)))
	return true
}
