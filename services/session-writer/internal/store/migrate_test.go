package store

import (
	"database/sql"
	"io/fs"
	"testing"

	"github.com/lib/pq"
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the driver

	"hydrallm/shared/query"
)

// migrateTo makes a database of an older version.
func migrateTo(t *testing.T, backend, address string, version int64) {
	t.Helper()
	dialect, db := goose.DialectSQLite3, (*sql.DB)(nil)
	var err error
	if backend == "sqlite" {
		db, err = sql.Open("sqlite", address[len(sqlitePrefix):])
		require.NoError(t, err)
	} else {
		dialect = goose.DialectPostgres
		connector, err := pq.NewConnector(address)
		require.NoError(t, err)
		db = sql.OpenDB(connector)
	}
	files, err := fs.Sub(migrations, "migrations/"+backend)
	require.NoError(t, err)
	provider, err := goose.NewProvider(dialect, db, files, goose.WithDisableGlobalRegistry(true))
	require.NoError(t, err)
	_, err = provider.UpTo(t.Context(), version)
	require.NoError(t, err)
	for _, statement := range []string{
		`INSERT INTO usage_metrics (request_id, endpoint, model, provider, upstream, upstream_model, key_index, status, prompt_tokens, completion_tokens,
			total_tokens, latency_ms, attempts, created_at) VALUES ('r1', 'chat.completions', 'm', 'p', 'b', 'real', 3, 'success', 10, 3, 13, 250,
			'[{"upstream":"a","provider":"q","outcome":"failed","reason":"http 500","status":500,"duration_ms":40},
			{"upstream":"b","provider":"p","outcome":"success","status":200,"duration_ms":200}]', '2026-05-01T12:00:00.000Z')`,
		`INSERT INTO usage_metrics (request_id, endpoint, model, provider, status, prompt_tokens, completion_tokens, total_tokens, latency_ms, created_at)
			VALUES ('r2', 'chat.completions', 'm', '', 'error: SERVICE_UNAVAILABLE', 0, 0, 0, 1, '2026-05-01T12:00:00.000Z')`,
		`INSERT INTO usage_metrics (request_id, endpoint, model, provider, status, prompt_tokens, completion_tokens, total_tokens, latency_ms, attempts,
			created_at) VALUES ('r3', 'chat.completions', 'm', '', 'cancelled', 0, 0, 0, 1, '[{"outcome":"odd"}]', '2026-05-01T12:00:00.000Z')`,
		`INSERT INTO daily_usage VALUES ('2026-05-01', 'p', 'real', 10, 3, 13, 1, 0)`,
	} {
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	require.NoError(t, db.Close())
}

// what older versions recorded becomes rows of the ledger, and their sums stay.
func TestOlderRecordsBecomeCalls(t *testing.T) {
	t.Parallel()
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			address := b.address(t)
			migrateTo(t, b.name, address, 2)
			s := openStore(t, address)
			require.Equal(t, []string{"0.1 a failed", "0.2 b success"}, outcomes(t, s, "r1"))
			require.Equal(t, []string{"0.1  failed"}, outcomes(t, s, "r3"))
			require.Equal(t, 3, countRows(t, s, "attempts"))
			last := storedCalls(t, s, "r1")[1]
			require.Equal(t, []any{"real", "p", "m", int64(3), int64(13), int64(200), int64(200)},
				[]any{last.UpstreamModel, last.Provider, last.Model, last.KeyIndex, last.Total, last.Status, last.LatencyMS})
			require.Nil(t, last.Cost)
			require.Nil(t, last.Headers)
			require.Empty(t, storedUsage(t, s, "r1").TraceID)
			stats := statsOf(t, s)
			require.Equal(t, []query.ProviderUsage{{Provider: "p", Model: "real", Prompt: 10, Completion: 3, Total: 13, Count: 1}}, stats.Providers)
			require.Nil(t, stats.TotalCost)
			_, err := s.RecordUsage(t.Context(), usages(3))
			require.NoError(t, err)
		})
	}
}
