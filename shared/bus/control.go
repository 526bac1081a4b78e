package bus

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"

	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
)

// control finds the work that a cancellation or a credit is for.
type control struct {
	mu   sync.Mutex
	work map[string]*Work // by request id; of several deliveries the one that came last
	gone recent           // requests cancelled before their work arrived here
}

func (c *control) add(w *Work) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.work[w.Request.ID] = w
	if c.gone.has(w.Request.ID) {
		w.cancel(contract.ErrClientGone)
	}
}

func (c *control) remove(w *Work) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.work[w.Request.ID] == w {
		delete(c.work, w.Request.ID)
	}
}

func (c *control) cancel(rid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.work[rid]; w != nil {
		w.cancel(contract.ErrClientGone)
		return
	}
	c.gone.add(rid)
}

// has says whether work on a request is under way.
func (c *control) has(rid string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.work[rid] != nil
}

func (c *control) grant(rid string, consumed uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.work[rid]; w != nil {
		if r := w.reply.Load(); r != nil {
			r.credit.grant(consumed)
		}
	}
}

// recent remembers the last few thousand request ids.
type recent struct {
	ring [4096]string
	next int
	set  map[string]struct{}
}

func (r *recent) add(rid string) {
	if r.set == nil {
		r.set = make(map[string]struct{}, len(r.ring))
	}
	if r.has(rid) {
		return
	}
	delete(r.set, r.ring[r.next])
	r.ring[r.next] = rid
	r.set[rid] = struct{}{}
	r.next = (r.next + 1) % len(r.ring)
}

func (r *recent) has(rid string) bool {
	_, ok := r.set[rid]
	return ok
}

// Answers to the question whether a worker has a request.
const (
	hasIt    = "1"
	hasItNot = "0"
)

// subscribeControl makes cancellations and credits reach the work that is under way on this bus, and tells others whether a request is.
func (b *Bus) subscribeControl() (*Subscription, error) {
	var s Subscription
	for subj, handle := range map[string]nats.MsgHandler{
		subject.AllCancels: func(m *nats.Msg) { b.control.cancel(subject.Last(m.Subject)) },
		subject.AllCredits: func(m *nats.Msg) {
			if consumed, n := binary.Uvarint(m.Data); n > 0 {
				b.control.grant(subject.Last(m.Subject), consumed)
			}
		},
		subject.Worker(b.id): func(m *nats.Msg) {
			answer := hasItNot
			if b.busyWith(string(m.Data)) {
				answer = hasIt
			}
			_ = m.Respond([]byte(answer)) // who asks asks again
		},
	} {
		sub, err := b.nc.Subscribe(subj, handle)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("subscribing to %s: %w", subj, err), s.Stop())
		}
		s.subs = append(s.subs, sub)
	}
	return &s, nil
}

// credit counts what the client has taken and lets the writer wait for it.
type credit struct {
	mu       sync.Mutex
	consumed uint64
	changed  chan struct{}
}

func newCredit() *credit { return &credit{changed: make(chan struct{})} }

func (c *credit) grant(consumed uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if consumed > c.consumed {
		c.consumed = consumed
		close(c.changed)
		c.changed = make(chan struct{})
	}
}

// taken gives how much the client has taken.
func (c *credit) taken() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.consumed
}

// covers says whether upTo bytes are within the window.
func (c *credit) covers(upTo uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return upTo <= c.consumed+Window
}

// wait returns when upTo bytes are within the window.
func (c *credit) wait(ctx context.Context, upTo uint64) error {
	for {
		c.mu.Lock()
		ok, changed := upTo <= c.consumed+Window, c.changed
		c.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for the client to read: %w", context.Cause(ctx))
		}
	}
}
