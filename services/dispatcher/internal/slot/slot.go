package slot

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
)

// Errors of an acquisition.
var (
	ErrBusy   = errors.New("every candidate is at its limit")
	ErrClosed = errors.New("slots are closed")
)

// Candidate is a place that may serve a request. Several may have the same ID: their calls are counted together, and each compares the sum with a
// limit of its own.
type Candidate struct {
	ID    string
	Limit int // of calls at the same time; 0 means that there is none
	// Counts says that others with this ID may have a limit, for which the calls of one without count as well.
	Counts bool
}

// Acquirer hands out slots. Implementations are safe for concurrent use.
type Acquirer interface {
	// Acquire takes a slot of the first candidate, in the given order, that is below its limit, and gives its index. Candidates for which skip
	// says true are passed over, such as those that the request has tried; skip may be nil and runs without any lock held. The
	// error is ErrBusy when nothing is free: no slot is taken then. Any other error means that a limit could not be checked; a candidate
	// further down is taken in preference to it.
	Acquire(ctx context.Context, candidates []Candidate, skip func(index int) bool) (*Lease, int, error)

	// Count gives how many calls of this process run under an ID.
	Count(id string) int
	// Active lists what calls of this process run under, in the order of the IDs. What is idle may be among it.
	Active() []Load
}

var (
	_ Acquirer = (*Local)(nil)
	_ Acquirer = (*Shared)(nil)
)

// maxIdle bounds how many IDs without a call are kept: clients bring names of models.
const maxIdle = 256

// Load is the load of an upstream.
type Load struct {
	ID     string
	Active int // calls of this process that run now
	Limit  int // that it was compared with the last time; 0 means none
}

// String is the form for logs: active[id]=2/4, or active[id]=2/inf without a limit.
func (u Load) String() string {
	if u.Limit <= 0 {
		return fmt.Sprintf("active[%s]=%d/inf", u.ID, u.Active)
	}
	return fmt.Sprintf("active[%s]=%d/%d", u.ID, u.Active, u.Limit)
}

// Lease is a slot that a call holds. It must be released; Release is the thing to defer as soon as the acquisition succeeded, so that a panic
// can't keep the slot.
type Lease struct {
	from     releaser
	id       string
	released atomic.Bool
}

type releaser interface{ release(id string) }

// Release gives the slot back. Only the first call does; it does not wait for the network. A nil Lease has nothing to give back.
func (l *Lease) Release() {
	if l != nil && !l.released.Swap(true) {
		l.from.release(l.id)
	}
}
