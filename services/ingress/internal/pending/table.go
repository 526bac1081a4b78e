// Package pending keeps the requests whose answers an ingress awaits: it takes in reply frames, decides about redeliveries, and gives up
// on what nobody works on or waits for any more.
package pending

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"hydrallm/shared/contract"
)

// Canceller tells workers to stop; *bus.Bus is one.
type Canceller interface {
	Cancel(rid string) error
}

// Limits are the times after which something is done about a silence.
type Limits struct {
	Queue     time.Duration // how long a request waits for a worker of each stage
	Total     time.Duration // how long the stages have in all until the answer is committed; 0 = for ever
	Grace     time.Duration // how much later than that something may be heard
	Lease     time.Duration // after which a message comes back whose worker is not heard of
	Silence   time.Duration // how long a worker may be silent
	Heartbeat time.Duration // how long a stream may be silent before its client gets a sign of life
	Repair    time.Duration // how long frames may be missing that their worker can send again; 0 = it can't
}

const (
	shardCount = 64
	sweepEvery = 250 * time.Millisecond
)

// Table holds the pending requests of one ingress. It is safe for concurrent use. A shard's lock is never held together with a request's.
type Table struct {
	limits  Limits
	cancels Canceller
	log     *slog.Logger
	seed    maphash.Seed
	shards  [shardCount]shard
	size    atomic.Int64
	failed  func(error) // told about every failure
	orphans orphans

	followers sync.WaitGroup
}

type shard struct {
	mu       sync.RWMutex
	requests map[string]*Request
}

// NewTable makes an empty table. failed is called with the reason of every request that fails; it must not block.
func NewTable(limits Limits, cancels Canceller, log *slog.Logger, failed func(error)) *Table {
	t := &Table{limits: limits, cancels: cancels, log: log, seed: maphash.MakeSeed(), failed: failed}
	for i := range t.shards {
		t.shards[i].requests = map[string]*Request{}
	}
	return t
}

func (t *Table) shard(rid string) *shard { return &t.shards[maphash.String(t.seed, rid)%shardCount] }

// Add registers a request. It must be called before the request is published, and Remove afterwards in any case.
func (t *Table) Add(rid string, client Client, startBy time.Time) *Request {
	return t.add(rid, client, startBy, nil)
}

func (t *Table) add(rid string, client Client, startBy time.Time, f *follower) *Request {
	r := newRequest(rid, client, startBy.Add(t.limits.Grace), time.Now())
	r.follower, r.repairs = f, f == nil && t.limits.Repair > 0
	s := t.shard(rid)
	s.mu.Lock()
	s.requests[rid] = r
	s.mu.Unlock()
	t.size.Add(1)
	return r
}

// Remove forgets a request. If its answer is still open, whoever works on it is told to stop.
func (t *Table) Remove(r *Request) {
	s := t.shard(r.ID)
	s.mu.Lock()
	delete(s.requests, r.ID)
	s.mu.Unlock()
	t.size.Add(-1)
	if r.follower != nil || r.open() {
		t.release(r) // a failed one was cancelled when it failed
	}
}

// Len is the number of requests in the table.
func (t *Table) Len() int { return int(t.size.Load()) }

func (t *Table) find(rid string) *Request {
	s := t.shard(rid)
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.requests[rid]
}

// Deliver takes in one reply message. It is a bus.ReplyHandler: it keeps msg and does not block.
func (t *Table) Deliver(rid string, msg []byte) {
	r := t.find(rid)
	if r == nil {
		t.orphan(rid, msg)
		return
	}
	switch wanted, err := r.deliver(msg); {
	case err != nil:
		t.report(r, err)
		t.release(r)
	case !wanted:
		t.orphan(rid, msg)
	}
}

// Fence implements bus.Owner.
func (t *Table) Fence(q contract.FenceQuestion) contract.FenceAnswer {
	r := t.find(q.RequestID)
	if r == nil {
		return contract.FenceAnswer{Decision: contract.FenceStop}
	}
	answer, err := r.fence(q, time.Now(), t.limits)
	if err != nil {
		t.report(r, err)
		t.release(r)
	}
	return answer
}

// Alive implements bus.Owner.
func (t *Table) Alive(worker string, s contract.Sign) contract.Heard {
	if r := t.find(s.RequestID); r != nil {
		return r.alive(worker, s)
	}
	return contract.Heard{Unwanted: true}
}

// HandedBack implements bus.Owner.
func (t *Table) HandedBack(s contract.Sign) {
	if r := t.find(s.RequestID); r != nil {
		r.handedBack(s.Position)
	}
}

// Fail ends r with err and tells whoever works on it to stop.
func (t *Table) Fail(r *Request, err error) {
	if r.fail(err) {
		t.report(r, err)
		t.release(r)
	}
}

// FailAll ends every request.
func (t *Table) FailAll(err error) {
	for r := range t.all() {
		t.Fail(r, err)
	}
}

// Run gives up requests that are overdue or whose clients have gone, until ctx ends. The contexts of those that are followed must have ended by then.
func (t *Table) Run(ctx context.Context) {
	defer t.followers.Wait()
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			t.sweep(now)
		}
	}
}

func (t *Table) sweep(now time.Time) {
	for r := range t.all() {
		switch err := r.sweep(now, t.limits); {
		case err != nil:
			t.report(r, err)
			t.release(r)
		case r.client.Gone():
			t.Fail(r, ErrGone)
			r.client.Abort()
		}
	}
}

// all goes over the requests without holding a lock while the caller looks at one.
func (t *Table) all() func(yield func(*Request) bool) {
	return func(yield func(*Request) bool) {
		var list []*Request
		for i := range t.shards {
			s := &t.shards[i]
			s.mu.RLock()
			for _, r := range s.requests {
				list = append(list, r)
			}
			s.mu.RUnlock()
			for _, r := range list {
				if !yield(r) {
					return
				}
			}
			clear(list)
			list = list[:0]
		}
	}
}

func (t *Table) report(r *Request, err error) {
	t.failed(err)
	rid, reason := slog.String("rid", r.ID), slog.Any("error", err)
	switch {
	case errors.Is(err, ErrGone):
		t.log.Debug("client has gone", rid)
	case r.committed():
		t.log.Warn("answer given up", rid, reason)
	default: // the client gets a status, and whoever sends it says so
		t.log.Debug("answer given up", rid, reason)
	}
}

// release tells whoever works on the answer of r to stop.
func (t *Table) release(r *Request) {
	if r.follower != nil {
		r.follower.cancel()
		return
	}
	t.cancel(r.ID)
}

func (t *Table) cancel(rid string) {
	if err := t.cancels.Cancel(rid); err != nil {
		t.log.Warn("cancelling a request", slog.String("rid", rid), slog.Any("error", err))
	}
}
