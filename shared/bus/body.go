package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// How long one try may take with all parts of a body. Each has twice the time of the one before: the first should notice soon that a part was lost, and
// a machine with much to do may need long for a large body.
const (
	firstBodyWait = 10 * time.Second
	lastBodyWait  = 16 * firstBodyWait
)

// patience gives each try with a body its time.
type patience struct{ last time.Duration }

func (p *patience) next(ctx context.Context) (context.Context, context.CancelFunc) {
	p.last = min(max(2*p.last, firstBodyWait), lastBodyWait)
	return context.WithTimeoutCause(ctx, p.last, errNoAck)
}

// storeBody puts a body above the payload limit into the object store. It waits as store does.
func (b *Bus) storeBody(ctx context.Context, name string, body []byte) error {
	var p patience
	err := b.persist(ctx, func() error {
		ctx, cancel := p.next(ctx)
		defer cancel()
		_, err := b.bodies.PutBytes(ctx, name, body)
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("storing a body of %d bytes: %w", len(body), err)
	}
	return nil
}

// loadBody gets a body that is not in its message.
func (b *Bus) loadBody(ctx context.Context, name string) (body []byte, err error) {
	if isLocal(name) {
		if body = b.local.get(name); body == nil {
			return nil, fmt.Errorf("loading body %s: %w", name, jetstream.ErrObjectNotFound)
		}
		return body, nil
	}
	for p := (patience{}); p.last < lastBodyWait; {
		try, cancel := p.next(ctx)
		body, err = b.bodies.GetBytes(try, name)
		late := try.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil {
			return body, nil
		}
		if !late {
			break
		}
	}
	return nil, fmt.Errorf("loading body %s: %w", name, err)
}

// Discard removes the stored body of this message, if it had one. Bodies that nobody discards expire.
func (w *Work) Discard(ctx context.Context) error {
	switch {
	case w.object == "":
		return nil
	case isLocal(w.object):
		w.bus.local.discard(w.object)
		return nil
	}
	if err := w.bus.bodies.Delete(ctx, w.object); err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
		return fmt.Errorf("discarding body %s: %w", w.object, err)
	}
	return nil
}

// discard is Discard where nobody can do anything about a failure: the body expires.
func (w *Work) discard(ctx context.Context) {
	if err := w.Discard(ctx); err != nil {
		w.bus.log.Warn("discarding a body", slog.String("rid", w.Request.ID), slog.Any("error", err))
	}
}

func stack() string { return string(debug.Stack()) }
