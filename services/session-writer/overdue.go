package sessionwriter

import (
	"context"
	"log/slog"
	"time"

	"hydrallm/services/session-writer/internal/store"
)

// overdueEvery is how often calls are looked for whose end nobody told in time.
const overdueEvery = 10 * time.Second

// keepSettled books calls that never end as lost, until ctx ends.
func keepSettled(ctx context.Context, db *store.Store, log *slog.Logger, m *metrics) {
	ticker := time.NewTicker(overdueEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			settle(ctx, db, time.Now(), log, m)
		}
	}
}

func settle(ctx context.Context, db *store.Store, now time.Time, log *slog.Logger, m *metrics) {
	n, err := db.LoseOverdue(ctx, now)
	m.overdue.Add(float64(n))
	switch {
	case err != nil && ctx.Err() == nil:
		log.WarnContext(ctx, "looking for upstream calls without an end", slog.Any("error", err))
	case n > 0:
		log.WarnContext(ctx, "upstream calls are lost: whoever made them is gone", slog.Int64("calls", n))
	}
}
