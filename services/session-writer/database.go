package sessionwriter

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hydrallm/services/session-writer/internal/store"
	"hydrallm/shared/fault"
)

// database watches whether the database can be had, and prepares it when it could not be had at the start. It is safe for concurrent use.
type database struct {
	store *store.Store
	log   *slog.Logger
	up    prometheus.Gauge

	mu      sync.Mutex
	reached error // of the last look
	written error // of the last transaction
	told    error // what the log says
}

const (
	lookEvery = 2 * time.Second // between two looks, and two tries to prepare it
	lookLimit = 2 * time.Second // for a look
)

// begin prepares the database. When it can't be had at the moment, that is no error, and ready is false.
func (d *database) begin(ctx context.Context) (ready bool, err error) {
	err = d.store.Prepare(ctx)
	if err != nil && (ctx.Err() != nil || store.Hopeless(err)) {
		return false, err
	}
	d.reach(ctx, err)
	return err == nil, nil
}

// keep prepares the database unless it is ready, calls begun when it is, and looks for it until ctx ends.
func (d *database) keep(ctx context.Context, ready bool, begun func()) {
	for !ready {
		if !sleep(ctx, lookEvery) {
			return
		}
		err := d.store.Prepare(ctx)
		d.reach(ctx, err)
		ready = err == nil
	}
	begun()
	for sleep(ctx, lookEvery) {
		within, cancel := context.WithTimeout(ctx, lookLimit)
		_, err := d.store.Applied(within, "")
		cancel()
		d.reach(ctx, err)
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// reach takes the result of a look.
func (d *database) reach(ctx context.Context, err error) { d.note(ctx, &d.reached, err) }

// wrote takes the result of a transaction that writes. What the database has against the data says nothing about the database.
func (d *database) wrote(ctx context.Context, err error) {
	if !errors.Is(err, store.ErrRejected) && !errors.Is(err, store.ErrNoSession) {
		d.note(ctx, &d.written, err)
	}
}

func (d *database) note(ctx context.Context, place *error, err error) {
	if err != nil && errors.Is(ctx.Err(), context.Canceled) { // it was given up
		return
	}
	d.mu.Lock()
	*place = err
	now, before := errors.Join(d.reached, d.written), d.told
	d.told = now
	d.mu.Unlock()
	switch {
	case now == nil && before != nil:
		d.log.InfoContext(ctx, "the database can be had again")
	case now != nil && before == nil:
		d.log.ErrorContext(ctx, "the database can't be had: requests go on without their history, and what is to be stored waits", slog.Any("error", now))
	}
	up := 1.0
	if now != nil {
		up = 0
	}
	d.up.Set(up)
}

// away says whether the database could not be had lately.
func (d *database) away() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.told != nil
}

// beginLimit bounds the beginning of a turn; then the request goes on without its history. While the database can't be reached it makes no sense to wait for
// long. One that is slow gets its time all the same, or it would never be seen to have become faster.
func (d *database) beginLimit() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.reached != nil {
		return awayLimit
	}
	return databaseLimit
}

const (
	databaseLimit = 10 * time.Second
	awayLimit     = time.Second
)

// shown gives the error of a query as callers get it.
func (d *database) shown(err error) error {
	if _, ok := errors.AsType[*fault.Fault](err); ok || err == nil || !d.away() {
		return err
	}
	return &fault.Fault{Kind: fault.Unavailable, Message: "The database can't be had at the moment", RetryAfter: time.Second, Cause: err}
}

// Degraded says what the service does without at the moment.
func (s *Service) Degraded() string {
	if r := s.Running(); r != nil && r.database.away() {
		return "the database can't be had: requests go on without their history"
	}
	return ""
}
