package sessionwriter

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"hydrallm/services/session-writer/internal/store"
	"hydrallm/shared/bus"
)

// Operations of hydra.v1.query.session-writer; their answers are the bodies of the admin routes.
const (
	opStats     = "stats"      // no question; GET /v1/admin/stats
	opLogs      = "logs"       // logsQuery; GET /v1/admin/logs
	opClearLogs = "clear_logs" // no question; POST /v1/admin/logs/clear

	queryVersion = "1.0.0"
	queryLimit   = 10 * time.Second
	defaultLogs  = 50
)

// logsQuery is the question of opLogs; a limit of 0 means 50, and the store keeps it within 1..1000.
type logsQuery struct {
	Limit int `json:"limit"`
}

func queries(db *store.Store) map[string]bus.QueryHandler {
	return map[string]bus.QueryHandler{
		opStats: answering(func(ctx context.Context, _ []byte) (any, error) { return db.Stats(ctx) }),
		opLogs: answering(func(ctx context.Context, data []byte) (any, error) {
			var q logsQuery
			if len(data) > 0 {
				if err := json.Unmarshal(data, &q); err != nil {
					return nil, &bus.QueryError{Code: strconv.Itoa(http.StatusBadRequest), Message: "the question is not valid JSON"}
				}
			}
			if q.Limit == 0 {
				q.Limit = defaultLogs
			}
			return db.Logs(ctx, q.Limit)
		}),
		opClearLogs: answering(func(ctx context.Context, _ []byte) (any, error) {
			return map[string]string{"status": "success"}, db.ClearLogs(ctx)
		}),
	}
}

// answering bounds the time of an answer and encodes it.
func answering(ask func(context.Context, []byte) (any, error)) bus.QueryHandler {
	return func(ctx context.Context, data []byte) ([]byte, error) {
		ctx, cancel := context.WithTimeout(ctx, queryLimit)
		defer cancel()
		answer, err := ask(ctx, data)
		if err != nil {
			return nil, err
		}
		body, err := json.Marshal(answer)
		if err != nil {
			return nil, fmt.Errorf("encoding an answer: %w", err)
		}
		return body, nil
	}
}
