package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"hydrallm/shared/bus"
	"hydrallm/shared/config"
	"hydrallm/shared/fault"
	"hydrallm/shared/query"
	"hydrallm/shared/subject"
	"hydrallm/shared/telemetry"
)

// OnHangup has the units read their configuration again at each SIGHUP, until stop is called. A process that was started to ignore the signal, as
// nohup does, goes on ignoring it.
func OnHangup(ctx context.Context, units []*Unit, notify Notifier) (stop func()) {
	if signal.Ignored(syscall.SIGHUP) {
		return func() {}
	}
	came, over, ended := make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
	signal.Notify(came, syscall.SIGHUP)
	go func() {
		defer close(ended)
		for {
			select {
			case <-came:
				notify.reload(ctx, func() { reload(ctx, units) })
			case <-over:
				return
			}
		}
	}()
	return func() {
		signal.Stop(came)
		close(over)
		<-ended
	}
}

func reload(ctx context.Context, units []*Unit) {
	for _, u := range units {
		if _, err := u.Reload(ctx); err != nil {
			u.parts.Log.WarnContext(ctx, "reading the configuration again", slog.Any("error", err))
		}
	}
}

// errNotRunning says that a unit is not there to take over a configuration.
var errNotRunning = fault.New(fault.Unavailable, "The service does not run")

// Reload reads the configuration again and takes over what can be while the service runs. What can't is named, and something wrong in the file changes
// nothing. The log tells all of it.
func (u *Unit) Reload(ctx context.Context) (query.Reloaded, error) {
	r := u.Running()
	if r == nil {
		return query.Reloaded{}, errNotRunning
	}
	if u.parts.Again == nil {
		return query.Reloaded{}, fault.New(fault.Conflict, "This process has no configuration file")
	}
	r.reloading.Lock()
	defer r.reloading.Unlock()
	log := u.parts.Log.With(slog.String("service", u.connect.Name))
	next, err := u.parts.Again()
	if err != nil {
		log.ErrorContext(ctx, "the configuration was read again and is not taken over", slog.Any("error", err))
		return query.Reloaded{Applied: []string{}, Restart: []string{}, Refused: places(err)}, nil
	}
	now, applied, restart := r.settings.File().Reload(next)
	if len(applied) > 0 {
		r.settings.Rebase(now)
	}
	telemetry.Event(ctx, log, slog.LevelInfo, "config: read again", "applied", applied, "needs_restart", restart)
	return query.Reloaded{Applied: append([]string{}, applied...), Restart: append([]string{}, restart...)}, nil
}

// places says where errors are, and nothing of what the file holds.
func places(err error) []string {
	invalid, ok := errors.AsType[*config.InvalidError](err)
	if !ok {
		return []string{"the file can't be read"}
	}
	var all []string
	for _, f := range invalid.Findings {
		f.Message = "is wrong"
		all = append(all, f.String())
	}
	return all
}

// Instances gives the ids of the services that run, of all processes.
func Instances(ctx context.Context, b *bus.Bus) (ids []string, err error) {
	bucket, err := b.Bucket(ctx, subject.StateBucket)
	if err != nil {
		return nil, err
	}
	w, err := bucket.Watch(ctx, unitKey("*"), func(e bus.Entry) {
		if !e.Deleted {
			ids = append(ids, e.Key[len(unitKey("")):])
		}
	})
	if err != nil {
		return nil, err
	}
	w.Stop()
	return ids, nil
}

func unitKey(id string) string { return "unit." + id }

// showEvery is how often a unit shows itself. What it said is forgotten after 30 s.
const showEvery = 10 * time.Second

// show has others find the unit, until ctx ends.
func show(ctx context.Context, bucket *bus.Bucket, id string, log *slog.Logger) {
	for {
		if _, err := bucket.Put(ctx, unitKey(id), nil); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "showing that this service is there", slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(showEvery):
		}
	}
}

// control answers what is asked of each service, whatever it does.
func (u *Unit) control(ctx context.Context, r *unitRun) error {
	h := query.Handlers{}
	query.Reload.Handle(h, func(ctx context.Context, _ query.None) (query.Reloaded, error) { return u.Reload(ctx) })
	var err error
	r.queries, err = r.bus.Serve(ctx, bus.QueryConfig{Service: query.Control, Instance: u.parts.ID, Version: u.parts.Version, Handlers: h})
	if err != nil {
		return err
	}
	if r.bucket, err = r.bus.Bucket(ctx, subject.StateBucket); err != nil {
		return err
	}
	if _, err := r.bucket.Put(ctx, unitKey(u.parts.ID), nil); err != nil {
		return fmt.Errorf("showing the service: %w", err)
	}
	showing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.hide = cancel
	r.wg.Go(func() { show(showing, r.bucket, u.parts.ID, u.parts.Log) })
	return nil
}

// leave takes the unit off the list.
func (u *Unit) leave(ctx context.Context, r *unitRun) error {
	if r.hide != nil {
		r.hide()
		r.wg.Wait()
		if r.bus.Ready() { // else it is forgotten soon
			within, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushLimit)
			defer cancel()
			if err := r.bucket.Delete(within, unitKey(u.parts.ID), 0); err != nil {
				u.parts.Log.DebugContext(ctx, "taking the service off the list", slog.Any("error", err))
			}
		}
	}
	return r.queries.Stop(ctx)
}
