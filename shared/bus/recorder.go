package bus

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"hydrallm/shared/contract"
)

// How long an outage of the server may last until what a worker records is given up: at any time, and when the worker is being cut off.
const (
	recordLimit = 3 * time.Minute
	cutOffLimit = 10 * time.Second
)

// maxLost bounds how many earlier deliveries a stage before the dispatcher is told of. It gives up before.
const maxLost = 64

// recorder writes the frames of a reply to the recording of its request.
type recorder struct {
	work  *Work
	tail  tail
	ended bool
}

// recording bounds what w records.
func (w *Work) recording() (context.Context, context.CancelFunc) {
	limit := recordLimit
	if w.stopped() {
		limit = cutOffLimit
	}
	return context.WithTimeout(w.bus.session.life, limit)
}

// write records frames, of which the last one may be an end. It waits until they are stored, also when the worker is cut off, because what it has to say
// then is recorded, too. Whoever is superseded is to stop, as if its client had left.
//
//nolint:contextcheck,nolintlint // it is seen at the callers: what is recorded outlives the handler, recording bounds it
func (r *recorder) write(frames []byte, end bool) error {
	ctx, cancel := r.work.recording()
	defer cancel()
	next := r.tail
	next.state = RecordingAnswering
	if end {
		next.state = RecordingEnded
	}
	next, err := r.work.bus.extend(ctx, r.work.Request.ID, r.tail, next, frames, nil)
	if errors.Is(err, ErrSuperseded) {
		r.ended = true
		r.work.cancel(contract.ErrClientGone)
	}
	if err != nil {
		return err
	}
	r.tail, r.ended = next, end
	return nil
}

// admitRecorded is admit for a request that no ingress owns: its recording says what has become of it. A worker that may run has said so in
// there, so that nobody else can write to it any more.
func (c *Consumer) admitRecorded(ctx context.Context, w *Work) bool {
	rid := w.Request.ID
	t, err := c.bus.tailOf(ctx, rid)
	switch {
	case errors.Is(err, ErrNoRecording), err == nil && t.state == RecordingEnded:
		w.Lost = t.ran
		c.decline(ctx, w)
		return false
	case err != nil:
		c.putOff(w, err)
		return false
	case t.worker != "" && c.bus.hasWork(ctx, t.worker, rid): // it is only slow in renewing its lease
		if t.worker == c.bus.id {
			w.settled.Store(true) // what becomes of the other delivery, here, becomes of this one
		} else {
			w.Retry(askRetry)
		}
		return false
	}
	reason := ""
	switch {
	case time.Now().After(w.Request.StartBy):
		reason = contract.ReasonLifetime
	case t.state == RecordingAnswering:
		reason = contract.ReasonWorkerLost
	}
	if reason != "" {
		if err := c.bus.end(ctx, rid, t, contract.End{Outcome: contract.OutcomeError, Reason: reason}); err != nil {
			c.putOff(w, err)
			return false
		}
		w.Lost = t.ran
		c.decline(ctx, w)
		return false
	}
	w.tail = t
	if w.Request.Slip.Here() != contract.StageEnriched { // other stages answer only what they refuse, and do not say that they have begun
		for d := uint64(1); d < min(w.Delivery, maxLost); d++ {
			w.Lost = append(w.Lost, d)
		}
		return true
	}
	if n := len(t.ran); n > 0 {
		w.Delivery = max(w.Delivery, t.ran[n-1]+1) // the server may have begun to count anew
	}
	w.Lost = t.ran
	next := t
	next.state, next.worker, next.ran = RecordingRunning, c.bus.id, append(slices.Clip(t.ran), w.Delivery)
	if w.tail, err = c.bus.extend(ctx, rid, t, next, nil, nil); err != nil {
		c.putOff(w, err)
		return false
	}
	return true
}

// putOff hands a message back that can't be decided about now.
func (c *Consumer) putOff(w *Work, err error) {
	c.bus.log.Warn("admitting a background request", slog.String("rid", w.Request.ID), slog.Any("error", err))
	w.Retry(askRetry)
}

// release lets another worker begin as if this one had not, if nothing of the answer has come.
//
//nolint:contextcheck,nolintlint // it is seen at the callers: the handler is being cut off, recording bounds it
func (w *Work) release() {
	if w.tail.state != RecordingRunning || w.tail.worker != w.bus.id {
		return // it has not begun
	}
	ctx, cancel := w.recording()
	defer cancel()
	next := w.tail
	next.state, next.worker, next.ran = RecordingQueued, "", w.tail.ran[:len(w.tail.ran)-1]
	if _, err := w.bus.extend(ctx, w.Request.ID, w.tail, next, nil, nil); err != nil && !errors.Is(err, ErrSuperseded) {
		w.bus.log.Warn("handing a background request back", slog.String("rid", w.Request.ID), slog.Any("error", err)) // it counts as lost
	}
}

// conclude gives a recording an end whose worker has none for it.
func (w *Work) conclude() {
	if !w.Request.Background {
		return
	}
	r := &recorder{work: w, tail: w.tail}
	if reply := w.reply.Load(); reply != nil {
		r = reply.recorder
	}
	if r.ended {
		return
	}
	end := contract.End{Outcome: contract.OutcomeError, Reason: contract.ReasonUnfinished}
	if err := r.write(endFrame(end), true); err != nil && !errors.Is(err, ErrSuperseded) {
		w.bus.log.Warn("ending a recorded answer", slog.String("rid", w.Request.ID), slog.Any("error", err)) // the sweeper ends it
	}
}
