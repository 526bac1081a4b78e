package execute

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hydrallm/services/dispatcher/internal/queue"
	"hydrallm/shared/fault"
)

// How waiting in a queue ends, for the metrics.
const (
	waitServed  = "served"
	waitFull    = "full"
	waitTimeout = "timeout"
	waitLeft    = "left" // the client left, or another dispatcher goes on
)

var errWaited = errors.New("waited as long as the queue allows")

// claim takes a link that may be called. A request that has not been sent anywhere waits for one in the queue of its model, if there is one. The error is
// what the request ends with.
func (r *run) claim(ctx context.Context) (*link, reservation, error) {
	model := r.job.Request.Decision.Model
	queued := r.queue.Length > 0 && r.exec.Queues != nil && len(r.history) == 0
	if !queued || !r.exec.Queues.Busy(model) {
		if l, held, ok := r.reserve(ctx); ok {
			return l, held, nil
		}
		if !queued || r.ending() != allBusy || ctx.Err() != nil {
			return nil, reservation{}, r.exhausted(ctx)
		}
	}
	begun := time.Now()
	l, held, outcome, err := r.wait(ctx, model)
	r.exec.Metrics.waited(model, outcome, time.Since(begun))
	return l, held, err
}

// wait waits for the turn of the request, and then for a link. outcome says how that ends.
func (r *run) wait(ctx context.Context, model string) (l *link, held reservation, outcome string, err error) {
	req := r.job.Request
	place, err := r.exec.Queues.Enter(queue.Waiter{Request: req.ID, Model: model, Priority: req.Priority, Since: req.ReceivedAt}, r.queue)
	switch {
	case errors.Is(err, queue.ErrFull):
		return nil, held, waitFull, r.busy(ctx, fmt.Sprintf(", and %d requests wait for them", r.queue.Length), r.comeBack())
	case err != nil:
		return nil, held, waitLeft, errStopped
	}
	defer place.Leave()
	if r.job.Waits != nil {
		r.job.Waits()
	}
	r.waiting = true
	defer func() { r.waiting = false }()
	within, cancel := context.WithTimeoutCause(ctx, r.queue.Wait, errWaited)
	defer cancel()
	for {
		switch err := place.Turn(within); {
		case errors.Is(err, errWaited):
			return nil, held, waitTimeout, r.busy(ctx, fmt.Sprintf(" for %s, which is as long as a request waits", r.queue.Wait), r.comeBack())
		case err != nil:
			return nil, held, waitLeft, errStopped
		}
		for i := range r.links {
			r.links[i].full = false
		}
		if l, held, ok := r.reserve(ctx); ok {
			return l, held, waitServed, nil
		}
		if ctx.Err() != nil {
			return nil, held, waitLeft, errStopped
		}
		if r.ending() != allBusy {
			return nil, held, waitServed, r.exhausted(ctx)
		}
	}
}

// comeBack is when a request may be tried again for which there is no room: until then a good part of those who wait has been served, or given up.
func (r *run) comeBack() time.Duration {
	return min(max(time.Second, r.queue.Wait/4), fault.MaxRetryAfter)
}

// freed tells those who wait that a slot was given back.
func (e *Executor) freed() {
	if e.Queues != nil {
		e.Queues.Freed()
	}
}
