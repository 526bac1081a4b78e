package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
)

const (
	sweepEvery  = 5 * time.Second
	orphanLimit = 30 * time.Second // without a worker, since that was noticed
)

// Sweeper ends recorded answers that nobody will end otherwise: those whose request is older than its lifetime, and those that had a worker which is gone
// and got no other one for 30 seconds. Any number may run; the recordings are the fence between them.
type Sweeper struct {
	bus    *Bus
	puller *puller

	mu       sync.Mutex
	open     map[string]tail // recordings that have not ended
	messages uint64          // of the present consumer
	position uint64          // of the last one in the stream
	stall    stall

	orphans map[string]orphan // of the sweeping goroutine
	cancel  context.CancelFunc
	wg      sync.WaitGroup
}

// orphan is a request whose worker is gone.
type orphan struct {
	sequence uint64 // of the recording then
	since    time.Time
}

// Sweep begins to look after the recordings. The caller must Stop the sweeper.
func (b *Bus) Sweep(ctx context.Context) (*Sweeper, error) {
	s, err := b.followRecordings(ctx)
	if err != nil {
		return nil, err
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	s.wg.Go(func() { s.run(run) })
	return s, nil
}

// followRecordings makes a sweeper that only knows what there is to sweep.
func (b *Bus) followRecordings(ctx context.Context) (*Sweeper, error) {
	s := &Sweeper{bus: b, open: map[string]tail{}, orphans: map[string]orphan{}, cancel: func() {}}
	s.puller = &puller{bus: b, name: "recordings", open: s.read, ahead: watchAhead, anew: true}
	if err := s.puller.start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Stop ends the sweeping.
func (s *Sweeper) Stop() {
	if s != nil {
		s.cancel()
		s.puller.stop()
		s.wg.Wait()
	}
}

// read begins to follow where each recording stands; what the messages hold is not sent.
func (s *Sweeper) read(ctx context.Context) (*source, error) {
	cons, err := s.bus.createConsumer(ctx, subject.RecordingsStream, jetstream.ConsumerConfig{
		FilterSubject: subject.AllRecordings, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, AckPolicy: jetstream.AckNonePolicy, HeadersOnly: true,
		MemoryStorage: true, Replicas: 1, InactiveThreshold: watchInactive,
	})
	if err != nil {
		return nil, fmt.Errorf("following recordings: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.open)
	s.messages, s.position, s.stall = 0, 0, stall{}
	there := make(chan struct{})
	close(there) // nobody waits for what was there before
	return &source{cons: cons, take: s.take, caughtUp: there, check: s.check}, nil
}

// check looks whether there is more than what was taken.
func (s *Sweeper) check(ctx context.Context, tick bool) error {
	if !tick {
		return nil
	}
	s.mu.Lock()
	position := s.position
	s.mu.Unlock()
	missing, _, err := s.bus.misses(ctx, subject.RecordingsStream, subject.AllRecordings, position)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && s.stall.judge(position, missing) && s.position == position {
		return errStalled
	}
	return nil // who can't be asked says nothing
}

func (s *Sweeper) take(m *message) error {
	meta, err := m.Metadata()
	if err != nil {
		return fmt.Errorf("following recordings: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if meta.Sequence.Consumer != s.messages+1 {
		return errSkipped
	}
	s.messages, s.position = meta.Sequence.Consumer, meta.Sequence.Stream
	rid, t := subject.Last(m.Subject()), readTail(m.Headers(), meta.Sequence.Stream)
	if t.state == RecordingEnded {
		delete(s.open, rid)
	} else {
		s.open[rid] = t
	}
	return nil
}

func (s *Sweeper) forget(rid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, rid)
}

func (s *Sweeper) run(ctx context.Context) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			s.sweep(ctx, now)
		}
	}
}

func (s *Sweeper) sweep(ctx context.Context, now time.Time) {
	s.mu.Lock()
	open := maps.Clone(s.open)
	s.mu.Unlock()
	maps.DeleteFunc(s.orphans, func(rid string, o orphan) bool { return open[rid].sequence != o.sequence })
	absent := map[string]bool{} // workers that are gone
	for rid, t := range open {
		if ctx.Err() != nil {
			return
		}
		if reason := s.judge(ctx, rid, t, now, absent); reason != "" {
			s.end(ctx, rid, t, reason)
		}
	}
}

// judge says why a recording must be ended, "" if it must not.
func (s *Sweeper) judge(ctx context.Context, rid string, t tail, now time.Time, absent map[string]bool) string {
	switch {
	case now.After(t.deadline.Add(orphanLimit)): // its worker ends it, if it has one
		return contract.ReasonLifetime
	case t.worker == "":
		return "" // it waits
	}
	has := false
	if !absent[t.worker] {
		has, absent[t.worker] = s.bus.askWorker(ctx, t.worker, rid)
	}
	o, known := s.orphans[rid]
	switch {
	case has:
		delete(s.orphans, rid)
	case !known:
		s.orphans[rid] = orphan{t.sequence, now}
	case now.Sub(o.since) >= orphanLimit:
		return contract.ReasonWorkerLost
	}
	return ""
}

func (s *Sweeper) end(ctx context.Context, rid string, t tail, reason string) {
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	err := s.bus.end(ctx, rid, t, contract.End{Outcome: contract.OutcomeError, Reason: reason})
	if errors.Is(err, ErrSuperseded) { // somebody has begun to work on it, or another sweeper was faster
		if _, err := s.bus.tailOf(ctx, rid); errors.Is(err, ErrNoRecording) {
			s.forget(rid)
		}
		return
	}
	s.bus.log.Warn("recorded answer given up", slog.String("rid", rid), slog.String("reason", reason), slog.Any("error", err))
}
