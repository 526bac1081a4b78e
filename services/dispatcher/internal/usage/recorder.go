// Package usage turns requests and their upstream calls into usage facts, several to a message.
package usage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"hydrallm/shared/bus"
	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
)

// Limits of a batch: what is waited for, how much is taken together, and how much one message holds.
const (
	batchWait    = 20 * time.Millisecond
	batchCount   = 512
	messageBytes = 256 << 10
	queueSize    = 4096
)

// publishing bounds the batches that wait at the same time for NATS to have them. A slow one does not hold up those behind it: what has begun is
// known within batchWait and the time of one publication.
const publishing = 64

// Limits of publishing. What was paid for is to be in the ledger, however long NATS is away; but a stop has to end, and a call has to begin.
const (
	stopLimit  = 10 * time.Second // from Stop until there is no time left
	lastLimit  = 3 * time.Second  // for a message then
	beginLimit = 2 * time.Second  // for the fact of a call that is waited for
)

// Publisher stores a fact and returns when it is safe.
type Publisher interface {
	PublishFact(ctx context.Context, subj, id string, data []byte) error
}

// ErrStopped says that the recorder takes no more.
var ErrStopped = errors.New("usage recorder is stopped")

type record struct {
	usage  contract.RequestRecord
	trace  trace.SpanContext // of who records it
	urgent bool
	done   chan<- error // nil when nobody waits
}

// Recorder publishes usage facts in batches of JSON lines.
type Recorder struct {
	pub    Publisher
	queue  chan record
	slots  chan struct{} // of batches that are being published
	wg     sync.WaitGroup
	time   context.Context //nolint:containedctx // ends when there is none left
	hasten context.CancelFunc

	mu      sync.RWMutex // guards stopped against a send on the closed queue
	stopped bool
}

// NewRecorder starts a recorder. The caller must Stop it.
func NewRecorder(pub Publisher) *Recorder {
	r := &Recorder{pub: pub, queue: make(chan record, queueSize), slots: make(chan struct{}, publishing)}
	r.time, r.hasten = context.WithCancel(context.Background())
	r.wg.Go(r.run)
	return r
}

// Hasten ends the patience with a NATS that is away: what is being published is given up, and what comes has a moment each. It may be called at
// any time.
func (r *Recorder) Hasten() {
	if r != nil {
		r.hasten()
	}
}

// Begin takes in a call that is about to be made, the last attempt of u. It waits for the first of a delivery only if the queue is full: if this process
// dies before its fact is out, the request comes back and tells that the delivery was lost. Nothing but the fact itself would tell of a further
// call, so that Begin waits for that, which is sent at once, for beginLimit at most.
func (r *Recorder) Begin(ctx context.Context, u contract.RequestRecord) {
	if u.Attempts[len(u.Attempts)-1].Ordinal <= 1 {
		_ = r.enqueue(ctx, record{usage: u}) // it fails only if ctx ends, and the call with it
		return
	}
	ctx, cancel := context.WithTimeout(ctx, beginLimit)
	defer cancel()
	_ = r.submit(ctx, record{usage: u, urgent: true})
}

// Record returns when the fact is stored or can't be.
func (r *Recorder) Record(ctx context.Context, u contract.RequestRecord) error {
	return r.submit(ctx, record{usage: u})
}

// submit enqueues a fact and waits until it is stored.
func (r *Recorder) submit(ctx context.Context, rec record) error {
	done := make(chan error, 1)
	rec.done = done
	if err := r.enqueue(ctx, rec); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("recording usage: %w", context.Cause(ctx))
	}
}

func (r *Recorder) enqueue(ctx context.Context, rec record) error {
	rec.trace = trace.SpanContextFromContext(ctx)
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.stopped {
		return ErrStopped
	}
	select {
	case r.queue <- rec:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("recording usage: %w", context.Cause(ctx))
	}
}

// Stop publishes what is queued and ends the recorder. It is idempotent.
func (r *Recorder) Stop() {
	if r == nil {
		return
	}
	r.mu.Lock()
	if !r.stopped {
		r.stopped = true
		close(r.queue)
	}
	r.mu.Unlock()
	timer := time.AfterFunc(stopLimit, r.hasten)
	r.wg.Wait()
	timer.Stop()
	r.hasten()
}

func (r *Recorder) run() {
	usual := 1 // records of a batch, as in the last one
	for first := range r.queue {
		batch := r.fill(append(make([]record, 0, usual), first))
		usual = len(batch) + len(batch)/4 + 1
		r.slots <- struct{}{}
		r.wg.Go(func() {
			defer func() { <-r.slots }()
			err := r.publish(batch)
			for _, rec := range batch {
				if rec.done != nil {
					rec.done <- err
				}
			}
		})
	}
}

// fill collects what comes within batchWait, or until something is urgent.
func (r *Recorder) fill(batch []record) []record {
	timeout := time.NewTimer(batchWait)
	defer timeout.Stop()
	for len(batch) < batchCount && !batch[len(batch)-1].urgent {
		select {
		case rec, ok := <-r.queue:
			if !ok {
				return batch
			}
			batch = append(batch, rec)
		case <-timeout.C:
			return batch
		}
	}
	return batch
}

// publish stores a batch, as several messages if it is large.
func (r *Recorder) publish(batch []record) error {
	const usual = 640 // bytes of a fact
	last := lastOf(batch)
	lines := make([]byte, 0, min(usual*len(last), messageBytes))
	var traces []trace.SpanContext
	var errs []error
	for i := range batch {
		u := &batch[i].usage
		if last[deliveryOf(u)] != i { // a later fact of the delivery says as much
			continue
		}
		lines = append(u.AppendJSON(lines), '\n')
		if batch[i].trace.IsSampled() {
			traces = append(traces, batch[i].trace)
		}
		if len(lines) >= messageBytes {
			errs = append(errs, r.send(lines, traces))
			lines, traces = make([]byte, 0, messageBytes), nil
		}
	}
	if len(lines) > 0 {
		errs = append(errs, r.send(lines, traces))
	}
	return errors.Join(errs...)
}

// delivery names a delivery of a request.
type delivery struct {
	rid   string
	count uint64
}

// deliveryOf is the one that made the last call of u.
func deliveryOf(u *contract.RequestRecord) delivery {
	d := delivery{rid: u.RequestID}
	if n := len(u.Attempts); n > 0 {
		d.count = u.Attempts[n-1].Delivery
	}
	return d
}

// lastOf gives the index of the last fact of each delivery.
func lastOf(batch []record) map[delivery]int {
	last := make(map[delivery]int, len(batch))
	for i := range batch {
		last[deliveryOf(&batch[i].usage)] = i
	}
	return last
}

func (r *Recorder) send(lines []byte, traces []trace.SpanContext) error {
	ctx := r.time
	if ctx.Err() != nil {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLimit)
		defer cancel()
		ctx = late
	}
	return r.pub.PublishFact(bus.WithTraces(ctx, traces), subject.UsageRecorded, "", lines)
}
