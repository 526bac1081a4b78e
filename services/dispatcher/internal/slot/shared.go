package slot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// KV is a store that all dispatchers share. Its compare-and-swap must be linearizable.
type KV interface {
	// Get gives the value of a key and its revision; revision 0 means that there is none.
	Get(ctx context.Context, key string) (value []byte, revision uint64, err error)
	// Swap stores value if the key still has the given revision, where 0 means that it must not exist. It gives the new revision, or 0 when
	// somebody else was faster; that is no error.
	Swap(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
}

const (
	// DefaultTTL is how long a dispatcher may be silent before its slots count as free. The clocks of the dispatchers must agree to a
	// fraction of it.
	DefaultTTL = 15 * time.Second

	storeTimeout = 2 * time.Second // of one operation on the store

	askAgain = 250 * time.Millisecond // after which a store that did not answer is asked again

	// rewriteTime is how long nothing is granted after the store may have lost its values, so that every dispatcher has written its own again.
	rewriteTime = 2 * time.Second
)

// Config is what a dispatcher brings.
type Config struct {
	Owner string        // name of this process, unique among all that live
	TTL   time.Duration // 0 = DefaultTTL; the same for all dispatchers

	// Patience is how long an acquisition waits for a store that does not answer; 0: it does not wait.
	Patience time.Duration

	// Lost gives a channel that is closed when the store next may have lost its values, as after an outage; nil: it never does.
	Lost func() <-chan struct{}
}

// Shared hands out slots whose limits hold over all dispatchers that use the same store. Candidates without a limit are counted in this
// process only, unless they count for others. The slots of a dispatcher that dies come back when its leases expire.
type Shared struct {
	kv    KV
	owner string
	ttl   time.Duration
	log   *slog.Logger

	patience time.Duration

	unlimited Local
	work      chan *pool    // pools that want a worker
	cancel    func()        // stops run
	done      chan struct{} // closed when run and its workers have ended

	mu      sync.Mutex
	pools   map[string]*pool
	closed  time.Time       // until when nothing is granted
	epoch   context.Context //nolint:containedctx // of operations on the store; ends when it may have lost its values, and with the heartbeat
	restart func()          // ends epoch
}

// NewShared starts the heartbeat that keeps the leases of this process alive. Close ends it.
func NewShared(ctx context.Context, kv KV, cfg Config, log *slog.Logger) *Shared {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &Shared{
		kv: kv, owner: cfg.Owner, ttl: cfg.TTL, log: log, patience: cfg.Patience,
		work: make(chan *pool), cancel: cancel, done: make(chan struct{}), pools: map[string]*pool{},
	}
	if s.ttl == 0 {
		s.ttl = DefaultTTL
	}
	if cfg.Lost == nil {
		cfg.Lost = func() <-chan struct{} { return nil }
	}
	s.epoch, s.restart = context.WithCancel(ctx)
	go s.run(ctx, cfg.Lost, cfg.Lost())
	return s
}

// Acquire implements Acquirer. The error is ErrBusy, ErrClosed, the end of ctx, or what kept the store from answering for so long: a store that is away for a
// moment says nothing about what is free, so that nobody is refused for it.
func (s *Shared) Acquire(ctx context.Context, candidates []Candidate, skip func(index int) bool) (*Lease, int, error) {
	var end time.Time
	for {
		lease, i, err := s.first(ctx, candidates, skip)
		if err == nil || errors.Is(err, ErrBusy) || errors.Is(err, ErrClosed) || ctx.Err() != nil {
			return lease, i, err
		}
		if end.IsZero() {
			end = time.Now().Add(s.patience)
		}
		if !time.Now().Before(end) || sleep(ctx, askAgain) != nil {
			return nil, -1, err
		}
	}
}

// first takes a slot of the first candidate that has one.
func (s *Shared) first(ctx context.Context, candidates []Candidate, skip func(index int) bool) (*Lease, int, error) {
	result := ErrBusy
	for i, c := range candidates {
		if skip != nil && skip(i) {
			continue
		}
		err := errUncounted
		if c.Limit > 0 || c.Counts {
			err = s.acquire(ctx, c)
		}
		switch {
		case err == nil:
			return &Lease{from: s, id: c.ID}, i, nil
		case errors.Is(err, ErrBusy):
		case ctx.Err() != nil || errors.Is(err, ErrClosed):
			return nil, -1, err
		case c.Limit <= 0: // a store that can't be reached is no reason to refuse what has no limit
			lease, _, err := s.unlimited.Acquire(ctx, candidates[i:i+1], nil)
			return lease, i, err
		default:
			result = fmt.Errorf("acquiring a slot of %s: %w", c.ID, err)
		}
	}
	return nil, -1, result
}

var errUncounted = errors.New("counted in this process only")

// acquire takes a slot of a pool that is not being given up.
func (s *Shared) acquire(ctx context.Context, c Candidate) error {
	for {
		if err := s.pool(c.ID).acquire(ctx, c.Limit); !errors.Is(err, errGivenUp) {
			return err
		}
	}
}

// Count implements Acquirer.
func (s *Shared) Count(id string) int {
	s.mu.Lock()
	p := s.pools[id]
	s.mu.Unlock()
	n := s.unlimited.Count(id)
	if p != nil {
		n += p.usage().Active
	}
	return n
}

// Active implements Acquirer.
func (s *Shared) Active() []Load {
	all := s.unlimited.Active()
	for _, p := range s.all() {
		all = append(all, p.usage())
	}
	slices.SortFunc(all, byID)
	return all
}

// lose ends the granting for a while, and what waits for answers of the store that will not come.
func (s *Shared) lose(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = time.Now().Add(rewriteTime)
	s.restart()
	s.epoch, s.restart = context.WithCancel(ctx)
}

func (s *Shared) present() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.epoch
}

// closedFor is how long nothing is granted yet.
func (s *Shared) closedFor() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Until(s.closed)
}

// Close stops the heartbeat and gives everything back that this process still holds. Calls must have ended by then; an acquisition gets ErrClosed.
// It gives up at the end of ctx: what is left expires.
func (s *Shared) Close(ctx context.Context) error {
	s.cancel()
	<-s.done
	var errs []error
	for _, p := range s.all() {
		errs = append(errs, p.leave(ctx))
	}
	return errors.Join(errs...)
}

func (s *Shared) release(id string) { s.pool(id).release() }

func (s *Shared) pool(id string) *pool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pools[id]
	if p == nil {
		p = &pool{shared: s, id: id, key: keyOf(id)}
		s.pools[id] = p
	}
	return p
}

func (s *Shared) all() []*pool {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*pool, 0, len(s.pools))
	for _, p := range s.pools {
		all = append(all, p)
	}
	return all
}

// run owns the workers of the pools and the heartbeat. It does no I/O itself, so a pool never waits long for its worker.
func (s *Shared) run(ctx context.Context, next func() <-chan struct{}, lost <-chan struct{}) {
	defer close(s.done)
	var workers sync.WaitGroup
	defer workers.Wait()
	beat := time.NewTicker(s.ttl / 3)
	defer beat.Stop()
	for {
		select {
		case p := <-s.work:
			workers.Go(func() { p.settle(ctx) })
		case <-beat.C:
			all := s.all()
			for _, p := range all {
				if p.begin() {
					workers.Go(func() { p.settle(ctx) })
				} else if len(all) > maxIdle {
					s.giveUp(p)
				}
			}
		case <-lost: // what is held is written again; acquisitions wait for a moment, in which the others do the same
			lost = next()
			s.lose(ctx)
			for _, p := range s.all() {
				if p.forget() {
					workers.Go(func() { p.settle(ctx) })
				}
			}
		case <-ctx.Done():
			return
		}
	}
}

// giveUp forgets a pool that holds nothing.
func (s *Shared) giveUp(p *pool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.end() {
		delete(s.pools, p.id)
	}
}

// start finds a worker for a pool that has begun.
func (s *Shared) start(p *pool) {
	select {
	case s.work <- p:
	case <-s.done:
		p.stop(ErrClosed)
	}
}
