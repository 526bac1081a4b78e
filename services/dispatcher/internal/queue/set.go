package queue

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// Store is what all dispatchers follow.
type Store interface {
	Put(ctx context.Context, key string, value []byte) error
	// Remove deletes an entry, which may not be there.
	Remove(ctx context.Context, key string) error
}

// Errors of a queue.
var (
	ErrFull   = errors.New("the queue is full")
	ErrClosed = errors.New("the queue is closed")
)

const (
	// DefaultTTL is how long an entry counts that its dispatcher does not renew.
	DefaultTTL = 15 * time.Second

	// tryEvery is how often the first one looks for a slot that another dispatcher may have given back. For those of this one it is told.
	tryEvery = 50 * time.Millisecond

	storeTimeout = 2 * time.Second // of one operation on the store
	storePause   = 250 * time.Millisecond
)

// Config is what a dispatcher brings.
type Config struct {
	Owner string        // name of this process, unique among all that live
	TTL   time.Duration // 0 = DefaultTTL; the same for all dispatchers
}

// Set is the queues of all models. It is safe for concurrent use.
type Set struct {
	store  Store // nil: this dispatcher is alone
	cfg    Config
	log    *slog.Logger
	wake   chan struct{} // somebody waits, or a slot may be free
	news   chan struct{} // something is to be written
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex
	lines  map[string][]*Waiter // by model, in their order
	known  map[string]*Waiter   // by request
	own    int                  // of these that wait here
	dirty  map[string]struct{}  // requests whose entries are to be written or removed
	closed bool
}

// New makes the queues of a dispatcher. The caller must Close them.
func New(ctx context.Context, store Store, cfg Config, log *slog.Logger) *Set {
	if cfg.TTL == 0 {
		cfg.TTL = DefaultTTL
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &Set{
		store: store, cfg: cfg, log: log, wake: make(chan struct{}, 1), news: make(chan struct{}, 1), cancel: cancel,
		lines: map[string][]*Waiter{}, known: map[string]*Waiter{}, dirty: map[string]struct{}{},
	}
	s.wg.Go(func() { s.run(ctx) })
	if store != nil {
		s.wg.Go(func() { s.write(ctx) })
	}
	return s
}

// Place is that of a request in its queue. Leave it in any case.
type Place struct {
	set  *Set
	w    *Waiter
	turn chan struct{} // has room for one
}

// Busy says whether requests wait for a model: others must not pass them by.
func (s *Set) Busy(model string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.lines[model]) > 0
}

// Enter takes a place. The error is ErrFull or ErrClosed. What several dispatchers let in at the same moment may be more than the limit.
func (s *Set) Enter(w Waiter, limits Limits) (*Place, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.known[w.Request]
	switch {
	case s.closed:
		return nil, ErrClosed
	case before == nil && len(s.lines[w.Model]) >= limits.Length:
		return nil, ErrFull
	}
	w.rank, w.seen = rankOf(w, limits.Wait), time.Now()
	w.place = &Place{set: s, w: &w, turn: make(chan struct{}, 1)}
	s.remove(before) // a dispatcher had it that is gone
	s.insert(&w)
	s.change(w.Request)
	poke(s.wake)
	return w.place, nil
}

// Turn waits until the request is the first one, and there may be a slot. If there is none after all, it is called again. The error is ErrClosed, or why ctx
// has ended.
func (p *Place) Turn(ctx context.Context) error {
	select {
	case _, open := <-p.turn:
		if !open {
			return ErrClosed
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Leave gives the place up. After Dismiss it is kept for the dispatcher that gets the request next, until the entry expires.
func (p *Place) Leave() {
	s := p.set
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[p.w.Request] != p.w {
		return
	}
	s.remove(p.w)
	if !p.w.taken && !s.closed {
		s.change(p.w.Request)
	}
	s.call(p.w.Model)
}

// Freed says that this dispatcher has given back a slot.
func (s *Set) Freed() {
	s.mu.Lock()
	waits := s.own > 0
	s.mu.Unlock()
	if waits {
		poke(s.wake)
	}
}

// Take takes in an entry of the store. value is nil for one that has been removed.
func (s *Set) Take(request string, value []byte) {
	w, owner, ok := decode(request, value)
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.known[request]
	switch {
	case before != nil && before.place != nil:
		before.taken = before.taken || ok && owner != s.cfg.Owner
		return
	case ok && owner == s.cfg.Owner: // one that has left here
		return
	}
	s.remove(before)
	if ok {
		w.seen = time.Now()
		s.insert(&w)
	}
	if before != nil {
		s.call(before.Model)
	}
}

// Line is those who wait for a model, in their order.
type Line struct {
	Model   string
	Waiting int
	First   []Waiter // at most as many as were asked for
}

// Lines lists the queues in which somebody waits, by the names of their models.
func (s *Set) Lines(first int) []Line {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Line
	for _, model := range slices.Sorted(maps.Keys(s.lines)) {
		line := s.lines[model]
		l := Line{Model: model, Waiting: len(line)}
		for _, w := range line[:min(first, len(line))] {
			l.First = append(l.First, *w)
		}
		all = append(all, l)
	}
	return all
}

// Own counts the requests that wait for a model in this dispatcher.
func (s *Set) Own(model string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.lines[model] {
		if w.place != nil {
			n++
		}
	}
	return n
}

// insert must be called with mu held.
func (s *Set) insert(w *Waiter) {
	line := s.lines[w.Model]
	at, _ := place(line, w)
	s.lines[w.Model] = slices.Insert(line, at, w)
	s.known[w.Request] = w
	if w.place != nil {
		s.own++
	}
}

// remove must be called with mu held. w may be nil.
func (s *Set) remove(w *Waiter) {
	if w == nil {
		return
	}
	line := s.lines[w.Model]
	if at, found := place(line, w); found {
		line = slices.Delete(line, at, at+1)
	}
	if s.lines[w.Model] = line; len(line) == 0 {
		delete(s.lines, w.Model)
	}
	delete(s.known, w.Request)
	if w.place != nil {
		s.own--
	}
}

// call tells the first one of a line that it is its turn, if it waits here. It must be called with mu held.
func (s *Set) call(model string) {
	if line := s.lines[model]; len(line) > 0 && line[0].place != nil && !s.closed {
		poke(line[0].place.turn)
	}
}

// change has the entry of a request written. It must be called with mu held.
func (s *Set) change(request string) {
	if s.store != nil {
		s.dirty[request] = struct{}{}
		poke(s.news)
	}
}

func poke(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
