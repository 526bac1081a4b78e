package store

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
)

const day = 24 * time.Hour

func generous() Retention {
	l := Limit{Rows: 1 << 40, Age: 1000 * day}
	return Retention{Logs: l, Usage: l, Calls: l, Web: l, Daily: l}
}

// fill stores n events and n requests, i days old and of one model each.
func fill(t *testing.T, s *Store, n int) {
	t.Helper()
	now := time.Now()
	batch, events := usages(n), make([]contract.Log, n)
	for i := range n {
		age := time.Duration(n-i) * day
		events[i] = event(i)
		events[i].At = now.Add(-age)
		batch[i].At, batch[i].UpstreamModel, batch[i].Attempts = now.Add(-age), strconv.Itoa(i), batch[i].Attempts[1:]
		batch[i].Attempts[0].At, batch[i].Attempts[0].Model = now.Add(-age), strconv.Itoa(i)
	}
	_, err := s.RecordLogs(t.Context(), events)
	require.NoError(t, err)
	_, err = s.RecordUsage(t.Context(), batch)
	require.NoError(t, err)
}

func TestPrune(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*Retention)
		want   Pruned
	}{
		"within the limits": {func(*Retention) {}, Pruned{}},
		"old logs":          {func(r *Retention) { r.Logs.Age = 10*day + time.Hour }, Pruned{Logs: 30}},
		"many logs":         {func(r *Retention) { r.Logs.Rows = 15 }, Pruned{Logs: 25}},
		"old requests":      {func(r *Retention) { r.Usage.Age = 39*day + time.Hour }, Pruned{Usage: 1}},
		"many requests":     {func(r *Retention) { r.Usage.Rows = 1 }, Pruned{Usage: 39}},
		"old calls":         {func(r *Retention) { r.Calls.Age = 38*day + time.Hour }, Pruned{Calls: 2}},
		"many calls":        {func(r *Retention) { r.Calls.Rows = 3 }, Pruned{Calls: 37}},
		"old days":          {func(r *Retention) { r.Daily.Age = 20 * day }, Pruned{Daily: 20}},
		"many days":         {func(r *Retention) { r.Daily.Rows = 5 }, Pruned{Daily: 35}},
		"everything":        {func(r *Retention) { *r = Retention{} }, Pruned{Logs: 40, Usage: 40, Calls: 40, Daily: 40}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachBackend(t, func(t *testing.T, s *Store) {
				t.Helper()
				fill(t, s, 40)
				r := generous()
				tc.change(&r)
				got, err := s.Prune(t.Context(), r, time.Now())
				require.NoError(t, err)
				require.Equal(t, tc.want, got)
				require.Equal(t, 40-int(got.Logs), countRows(t, s, "system_logs"))
				require.Equal(t, 40-int(got.Usage), countRows(t, s, "usage_metrics"))
				require.Equal(t, 40-int(got.Calls), countRows(t, s, "attempts"))
				require.Equal(t, 40-int(got.Daily), countRows(t, s, "daily_usage"))
				if left, err := s.Logs(t.Context(), limited(1)); len(left) > 0 {
					require.NoError(t, err)
					require.Equal(t, "event 39", left[0].Message, "the newest stays")
				}
				got, err = s.Prune(t.Context(), r, time.Now())
				require.NoError(t, err)
				require.Equal(t, Pruned{}, got)
			})
		})
	}
}

func TestPruneInSeveralSteps(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		batch := usages(2*pruneStep + 10)
		for i := range batch {
			batch[i].UpstreamModel, batch[i].Attempts[1].Model = batch[i].RequestID, batch[i].RequestID
		}
		_, err := s.RecordUsage(t.Context(), batch)
		require.NoError(t, err)
		r := generous()
		r.Usage.Rows, r.Calls.Rows, r.Daily.Rows = 5, 6, 7
		got, err := s.Prune(t.Context(), r, time.Now())
		require.NoError(t, err)
		require.Equal(t, Pruned{Usage: int64(len(batch) - 5), Calls: int64(2*len(batch) - 6), Daily: int64(len(batch) - 7)}, got)
	})
}
