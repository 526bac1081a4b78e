package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
	"hydrallm/shared/query"
)

// what named keys have used is summed by quarters of an hour, each request and call once, whatever comes twice.
func TestUsageOfClients(t *testing.T) {
	t.Parallel()
	record := func(id, principal string, when time.Time, tokens int64, nanos *int64) contract.RequestRecord {
		return contract.RequestRecord{
			RequestID: id, Principal: principal, Model: "m", Status: "success", Total: tokens, At: when,
			Attempts: []contract.Attempt{{Delivery: 1, Ordinal: 1, Provider: "p", Model: "m", Outcome: contract.CallSuccess, CostNanos: nanos, At: when}},
		}
	}
	midnight := time.Now().UTC().Truncate(24 * time.Hour)
	batch := []contract.RequestRecord{
		record("1", "ck_a", midnight.Add(-time.Minute), 100, new(int64(7))),
		record("2", "ck_a", midnight, 10, new(int64(2))),
		record("3", "ck_a", midnight.Add(time.Second), 1, nil),
		record("4", "ck_b", midnight.Add(time.Second), 5, new(int64(3))),
		record("5", "anonymous", midnight.Add(time.Second), 5, new(int64(3))),
	}
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		for _, part := range [][]contract.RequestRecord{batch[:2], batch, batch[1:]} {
			_, err := s.RecordUsage(t.Context(), part)
			require.NoError(t, err)
		}
		got, err := s.ClientUsage(t.Context(), []query.ClientSince{
			{Principal: "ck_a", Since: midnight},
			{Principal: "ck_none", Since: midnight},
			{Principal: "ck_a", Since: midnight.Add(-time.Hour)},
			{Principal: "ck_b", Since: midnight},
			{Principal: "anonymous", Since: midnight},
			{Principal: "ck_a", Since: midnight.Add(24 * time.Hour)},
		})
		require.NoError(t, err)
		last := query.Time{Time: midnight.Add(time.Second)}
		require.Equal(t, []query.ClientUsage{
			{Tokens: 11, CostNanos: 2, LastUsed: last}, {}, {Tokens: 111, CostNanos: 9, LastUsed: last}, {Tokens: 5, CostNanos: 3, LastUsed: last}, {}, {LastUsed: last},
		}, got)
		_, err = s.Prune(t.Context(), generous(), midnight.Add(clientsKept))
		require.NoError(t, err)
		require.Equal(t, 2, countRows(t, s, "client_usage"), "of the day before nothing is needed")
		got, err = s.ClientUsage(t.Context(), nil)
		require.NoError(t, err)
		require.Empty(t, got)
	})
}
