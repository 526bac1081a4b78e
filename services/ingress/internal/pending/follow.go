package pending

import (
	"context"
	"errors"
	"sync"
	"time"

	"hydrallm/shared/bus"
	"hydrallm/shared/contract"
)

// Source gives a recorded answer piece by piece; *bus.Replay is one.
type Source interface {
	Next(ctx context.Context) (bus.Recorded, error)
	Exists(ctx context.Context) error
	Close()
}

// follower takes the answer to a request out of a recording. Nobody works for this client alone, so that nobody is told when it leaves.
type follower struct {
	source Source
	cancel context.CancelFunc

	mu      sync.Mutex
	ahead   int           // bytes that were handed on and not taken
	taken   uint64        // by the client
	changed chan struct{} // has room for one: the client has taken more
}

// A recording that is silent for lookEvery is looked for, and then less and less often: on a busy machine it takes long to begin to read it.
const (
	lookEvery = 5 * time.Second
	maxSilent = 3 // times that this is doubled
)

// Follow is Add for a request whose answer is recorded: its frames come from source, which is closed when the request is removed or ctx ends.
func (t *Table) Follow(ctx context.Context, id string, client Client, startBy time.Time, source Source) *Request {
	ctx, cancel := context.WithCancel(ctx)
	r := t.add(id, client, startBy, &follower{source: source, cancel: cancel, changed: make(chan struct{}, 1)})
	t.followers.Go(func() {
		defer source.Close()
		defer cancel()
		if err := t.follow(ctx, r); ctx.Err() == nil {
			t.Fail(r, err) // unless it has ended
		}
	})
	return r
}

// follow hands the recorded answer on, and says why there is no more of it.
func (t *Table) follow(ctx context.Context, r *Request) error {
	f, known, silent := r.follower, time.Now(), 0
	for {
		piece, err := f.next(ctx, lookEvery<<min(silent, maxSilent))
		switch away := errors.Is(err, errAway); {
		case away && time.Since(known) < t.limits.Queue: // it may be back soon
		case err != nil:
			return ErrLost
		default:
			known = time.Now()
		}
		if silent++; piece.State != "" {
			silent = 0
		}
		if piece.State == bus.RecordingRunning || piece.State == bus.RecordingAnswering {
			r.alive("", contract.Sign{Position: recordedAt})
		}
		size, err := look(piece.Frames)
		if err == nil {
			err = f.room(ctx, size)
		}
		if err != nil {
			return err
		}
		if len(piece.Frames) == 0 {
			continue
		}
		if _, err := r.deliver(piece.Frames); err != nil {
			t.report(r, err)
			return err
		}
	}
}

// errAway says that nothing can be found out about a recording at the moment.
var errAway = errors.New("recording can't be read")

// next waits for a piece. After a while it gives an empty one, if something may still follow.
func (f *follower) next(ctx context.Context, limit time.Duration) (bus.Recorded, error) {
	wait, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	piece, err := f.source.Next(wait)
	if err == nil || wait.Err() == nil || ctx.Err() != nil {
		return piece, err
	}
	look, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err = f.source.Exists(look); err != nil && !errors.Is(err, bus.ErrNoRecording) {
		err = errAway
	}
	return bus.Recorded{}, err
}

// look gives the size of the data in frames. An end that is not the worker's own is an error.
func look(frames []byte) (size int, err error) {
	for f, err := range contract.Frames(frames) {
		if err != nil {
			return 0, ErrMalformed
		}
		switch f.Kind {
		case contract.FrameData:
			size += len(f.Payload)
		case contract.FrameEnd:
			switch end, _ := contract.ParseEnd(f.Payload); end.Reason {
			case "":
			case contract.ReasonLifetime:
				return 0, ErrDeadline
			case contract.ReasonWorkerLost:
				return 0, ErrDied
			default:
				return 0, ErrLost
			}
		case contract.FrameHead:
		}
	}
	return size, nil
}

// recordedAt is the position of all frames of recordings.
var recordedAt = contract.Position{Stage: contract.StageEnriched, Delivery: 1}

// room waits until the client may be given size bytes more.
func (f *follower) room(ctx context.Context, size int) error {
	for !f.fits(size) {
		select {
		case <-f.changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (f *follower) fits(size int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ahead > 0 && f.ahead+size > bus.Window {
		return false
	}
	f.ahead += size
	return true
}

// Took takes in that the client has taken so many bytes in all. It is false when the worker of the request should hear of it.
func (r *Request) Took(bytes uint64) bool {
	f := r.follower
	if f == nil {
		return false
	}
	f.mu.Lock()
	f.ahead -= int(bytes - f.taken)
	f.taken = bytes
	f.mu.Unlock()
	select {
	case f.changed <- struct{}{}:
	default:
	}
	return true
}
