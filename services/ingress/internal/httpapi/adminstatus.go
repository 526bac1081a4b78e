package httpapi

import (
	"encoding/json"
	"fmt"

	"hydrallm/services/ingress/internal/snapshot"
	"hydrallm/shared/query"
)

// showStatus shows what all dispatchers know, in one picture. Before one of them has shown itself, any is asked.
func showStatus(x *exchange) error {
	a := x.api
	ids := a.Dispatchers()
	if len(ids) == 0 {
		return pass(x, query.GetStatus, query.None{})
	}
	replies := query.GetStatus.AskEach(a.Queries(), a.Bus, ids, query.None{})
	all, ok := snapshot.Of(replies)
	if !ok {
		return replies[0].Err
	}
	return showJSON(x, all)
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
	logs, err := query.GetLogs.AskRaw(a.Queries(), a.Bus, query.Logs{Limit: dashboardLogs})
	if err != nil {
		return err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(stats, &all); err != nil {
		return fmt.Errorf("reading sums: %w", err)
	}
	all["recent_logs"] = logs
	return showJSON(x, all)
}
