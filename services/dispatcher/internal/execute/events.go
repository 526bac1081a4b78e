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

func (r *run) event(ctx context.Context, level slog.Level, event string, pairs ...any) {
	telemetry.Event(ctx, r.Log, level, event, pairs...)
}

// load shows the slots of a channel as name and value of an event line.
func (r *run) load(c *Channel) (name, value string) {
	u := slot.Load{ID: c.ID, Limit: c.Limit}
	for _, known := range r.Slots.Active() {
		if known.ID == c.Circuit {
			u.Active = known.Active
		}
	}
	name, value, _ = strings.Cut(u.String(), "=")
	return name, value
}

func (r *run) logAccepted(ctx context.Context, a *attempt) {
	if n := len(r.usage.Attempts); n > 0 {
		last := r.usage.Attempts[n-1]
		r.event(ctx, slog.LevelWarn, "failover", "model", r.job.Request.Model, "upstream", last.Upstream, "status", last.Status,
			"reason", last.Reason, "next", a.Channel.ID)
		r.Metrics.failover(r.last.Class)
	}
	if !r.Log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	name, value := r.load(a.Channel)
	r.event(ctx, slog.LevelInfo, "accepted", "model", r.job.Request.Model, "upstream", a.Channel.ID, "provider", a.Channel.Provider, name, value)
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
	if !a.Log.Enabled(ctx, level) {
		return
	}
	name, value := a.load(a.Channel)
	pairs := []any{"upstream", a.Channel.ID, "duration", time.Since(a.started).Round(time.Millisecond), "status", a.status, name, value}
	if v.Reason != "" {
		pairs = append(pairs, "reason", v.Reason)
	}
	a.event(ctx, level, event, pairs...)
}

func (r *run) logRejected(ctx context.Context, chain *Chain) {
	pairs := []any{"model", r.job.Request.Model}
	for _, link := range chain.Links {
		name, value := r.load(link.Channel)
		pairs = append(pairs, name, value)
	}
	r.event(ctx, slog.LevelWarn, "rejected 503 all upstreams busy", pairs...)
}
