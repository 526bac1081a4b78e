package bus

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/nats-io/nats.go/jetstream"

	"hydrallm/shared/subject"
)

// NextFact gives the first stored fact of a subject at or behind a place in the stream; ok is false when there is none. What was stored before the call is
// seen, whichever server it was stored by.
func (b *Bus) NextFact(ctx context.Context, subj string, from uint64) (f Fact, ok bool, err error) {
	stream, err := b.factsStream(ctx)
	if err != nil {
		return f, false, err
	}
	m, err := stream.GetMsg(ctx, max(from, 1), jetstream.WithGetMsgSubject(subj))
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return f, false, nil
	case err != nil:
		return f, false, fmt.Errorf("reading a fact of %s: %w", subj, err)
	}
	data, _, err := b.factData(ctx, m.Header, m.Data)
	if err != nil {
		return f, false, err
	}
	return Fact{Subject: m.Subject, Data: data, Sequence: m.Sequence}, true, nil
}

// LastFact gives the place in the stream of the fact that was stored last, 0 when there is none.
func (b *Bus) LastFact(ctx context.Context) (uint64, error) {
	stream, err := b.factsStream(ctx)
	if err != nil {
		return 0, err
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return 0, fmt.Errorf("reading the end of the facts: %w", err)
	}
	return info.State.LastSeq, nil
}

// PurgeFacts removes all stored facts of a subject.
func (b *Bus) PurgeFacts(ctx context.Context, subj string) error {
	stream, err := b.factsStream(ctx)
	if err != nil {
		return err
	}
	if err := stream.Purge(ctx, jetstream.WithPurgeSubject(subj)); err != nil {
		return fmt.Errorf("removing the facts of %s: %w", subj, err)
	}
	return nil
}

// factsStream opens the stream once.
func (b *Bus) factsStream(ctx context.Context) (jetstream.Stream, error) {
	return b.openOnce(ctx, &b.facts, subject.FactsStream)
}

// openOnce gives a stream that may have been opened before.
func (b *Bus) openOnce(ctx context.Context, opened *atomic.Pointer[jetstream.Stream], name string) (jetstream.Stream, error) {
	if s := opened.Load(); s != nil {
		return *s, nil
	}
	s, err := b.js.Stream(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("opening stream %s: %w", name, err)
	}
	opened.Store(&s)
	return s, nil
}
