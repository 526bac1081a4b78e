package httpapi

import (
	"cmp"
	"slices"

	"hydrallm/shared/query"
)

// commLogs is what GET /v1/admin/comm-logs shows.
type commLogs struct {
	Enabled bool              `json:"enabled"`
	Entries []query.CommEntry `json:"entries"` // newest first
}

const defaultCommLogs = 200

// showCommLogs shows the last calls of all dispatchers together.
func showCommLogs(x *exchange) error {
	limit, err := limitOf(x, defaultCommLogs)
	if err != nil {
		return err
	}
	lists, err := askDispatchers(x, query.GetCommLog, query.CommLogs{Limit: limit})
	if len(lists) == 0 {
		return err
	}
	all := commLogs{Enabled: x.api.Settings.Config().Log.Communication, Entries: slices.Concat(lists...)}
	slices.SortStableFunc(all.Entries, func(a, b query.CommEntry) int { return cmp.Compare(b.At.UnixNano(), a.At.UnixNano()) })
	all.Entries = append([]query.CommEntry{}, all.Entries[:min(len(all.Entries), limit)]...)
	return showJSON(x, all)
}

func clearCommLogs(x *exchange) error {
	if _, err := askDispatchers(x, query.ClearCommLog, query.None{}); err != nil {
		return err
	}
	return showJSON(x, query.Done{Status: query.Success})
}

// askDispatchers asks all dispatchers, or any before one of them has shown itself. Those that answer are there, and the error of one
// that does not.
func askDispatchers[Q, A any](x *exchange, op query.Op[Q, A], question Q) (answers []A, err error) {
	a := x.api
	ids := a.Dispatchers()
	if len(ids) == 0 {
		one, err := op.Ask(a.Queries(), a.Bus, question)
		if err != nil {
			return nil, err
		}
		return []A{one}, nil
	}
	for _, r := range op.AskEach(a.Queries(), a.Bus, ids, question) {
		switch {
		case r.Err == nil:
			answers = append(answers, r.Answer)
		case err == nil:
			err = r.Err
		}
	}
	return answers, err
}
