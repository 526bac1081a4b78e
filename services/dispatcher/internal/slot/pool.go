package slot

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// pool is the part of one limited ID that belongs to this dispatcher. Callers leave their acquisitions and releases here; one worker at a
// time brings the store to the same state, and takes slots for all that wait by one swap. A release and an acquisition that meet need no
// swap at all.
type pool struct {
	shared  *Shared
	id, key string

	mu      sync.Mutex
	limit   int       // that the last caller brought
	held    int       // slots that calls of this process use; only the worker adds to it, so it stays within stored
	stored  int       // slots that the store has under our name; unknown when it may have lost them
	until   time.Time // end of that lease
	waiting []*waiter
	working bool // a worker runs, or is on its way
	givenUp bool // Shared has forgotten it

	// The last known record. Only the worker uses it, and leave after the last worker.
	record   record
	revision uint64
	known    bool
	epoch    context.Context //nolint:containedctx // of the store, in which the record was read
}

// waiter is a caller that waits for a verdict. All but done is guarded by pool.mu.
type waiter struct {
	limit int           // of all calls, its own included; 0 means none
	done  chan struct{} // closed with the verdict
	err   error         // nil: granted
	gone  bool          // the caller does not wait any more
}

// fits says whether the caller may get a slot while so many are in use.
func (c *waiter) fits(used int) bool { return c.limit <= 0 || used < c.limit }

var errGivenUp = errors.New("the pool was given up")

// acquire takes a slot. The error is ErrBusy, ErrClosed, errGivenUp, the end of ctx, or the store's.
func (p *pool) acquire(ctx context.Context, limit int) error {
	c := &waiter{limit: limit, done: make(chan struct{})}
	p.mu.Lock()
	if p.givenUp {
		p.mu.Unlock()
		return errGivenUp
	}
	p.limit = max(0, limit)
	p.waiting = append(p.waiting, c)
	idle := !p.working
	p.working = true
	p.mu.Unlock()
	if idle {
		p.shared.start(p)
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return p.abandon(ctx, c)
	}
}

// abandon ends the wait of an acquisition; what was granted meanwhile goes back.
func (p *pool) abandon(ctx context.Context, c *waiter) error {
	p.mu.Lock()
	c.gone = true
	granted := false
	select {
	case <-c.done:
		granted = c.err == nil
	default:
	}
	p.mu.Unlock()
	if granted {
		p.release()
	}
	return context.Cause(ctx)
}

func (p *pool) release() {
	p.mu.Lock()
	p.held--
	idle := !p.working
	p.working = true
	p.mu.Unlock()
	if idle {
		p.shared.start(p)
	}
}

func (p *pool) usage() Load {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Load{ID: p.id, Active: p.held, Limit: p.limit}
}

// unknown is a count that no store has.
const unknown = -1

// forget takes in that the store may have lost what it had of us. It is true when there is something to write, which has no worker.
func (p *pool) forget() bool {
	p.mu.Lock()
	if p.held > 0 || p.stored > 0 {
		p.stored = unknown
	}
	p.mu.Unlock()
	return p.begin()
}

// due tells whether the lease should be renewed: a third of its time has passed.
func (p *pool) due(now time.Time) bool {
	return p.stored > 0 && now.After(p.until.Add(-2*p.shared.ttl/3))
}

// begin reserves the worker's place when there is something to write that nobody writes.
func (p *pool) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.working || p.held == p.stored && !p.due(time.Now()) {
		return false
	}
	p.working = true
	return true
}

// end gives the pool up, unless it holds something or somebody waits.
func (p *pool) end() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.givenUp = p.givenUp || !p.working && p.held == 0 && p.stored == 0 && len(p.waiting) == 0
	return p.givenUp
}

// stop ends the work. Whoever waits gets err; told is how many did.
func (p *pool) stop(err error) (told int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.working = false
	told = len(p.waiting)
	p.answer(verdict{waiters: told}, err)
	return told
}

// settle is the worker: it goes on until the store says what is true here and nobody waits.
func (p *pool) settle(ctx context.Context) {
	for {
		want, idle := p.wanted()
		if idle {
			return
		}
		epoch := p.shared.present()
		if epoch != p.epoch {
			p.epoch, p.known = epoch, false //nolint:fatcontext // nothing is added to it
		}
		err := p.write(epoch, want) //nolint:contextcheck // it ends with ctx, too
		if err == nil || epoch.Err() != nil && ctx.Err() == nil {
			continue
		}
		if ctx.Err() != nil {
			err = ErrClosed
		}
		if told := p.stop(err); told == 0 && ctx.Err() == nil { // the heartbeat tries again
			p.shared.log.Warn("slots can't be written to the store", slog.String("upstream", p.id), slog.Any("error", err))
		}
		return
	}
}

// demand is what the worker has to bring about.
type demand struct {
	held, stored int
	waiting      []*waiter // callers that wait: the front of pool.waiting, which only the worker shortens; only limits may be read
	due          bool      // the lease must be renewed
}

// grant says how many callers get a slot while others use some, besides those that are held.
func (d *demand) grant(others int) (n int) {
	for _, c := range d.waiting {
		if c.fits(others + d.held + n) {
			n++
		}
	}
	return n
}

// verdict is what the store allows: of the first so many waiters, grant get a slot, while used are in use already.
type verdict struct {
	waiters, grant, used int
}

// wanted reads the demand. When there is none, the worker has lost its place and must end.
func (p *pool) wanted() (d demand, idle bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropGone()
	d = demand{held: p.held, stored: p.stored, waiting: p.waiting, due: p.due(time.Now())}
	if len(d.waiting) == 0 && d.held == d.stored && !d.due {
		p.working = false
		return d, true
	}
	return d, false
}

// write makes one step: it decides how many waiters are granted, writes the new count, and answers. A lost swap is tried again with what
// the winner wrote; it never means busy.
func (p *pool) write(ctx context.Context, d demand) error {
	if wait := p.shared.closedFor(); wait > 0 {
		if d.held == d.stored && !d.due { // there are only waiters
			return sleep(ctx, wait)
		}
		d.waiting = nil
	}
	for {
		fresh := !p.known
		if err := p.read(ctx); err != nil {
			return err
		}
		now := time.Now()
		others := p.record.others(p.shared.owner, now)
		v := verdict{waiters: len(d.waiting), grant: d.grant(others), used: others + d.held}
		if v.grant < v.waiters && !fresh {
			p.known = false // somebody may have released: only a fresh record may say busy
			continue
		}
		count := d.held + v.grant
		if count == d.stored && !d.due {
			p.granted(v, d.stored, time.Time{})
			return nil
		}
		until := now.Add(p.shared.ttl)
		won, err := p.swap(ctx, p.record.with(p.shared.owner, count, now, until))
		if err != nil {
			return err
		}
		if won {
			p.granted(v, count, until)
			return nil
		}
	}
}

// read fetches the record unless it is known.
func (p *pool) read(ctx context.Context) error {
	if p.known {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	value, revision, err := p.shared.kv.Get(ctx, p.key)
	if err != nil {
		return err
	}
	if p.record, err = decodeRecord(value); err != nil {
		return err
	}
	p.revision, p.known = revision, true
	return nil
}

// swap writes the record. After an error or a lost race the record is unknown.
func (p *pool) swap(ctx context.Context, next record) (won bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	p.known = false
	revision, err := p.shared.kv.Swap(ctx, p.key, next.encode(), p.revision)
	if err != nil || revision == 0 {
		return false, err
	}
	p.record, p.revision, p.known = next, revision, true
	return true, nil
}

// granted takes in what the store says now and answers the first waiters; zero until means that nothing was written.
func (p *pool) granted(v verdict, stored int, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !until.IsZero() {
		p.stored, p.until = stored, until
	}
	p.held += p.answer(v, ErrBusy)
}

// answer gives the callers their verdict: a slot or err. It gives how many slots were taken; callers that have gone take none.
func (p *pool) answer(v verdict, err error) (taken int) {
	for _, c := range p.waiting[:v.waiters] {
		switch {
		case c.gone:
			continue
		case taken < v.grant && c.fits(v.used+taken):
			taken++
		default:
			c.err = err
		}
		close(c.done)
	}
	p.waiting = append(p.waiting[:0], p.waiting[v.waiters:]...)
	return taken
}

func (p *pool) dropGone() {
	kept := p.waiting[:0]
	for _, c := range p.waiting {
		if !c.gone {
			kept = append(kept, c)
		}
	}
	p.waiting = kept
}

// leave takes our share out of the store, after the last worker.
func (p *pool) leave(ctx context.Context) error {
	p.mu.Lock()
	stored := p.stored
	p.mu.Unlock()
	for stored != 0 {
		if err := p.read(ctx); err != nil {
			return err
		}
		now := time.Now()
		won, err := p.swap(ctx, p.record.with(p.shared.owner, 0, now, now))
		if err != nil {
			return err
		}
		if won {
			p.mu.Lock()
			p.stored, stored = 0, 0
			p.mu.Unlock()
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
