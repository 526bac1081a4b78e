package execute

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/slot"
	"hydrallm/shared/telemetry"
)

// The event lines of R-370. They name upstreams and figures, never keys or bodies.

func (e *Executor) event(ctx context.Context, level slog.Level, event string, pairs ...any) {
	telemetry.Event(ctx, e.Log, level, event, pairs...)
}

// load shows the slots of a link as name and value of an event line.
func (e *Executor) load(l *Link) (name, value string) {
	c := l.candidate()
	name, value, _ = strings.Cut(slot.Load{ID: l.name(), Active: e.Slots.Count(c.ID), Limit: c.Limit}.String(), "=")
	return name, value
}

func (a *attempt) logAccepted(ctx context.Context) {
	r, c := a.run, a.link.Channel
	if n := len(r.record.Attempts); n > 0 {
		last := r.record.Attempts[n-1]
		r.exec.event(ctx, slog.LevelWarn, "failover", "model", r.job.Request.Model, "upstream", last.Upstream, "status", last.Status,
			"reason", last.Reason, "next", c.ID)
		r.exec.Metrics.failover(r.last.Class)
	}
	if !r.exec.Log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	name, value := r.exec.load(&a.link.Link)
	r.exec.event(ctx, slog.LevelInfo, "accepted", "model", r.job.Request.Model, "upstream", c.ID, "provider", c.Provider, name, value)
}

func (a *attempt) logEnd(ctx context.Context, v classify.Verdict) {
	level, event := slog.LevelInfo, "end success"
	switch v.Class {
	case classify.Success:
	case classify.Cancelled:
		event = "end cancel"
	default:
		level, event = slog.LevelWarn, "end error"
	}
	e, c := a.run.exec, a.link.Channel
	if !e.Log.Enabled(ctx, level) {
		return
	}
	name, value := e.load(&a.link.Link)
	pairs := []any{"upstream", c.ID, "duration", time.Since(a.started).Round(time.Millisecond), "status", a.status, name, value}
	if v.Reason != "" {
		pairs = append(pairs, "reason", v.Reason)
	}
	e.event(ctx, level, event, pairs...)
}

func (r *run) logRejected(ctx context.Context) {
	pairs := []any{"model", r.job.Request.Model}
	for i := range r.links {
		name, value := r.exec.load(&r.links[i].Link)
		pairs = append(pairs, name, value)
	}
	r.exec.event(ctx, slog.LevelWarn, "rejected 503 all upstreams busy", pairs...)
}
