package breaker

import (
	"sync"
	"sync/atomic"
	"time"
)

// ProbeLimit is how long a probe may stay without a result before another one is let through.
const ProbeLimit = 60 * time.Second

// State is what a breaker does with the next call.
type State uint8

// States.
const (
	Closed   State = iota // passes
	Open                  // rejects
	HalfOpen              // lets one probe through at a time
)

// String gives the name for logs and the status page.
func (s State) String() string {
	switch s {
	case Closed:
		return "closed"
	case Open:
		return "open"
	case HalfOpen:
		return "half-open"
	}
	return "unknown"
}

// MarshalText gives the name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Transition is a change of state. Seq counts the transitions of one breaker from 1, because calls of different goroutines may be reported
// out of order.
type Transition struct {
	From, To State
	Seq      uint64
	Failures int           // that counted at this moment
	OpenFor  time.Duration // how long an opening lasts, else 0
	Remote   bool          // the opening was seen by another dispatcher
}

// Snapshot is a reading of a breaker.
type Snapshot struct {
	State     State
	Failures  int           // that count towards the next opening
	Remaining time.Duration // until an open breaker lets a call through
	Probing   bool          // a probe is under way
	Remote    bool          // the opening in force came from another dispatcher
}

// Breaker guards one channel. It is safe for concurrent use. A nil Breaker lets everything through: the last local fallback has none
//
type Breaker struct {
	cfg    Config
	notify func(Transition)
	start  time.Time // the zero of the monotonic clock

	mu    sync.Mutex
	state State // of the last event; what time has changed since then shows in at
	tally tally
	until time.Duration // end of the opening
	local time.Duration // end of the opening as far as failures were seen here
	seen  time.Time     // end of the latest foreign opening that was taken in
	// era counts openings and closings. A result belongs to the era of its permit: what began before an opening must not end it, and what
	// failed in a former outage must not start a new one.
	era    uint64
	probe  uint64        // number of the probe under way, 0 without one
	probes uint64        // probes so far
	since  time.Duration // start of the probe
	seq    uint64
	fired  []Transition // to report after unlocking
}

// New makes a closed breaker. onTransition may be nil; it is called without any lock held, by the goroutine that caused the transition or
// that was the first to notice that time did.
func New(cfg Config, onTransition func(Transition)) (*Breaker, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if onTransition == nil {
		onTransition = func(Transition) {}
	}
	return &Breaker{cfg: cfg, notify: onTransition, start: time.Now(), tally: tally{cfg: cfg}}, nil
}

// Acquire asks for permission to call. The permit must be ended in one way: Success, Failure or Release. Without permission nothing may
// be sent, and there is nothing to end.
func (b *Breaker) Acquire() (Permit, bool) {
	if b == nil {
		return Permit{}, true
	}
	b.mu.Lock()
	defer b.unlock()
	now := b.now()
	switch b.settle(now) {
	case Closed:
		return Permit{breaker: b, era: b.era}, true
	case HalfOpen:
		if b.probing(now) {
			return Permit{}, false
		}
		b.probes++
		b.probe, b.since = b.probes, now
		return Permit{breaker: b, era: b.era, probe: b.probe}, true
	case Open:
	}
	return Permit{}, false
}

// State reads the state. It changes nothing.
func (b *Breaker) State() State { return b.Snapshot().State }

// Ready tells whether Acquire would let a call through now. It changes nothing.
func (b *Breaker) Ready() bool {
	s := b.Snapshot()
	return s.State == Closed || s.State == HalfOpen && !s.Probing
}

// Snapshot reads the breaker. It changes nothing.
func (b *Breaker) Snapshot() Snapshot {
	if b == nil {
		return Snapshot{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	s := Snapshot{State: b.at(now), Failures: b.tally.failures(now)}
	switch s.State {
	case Open:
		s.Remaining, s.Remote = b.until-now, b.local < b.until
	case HalfOpen:
		s.Probing = b.probing(now)
	case Closed:
	}
	return s
}

// Observe takes in that another dispatcher opened the same channel until then. It is honoured once, for OpenFor at most, so that a wrong
// clock elsewhere can't close the channel off; a breaker that is open for longer stays so.
func (b *Breaker) Observe(until time.Time) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.unlock()
	now := b.now()
	left := min(time.Until(until), b.cfg.OpenFor)
	if left <= 0 || !until.After(b.seen) {
		return
	}
	b.seen = until
	switch b.settle(now) {
	case Open:
		b.until = max(b.until, now+left)
	case Closed, HalfOpen:
		b.until = now + left
		b.open(left, true)
	}
}

// Opening gives the end of an opening that failures seen here caused, to be told to other dispatchers. Openings taken in with Observe are
// not given, else two dispatchers would keep each other closed off for ever.
func (b *Breaker) Opening() (until time.Time, ok bool) {
	if b == nil {
		return time.Time{}, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if b.at(now) != Open || b.local <= now {
		return time.Time{}, false
	}
	return time.Now().Add(b.local - now), true
}

// at is the state at a time: openings end by themselves.
func (b *Breaker) at(now time.Duration) State {
	if b.state != Open || now < b.until {
		return b.state
	}
	if b.cfg.HalfOpen {
		return HalfOpen
	}
	return Closed
}

// settle makes the state what it is at this time.
func (b *Breaker) settle(now time.Duration) State {
	if state := b.at(now); state == Closed && b.state != Closed {
		b.close()
	} else if state != b.state {
		b.shift(state)
	}
	return b.state
}

func (b *Breaker) now() time.Duration { return time.Since(b.start) }

func (b *Breaker) probing(now time.Duration) bool {
	return b.state == HalfOpen && b.probe != 0 && now-b.since < ProbeLimit
}

// failed takes in the failure of a permit.
func (b *Breaker) failed(p *Permit, wait time.Duration) {
	b.mu.Lock()
	defer b.unlock()
	now := b.now()
	switch b.settle(now) {
	case Closed:
		if p.era == b.era && b.tally.fail(now, wait) {
			b.reopen(now)
		}
	case Open:
		if p.era+1 == b.era { // began before the opening and belongs to the same outage: the rest counts from the last failure
			b.tally.fail(now, wait)
			b.local = now + b.tally.openFor(now)
			b.until = max(b.until, b.local)
		}
	case HalfOpen:
		if p.probe != 0 && p.probe == b.probe {
			b.tally.fail(now, wait)
			b.reopen(now)
		}
	}
}

// succeeded takes in the success of a permit.
func (b *Breaker) succeeded(p *Permit) {
	b.mu.Lock()
	defer b.unlock()
	switch {
	case b.state == Closed && p.era == b.era:
		b.tally.succeed()
	case b.state == HalfOpen && p.probe != 0 && p.probe == b.probe:
		b.tally.succeed()
		b.close()
	}
}

// released takes in that a permit ended without a result.
func (b *Breaker) released(p *Permit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.probe != 0 && p.probe == b.probe {
		b.probe = 0
	}
}

func (b *Breaker) reopen(now time.Duration) {
	left := b.tally.openFor(now)
	b.local = now + left
	b.until = b.local
	b.open(left, false)
}

func (b *Breaker) open(left time.Duration, remote bool) {
	b.era++
	b.probe = 0
	b.shift(Open)
	t := &b.fired[len(b.fired)-1]
	t.OpenFor, t.Remote = left, remote
}

func (b *Breaker) close() {
	b.era++
	b.probe, b.local = 0, 0
	b.shift(Closed)
}

func (b *Breaker) shift(to State) {
	b.seq++
	b.fired = append(b.fired, Transition{From: b.state, To: to, Seq: b.seq, Failures: b.tally.failures(b.now())})
	b.state = to
}

// unlock releases the lock and reports what happened under it.
func (b *Breaker) unlock() {
	fired := b.fired
	b.fired = nil
	b.mu.Unlock()
	for _, t := range fired {
		b.notify(t)
	}
}

// Permit is the permission for one call. It ends with the first of its methods; later ones do nothing. The zero Permit is not bound to a
// breaker. A Permit must not be copied.
type Permit struct {
	breaker *Breaker
	era     uint64
	probe   uint64
	ended   atomic.Bool
}

// Success reports that the channel answered well.
func (p *Permit) Success() {
	if p.end() {
		p.breaker.succeeded(p)
	}
}

// Failure reports that the channel failed. wait is how long it said that it wants to be left alone, 0 for nothing: an opening that only such
// failures cause ends with the longest of their waits, or after OpenFor.
func (p *Permit) Failure(wait time.Duration) {
	if p.end() {
		p.breaker.failed(p, wait)
	}
}

// Release reports that the call says nothing about the channel: it was not made, the client left, or the request was at fault. A probe is
// free again. It is the thing to defer.
func (p *Permit) Release() {
	if p.end() {
		p.breaker.released(p)
	}
}

func (p *Permit) end() bool { return p.breaker != nil && !p.ended.Swap(true) }
