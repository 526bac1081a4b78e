package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/nats-io/nats.go/jetstream"
)

func (b *Bus) loadBody(ctx context.Context, name string) ([]byte, error) {
	body, err := b.bodies.GetBytes(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("loading body %s: %w", name, err)
	}
	return body, nil
}

// Discard removes the stored body of this message, if it had one. Bodies that nobody discards expire.
func (w *Work) Discard(ctx context.Context) error {
	if w.object == "" {
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
