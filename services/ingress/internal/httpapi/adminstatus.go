package httpapi

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/valyala/fasthttp"

	"hydrallm/services/ingress/internal/snapshot"
	"hydrallm/shared/query"
)

// showStatus shows what all dispatchers know, in one picture.
func showStatus(x *exchange) error {
	status, err := x.api.status(x.api.Queries())
	if err != nil {
		return err
	}
	x.json(fasthttp.StatusOK, status)
	return nil
}

// status gives what all dispatchers know, as JSON. Before one of them has shown itself, any is asked.
func (a *API) status(ctx context.Context) ([]byte, error) {
	ids := a.Dispatchers()
	if len(ids) == 0 {
		return query.GetStatus.AskRaw(ctx, a.Bus, query.None{})
	}
	replies := query.GetStatus.AskEach(ctx, a.Bus, ids, query.None{})
	all, ok := snapshot.Of(replies)
	if !ok {
		return nil, replies[0].Err
	}
	body, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("encoding the status: %w", err)
	}
	return body, nil
}

// dashboardLogs is how many events the dashboard shows.
const dashboardLogs = 100

// showDashboard shows sums and the newest events.
func showDashboard(x *exchange) error {
	a := x.api
	stats, err := query.GetStats.AskRaw(a.Queries(), a.Bus, query.None{})
	if err != nil {
		return err
	}
	logs, err := query.GetLogs.AskRaw(a.Queries(), a.Bus, query.Logs{Page: query.Page{Limit: dashboardLogs}})
	if err != nil {
		return err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(a.withNames(stats), &all); err != nil {
		return fmt.Errorf("reading sums: %w", err)
	}
	all["recent_logs"] = logs
	return showJSON(x, all)
}
