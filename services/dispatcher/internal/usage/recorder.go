// Package usage turns finished requests into usage facts, several to a message.
package usage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
)

// Limits of a batch: what is waited for and how much one message may hold.
const (
	batchWait  = 20 * time.Millisecond
	batchCount = 128
	queueSize  = 4096
)

// Limits of publishing. What was paid for is to be in the ledger, however long NATS is away; but a stop has to end.
const (
	stopLimit = 10 * time.Second // from Stop until there is no time left
	lastLimit = 3 * time.Second  // for a message then
)

// Publisher stores a fact and returns when it is safe.
type Publisher interface {
	PublishFact(ctx context.Context, subj, id string, data []byte) error
}

// ErrStopped says that the recorder takes no more.
var ErrStopped = errors.New("usage recorder is stopped")

type record struct {
	usage contract.RequestRecord
	done  chan<- error
}

// Recorder publishes usage facts in batches of JSON lines.
type Recorder struct {
	pub    Publisher
	queue  chan record
	wg     sync.WaitGroup
	time   context.Context //nolint:containedctx // ends when there is none left
	hasten context.CancelFunc

	mu      sync.RWMutex // guards stopped against a send on the closed queue
	stopped bool
}

// NewRecorder starts a recorder. The caller must Stop it.
func NewRecorder(pub Publisher) *Recorder {
	r := &Recorder{pub: pub, queue: make(chan record, queueSize)}
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

// Record returns when the fact is stored or can't be.
func (r *Recorder) Record(ctx context.Context, u contract.RequestRecord) error {
	done := make(chan error, 1)
	if err := r.enqueue(ctx, record{usage: u, done: done}); err != nil {
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
	for first := range r.queue {
		batch := r.fill([]record{first})
		err := r.publish(batch)
		for _, rec := range batch {
			rec.done <- err
		}
	}
}

// fill collects what comes within batchWait.
func (r *Recorder) fill(batch []record) []record {
	timeout := time.NewTimer(batchWait)
	defer timeout.Stop()
	for len(batch) < batchCount {
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

func (r *Recorder) publish(batch []record) error {
	const usual = 512 // bytes of a fact
	lines := make([]byte, 0, usual*len(batch))
	for _, rec := range batch {
		lines = append(rec.usage.AppendJSON(lines), '\n')
	}
	ctx := r.time
	if ctx.Err() != nil {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLimit)
		defer cancel()
		ctx = last
	}
	return r.pub.PublishFact(ctx, subject.UsageRecorded, "", lines)
}
