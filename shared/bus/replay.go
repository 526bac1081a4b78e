package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hydrallm/shared/subject"
)

// Replay reads a recorded answer from its beginning, and goes on with it while it is recorded. It outlives outages of the server. It has one reader.
type Replay struct {
	bus   *Bus
	rid   string
	after uint64 // what was read last
	ended bool

	consumer string // name, "" when there is none
	messages jetstream.MessagesContext
	count    uint64 // of messages that the consumer sent
	failed   int    // tries in a row that gave no message
}

const (
	replayAhead    = 64        // messages that are fetched ahead
	replayBytes    = 512 << 10 // and their bytes; more than any of them has
	replayInactive = 30 * time.Second
	closeLimit     = 2 * time.Second
)

// errMissed says that a message of a recording was lost on its way here.
var errMissed = errors.New("a recorded message was missed")

// Replay begins to read the recorded answer to a request. The caller must Close it.
func (b *Bus) Replay(rid string) *Replay { return &Replay{bus: b, rid: rid} }

// Recorded is a piece of a recorded answer.
type Recorded struct {
	Frames []byte // whole frames; none when the piece says that the request waits, or that a worker has begun
	State  RecordingState
}

// ErrReplayed says that a recorded answer has been read to its end.
var ErrReplayed = errors.New("recording has ended")

// Next gives the next piece, and waits for it until ctx ends. It can be called again then.
func (p *Replay) Next(ctx context.Context) (Recorded, error) {
	for !p.ended {
		r, err := p.next(ctx)
		if err == nil || ctx.Err() != nil {
			return r, err
		}
		p.Close()
		p.failed++
		select {
		case <-time.After(reopenPause):
		case <-ctx.Done():
			return r, errors.Join(err, ended(ctx))
		}
		if _, err := p.bus.tailOf(ctx, p.rid); err != nil { // it may have been removed
			return r, err
		}
	}
	return Recorded{}, ErrReplayed
}

func (p *Replay) next(ctx context.Context) (r Recorded, err error) {
	if p.messages == nil {
		if err := p.open(ctx); err != nil {
			return r, err
		}
	}
	m, err := p.receive(ctx)
	if err != nil {
		return r, fmt.Errorf("reading a recording: %w", err)
	}
	meta, err := m.Metadata()
	if err != nil {
		return r, fmt.Errorf("reading a recording: %w", err)
	}
	if p.count++; meta.Sequence.Consumer != p.count {
		return r, errMissed
	}
	t := readTail(m.Headers(), meta.Sequence.Stream)
	p.failed = 0
	p.after, p.ended = t.sequence, t.state == RecordingEnded
	if r = (Recorded{State: t.state}); t.state != RecordingQueued { // there it is the note
		r.Frames = m.Data()
	}
	return r, nil
}

// receive waits for a message. It looks now and then whether there is one that does not come.
func (p *Replay) receive(ctx context.Context) (jetstream.Msg, error) {
	var s stall
	for {
		wait, cancel := context.WithTimeout(ctx, checkEvery<<min(p.failed, maxPatience))
		m, err := p.messages.Next(jetstream.NextContext(wait))
		over := err != nil && wait.Err() != nil && ctx.Err() == nil
		cancel()
		if !over {
			return m, err
		}
		missing, _, err := p.bus.misses(ctx, subject.RecordingsStream, subject.Recording(p.rid), p.after)
		if err == nil && s.judge(p.after, missing) {
			return nil, errStalled
		}
	}
}

func (p *Replay) open(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tryLimit(p.failed))
	defer cancel()
	cons, err := p.bus.createConsumer(ctx, subject.RecordingsStream, jetstream.ConsumerConfig{
		FilterSubject: subject.Recording(p.rid), DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: p.after + 1,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: replayInactive,
	})
	if err != nil {
		return fmt.Errorf("opening a recording: %w", err)
	}
	p.consumer, p.count = cons.CachedInfo().Name, 0
	p.messages, err = cons.Messages(
		jetstream.PullMaxMessagesWithBytesLimit(replayAhead, replayBytes), jetstream.PullExpiry(pullExpiry), jetstream.PullHeartbeat(pullHeartbeat), jetstream.WithMessagesErrOnMissingHeartbeat(true))
	if err != nil {
		return fmt.Errorf("reading a recording: %w", err)
	}
	return nil
}

// Exists gives ErrNoRecording when there is no recording any more, so that nothing can follow, and another error when that can't be found out.
func (p *Replay) Exists(ctx context.Context) error {
	_, err := p.bus.tailOf(ctx, p.rid)
	return err
}

// Close ends the reading. It is idempotent.
//
//nolint:contextcheck,nolintlint // it is seen at the callers: it has to tell the server when the reader's context has ended, too
func (p *Replay) Close() {
	if p.messages != nil {
		p.messages.Stop()
		p.messages = nil
	}
	if p.consumer == "" {
		return
	}
	ctx, cancel := context.WithTimeout(p.bus.session.life, closeLimit)
	defer cancel()
	_ = p.bus.js.DeleteConsumer(ctx, subject.RecordingsStream, p.consumer) // the server does so later
	p.consumer = ""
}

// Play reads what a recording holds at the moment, and gives take the frames of one piece after the other.
func (b *Bus) Play(ctx context.Context, rec *Recording, take func(frames []byte) error) error {
	p := b.Replay(rec.Request.ID)
	defer p.Close()
	for p.after < rec.last {
		r, err := p.Next(ctx)
		if err == nil {
			err = take(r.Frames)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
