// Package lifecycle starts services in order and stops them in the reverse order, in two phases: a soft one in which work under way may
// finish, and a hard one when its time is over.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// Service is a part of the process that can be started and stopped.
//
// Start returns when the service works, or with an error after it has undone what it began; the context covers the start only. It does nothing
// when the service works already. Stop takes no new work, waits for work under way until ctx ends, cancels the rest, and returns when nothing
// of the service runs any more. Stop is idempotent and tolerates a service that was never started. A Switch keeps these promises.
type Service interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
}

// Busy is a service that can say what its Stop waits for, such as "3 answers"; "" is nothing in particular. It is called while Stop runs.
type Busy interface {
	Busy() string
}

// Degraded is a service that works without something it should have, and can say so, such as "the database can't be had"; "" is nothing.
type Degraded interface {
	Degraded() string
}

// Named is a service with its name for logs and errors.
type Named struct {
	Name    string
	Service Service
}

// How long a stop may take without a word, and how often there is one afterwards.
const (
	quietStop = time.Second
	stopWord  = 10 * time.Second
)

// hardLimit bounds the second phase of each service: cancelled work must return by then.
const hardLimit = 5 * time.Second

// Run starts the services in order, waits until ctx ends or fail gives an error, and stops them in the reverse order. Services that are up
// share the soft limit. Every error is returned; ending by ctx is none.
func Run(ctx context.Context, log *slog.Logger, soft time.Duration, fail <-chan error, services ...Named) error {
	started := 0
	var err error
	for _, s := range services {
		if err = s.Service.Start(ctx); err != nil {
			err = fmt.Errorf("starting %s: %w", s.Name, err)
			if errors.Is(err, context.Canceled) && ctx.Err() != nil {
				err = nil // told to stop while starting
			}
			break
		}
		log.Debug("service started", slog.String("service", s.Name))
		started++
	}
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-fail:
		}
	}
	return errors.Join(err, stop(context.WithoutCancel(ctx), log, soft, services[:started]))
}

func stop(ctx context.Context, log *slog.Logger, soft time.Duration, services []Named) error {
	ctx, cancel := context.WithTimeout(ctx, soft)
	defer cancel()
	if len(services) > 0 {
		log.Info("stopping", slog.Duration("limit", soft))
	}
	var errs []error
	for _, s := range slices.Backward(services) {
		if err := stopOne(ctx, log, s); err != nil {
			errs = append(errs, err)
			continue
		}
		log.Debug("service stopped", slog.String("service", s.Name))
	}
	return errors.Join(errs...)
}

// stopOne gives a service the rest of the soft limit, and at least a moment when an earlier one used it up. It says what is waited for.
func stopOne(ctx context.Context, log *slog.Logger, s Named) error {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < time.Second {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
	}
	done := make(chan error, 1)
	go func() { done <- s.Service.Stop(ctx) }()
	late := afterSoft(ctx)
	word := time.NewTimer(quietStop)
	defer word.Stop()
	for {
		select {
		case err := <-done:
			if err != nil {
				return fmt.Errorf("stopping %s: %w", s.Name, err)
			}
			return nil
		case <-late:
			return fmt.Errorf("stopping %s: %w", s.Name, ErrStuck)
		case <-word.C:
			word.Reset(stopWord)
			logWait(ctx, log, s)
		}
	}
}

func logWait(ctx context.Context, log *slog.Logger, s Named) {
	attrs := []slog.Attr{slog.String("service", s.Name)}
	if b, ok := s.Service.(Busy); ok && b.Busy() != "" {
		attrs = append(attrs, slog.String("for", b.Busy()))
	}
	if deadline, ok := ctx.Deadline(); ok {
		attrs = append(attrs, slog.Duration("left", max(0, time.Until(deadline)).Round(time.Second)))
	}
	log.LogAttrs(ctx, slog.LevelInfo, "stopping: waiting", attrs...)
}

// ErrStuck says that a service did not return although its work was cancelled.
var ErrStuck = errors.New("service does not stop")

// afterSoft is closed hardLimit after ctx ends.
func afterSoft(ctx context.Context) <-chan struct{} {
	late := make(chan struct{})
	context.AfterFunc(ctx, func() { time.AfterFunc(hardLimit, func() { close(late) }) })
	return late
}

// Signals gives a context that ends at the first SIGINT or SIGTERM. A second signal ends the process at once.
func Signals() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
