package sessionwriter

import (
	"context"

	"hydrallm/services/session-writer/internal/store"
	"hydrallm/shared/query"
)

const defaultLogs = 50

func handlers(db *store.Store) query.Handlers {
	h := query.Handlers{}
	query.GetStats.Handle(h, func(ctx context.Context, _ query.None) (query.Stats, error) { return db.Stats(ctx) })
	query.GetLogs.Handle(h, func(ctx context.Context, q query.Logs) ([]query.LogEntry, error) {
		if q.Limit == 0 {
			q.Limit = defaultLogs
		}
		return db.Logs(ctx, q.Limit)
	})
	query.ClearLogs.Handle(h, func(ctx context.Context, _ query.None) (query.Done, error) {
		return query.Done{Status: query.Success}, db.ClearLogs(ctx)
	})
	return h
}
