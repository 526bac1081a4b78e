package sessionwriter

import (
	"context"
	"log/slog"
	"time"

	"hydrallm/services/session-writer/internal/store"
)

const pruneEvery = 24 * time.Hour

// keepPruned holds the tables within their bounds, at once and then every day, until ctx ends.
func keepPruned(ctx context.Context, db *store.Store, retention func() store.Retention, log *slog.Logger, m *metrics) {
	ticker := time.NewTicker(pruneEvery)
	defer ticker.Stop()
	for {
		prune(ctx, db, retention(), log, m)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func prune(ctx context.Context, db *store.Store, r store.Retention, log *slog.Logger, m *metrics) {
	removed, err := db.Prune(ctx, r, time.Now())
	m.pruned.WithLabelValues("system_logs").Add(float64(removed.Logs))
	m.pruned.WithLabelValues("usage_metrics").Add(float64(removed.Usage))
	m.pruned.WithLabelValues("attempts").Add(float64(removed.Calls))
	m.pruned.WithLabelValues("scraping_metrics").Add(float64(removed.Web))
	m.pruned.WithLabelValues("daily_usage").Add(float64(removed.Daily))
	m.pruned.WithLabelValues("sessions").Add(float64(removed.Sessions))
	m.pruned.WithLabelValues("responses").Add(float64(removed.Responses))
	if err != nil && ctx.Err() == nil {
		log.ErrorContext(ctx, "pruning the database", slog.Any("error", err))
		return
	}
	if removed != (store.Pruned{}) {
		log.InfoContext(ctx, "database pruned", slog.Int64("logs", removed.Logs), slog.Int64("requests", removed.Usage), slog.Int64("calls", removed.Calls),
			slog.Int64("days", removed.Daily), slog.Int64("sessions", removed.Sessions), slog.Int64("responses", removed.Responses))
	}
}
