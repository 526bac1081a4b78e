package clientkey

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"hydrallm/shared/bus"
)

// window is the time that limits are for. It begins with the first use after the one before has ended.
const window = time.Minute

// shares is into how many portions a limit is divided at least.
const shares = 10

// Counters is a store that all ingresses share; *bus.Bucket is one. Its compare-and-swap must be linearizable.
type Counters interface {
	Get(ctx context.Context, key string) (bus.Entry, error)
	Create(ctx context.Context, key string, value []byte) (uint64, error)
	Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
}

// counter is what the store has of a limit: how much of it the ingresses have taken for themselves in a window.
type counter struct {
	Start int64 `json:"start"` // of the window, Unix milliseconds
	Taken int64 `json:"taken"`
}

func (c counter) start() time.Time { return time.UnixMilli(c.Start) }

// live says whether the window is the present one. One that begins in the future is that of a clock which is far ahead.
func (c counter) live(now time.Time) bool {
	since := now.Sub(c.start())
	return since < window && since > -window
}

// meter holds one limit of one key. What it may give out it takes from the common counter in portions, so that the limit is never passed and most
// requests need no I/O. What is given back stays here until the window ends.
type meter struct {
	store Counters
	clock func() time.Time
	name  string // of the counter

	mu     sync.Mutex
	limit  int64
	start  time.Time     // of the window; zero = there is none
	left   int64         // of what was taken; below 0: more was used than that
	free   int64         // what nobody had taken when the counter was last seen
	alone  bool          // the counter could not be had: this process counts by itself until the window ends
	taking chan struct{} // closed when who looks at the counter has done so; nil = nobody does
}

// reading is the state of a meter at a moment.
type reading struct {
	limit, remaining int64
	reset            time.Duration // until the window ends
	start            time.Time     // of the window
}

// roll ends a window whose time is over, and begins to count anew for another limit. The caller holds mu.
func (m *meter) roll(limit int64, now time.Time) {
	if !m.start.IsZero() && !(counter{Start: m.start.UnixMilli()}).live(now) {
		m.start, m.left, m.free, m.alone = time.Time{}, 0, 0, false
	}
	if m.limit != limit {
		m.limit, m.left, m.free = limit, min(m.left, 0), limit
	}
}

// read gives the state. The caller holds mu.
func (m *meter) read(now time.Time) reading {
	r := reading{limit: m.limit, remaining: min(max(m.left+m.free, 0), m.limit), start: m.start}
	if m.start.IsZero() {
		r.remaining = m.limit + min(m.left, 0)
	} else {
		r.reset = min(max(m.start.Add(window).Sub(now), 0), window)
	}
	r.remaining = max(r.remaining, 0)
	return r
}

// state gives the state without using anything.
func (m *meter) state(limit int64, now time.Time) reading {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.roll(limit, now)
	return m.read(now)
}

// take uses n of the limit. ok is false when so much is not left in this window. It waits only for the counter, and that until ctx ends.
func (m *meter) take(ctx context.Context, n, limit int64) (r reading, ok bool) {
	for {
		now := m.clock()
		m.mu.Lock()
		m.roll(limit, now)
		if !m.start.IsZero() {
			switch {
			case m.left >= n:
				m.left -= n
				r = m.read(now)
				m.mu.Unlock()
				return r, true
			case m.left+m.free < n:
				r = m.read(now)
				m.mu.Unlock()
				return r, false // what others have taken does not come back in this window
			}
		}
		others := m.taking
		if others == nil {
			m.taking = make(chan struct{})
		}
		need := n - m.left
		m.mu.Unlock()
		if others != nil {
			select {
			case <-others:
			case <-ctx.Done(): // of who waits: it gets nothing
				return m.state(limit, m.clock()), false
			}
			continue
		}
		m.fetch(ctx, need, limit)
	}
}

// cover takes from the counter what was used without having been taken, so that others do not use it too.
func (m *meter) cover(ctx context.Context) {
	m.mu.Lock()
	need, limit := -m.left, m.limit
	if need <= 0 || m.taking != nil || m.alone || limit == 0 {
		m.mu.Unlock()
		return
	}
	m.taking = make(chan struct{})
	m.mu.Unlock()
	m.fetch(ctx, need, limit)
}

// fetch takes a portion from the counter and lets those go on who wait for it.
func (m *meter) fetch(ctx context.Context, need, limit int64) {
	c, got, err := m.portion(ctx, need, limit)
	m.mu.Lock()
	defer m.mu.Unlock()
	defer func() { close(m.taking); m.taking = nil }()
	if m.limit != limit {
		return // what was taken is for another limit
	}
	start, free := c.start(), max(limit-c.Taken, 0)
	if err != nil {
		start, got, free, m.alone = time.UnixMilli(m.clock().UnixMilli()), limit, 0, true
		if !m.start.IsZero() {
			start, got, free = m.start, m.free, 0
		}
	}
	if !m.start.IsZero() && !m.start.Equal(start) {
		m.left = 0
	}
	m.start, m.left, m.free = start, m.left+got, free
}

// patience bounds the wait for the counter. While NATS does not answer, no request gets anywhere, so that it costs nothing to wait.
const patience = 5 * time.Second

// portion takes at least need from the counter, or nothing if there is not so much, but for the window that has begun then. It takes a tenth of the limit,
// and less when little is left, so that little is lost at an ingress that does not need it.
func (m *meter) portion(ctx context.Context, need, limit int64) (c counter, got int64, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	for {
		e, err := m.store.Get(ctx, m.name)
		if err != nil && !errors.Is(err, bus.ErrKeyNotFound) {
			return c, 0, err
		}
		c, now := counter{}, m.clock()
		if err == nil {
			if json.Unmarshal(e.Value, &c) != nil {
				c = counter{}
			}
		}
		begins := !c.live(now)
		if begins {
			c = counter{Start: now.UnixMilli()}
		}
		const reserve = 4
		free := max(limit-c.Taken, 0)
		got := max(need, min(limit/shares, free/reserve))
		if got > free {
			got = m.debt(free)
		}
		if got == 0 && !begins {
			return c, 0, nil
		}
		c.Taken += got
		text, err := json.Marshal(c)
		if err != nil {
			return c, 0, fmt.Errorf("encoding a counter: %w", err)
		}
		if e.Revision == 0 || e.Deleted {
			_, err = m.store.Create(ctx, m.name, text)
		} else {
			_, err = m.store.Update(ctx, m.name, text, e.Revision)
		}
		if !errors.Is(err, bus.ErrConflict) {
			return c, got, err
		}
	}
}

// debt is how much of what is free was used already.
func (m *meter) debt(free int64) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return min(max(-m.left, 0), free)
}

// correct takes in that a request which had taken n in a window used another number in truth. It says whether the counter has to be told.
func (m *meter) correct(n, used, limit int64, taken time.Time) (cover bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.roll(limit, m.clock())
	if used < n && !m.start.Equal(taken) {
		return false // what is given back was of a window that is over
	}
	m.left += n - used
	return m.left < 0
}
