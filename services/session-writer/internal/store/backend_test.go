package store

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
	"hydrallm/shared/query"
	"hydrallm/shared/testkit/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// backends are the databases that every test of the conformance suite runs on; address names a fresh one.
var backends = []struct {
	name    string
	address func(testing.TB) string
}{
	{"sqlite", sqliteAddress},
	{"postgres", pgtest.New},
}

func sqliteAddress(tb testing.TB) string {
	tb.Helper()
	return sqlitePrefix + filepath.Join(tb.TempDir(), "hydrallm.db")
}

func openStore(tb testing.TB, address string) *Store {
	tb.Helper()
	s, err := Open(tb.Context(), address)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, s.Close()) })
	return s
}

func eachBackend(t *testing.T, test func(t *testing.T, s *Store)) {
	t.Helper()
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			test(t, openStore(t, b.address(t)))
		})
	}
}

// at is when the facts of the tests happened: lately, so that no bound of age applies, and to the millisecond.
var at = time.Now().UTC().Add(-time.Hour).Truncate(time.Millisecond)

func usage(rid string) contract.RequestRecord {
	return contract.RequestRecord{
		RequestID: rid, TraceID: "0af7651916cd43dd8448eb211c80319c", SessionID: "ses_1", Principal: "k:0123456789abcdef", Endpoint: contract.EndpointChat, Model: "fast", Provider: "groq", Upstream: "groq-1",
		UpstreamModel: "llama-3.1-8b", KeyIndex: 2, Status: "success", RoutingReason: contract.ReasonModelHint, Stream: true,
		Prompt: 10, Completion: 3, Total: 13, LatencyMS: 250, FirstTokenMS: 120, At: at,
		Attempts: []contract.Attempt{
			{
				Delivery: 1, Ordinal: 1, Upstream: "groq-0", Provider: "groq", Model: "llama-3.1-8b", Outcome: contract.CallFailed, Reason: "RATE_LIMIT",
				Status: 429, DurationMS: 40, At: at, Headers: [][2]string{{"Retry-After", "7"}, {"X-Request-Id", `req "1"`}},
			},
			{
				Delivery: 1, Ordinal: 2, Upstream: "groq-1", Provider: "groq", Model: "llama-3.1-8b", KeyIndex: 2, Outcome: contract.CallSuccess, Status: 200,
				DurationMS: 200, Prompt: 10, Completion: 3, Total: 13, Cached: 4, CostNanos: new(int64(7_500_000)), At: at.Add(50 * time.Millisecond),
			},
		},
	}
}

func usages(n int) []contract.RequestRecord {
	list := make([]contract.RequestRecord, n)
	for i := range list {
		list[i] = usage(fmt.Sprintf("rid-%06d", i))
	}
	return list
}

func statsOf(t *testing.T, s *Store) query.Stats {
	t.Helper()
	stats, err := s.Stats(t.Context())
	require.NoError(t, err)
	return stats
}

func countRows(t *testing.T, s *Store, table string) int {
	t.Helper()
	var n int
	require.NoError(t, s.read.GetContext(t.Context(), &n, "SELECT COUNT(*) FROM "+table))
	return n
}

func exec(tb testing.TB, s *Store, statement string, args ...any) {
	tb.Helper()
	_, err := s.write.ExecContext(tb.Context(), s.write.Rebind(statement), args...)
	require.NoError(tb, err)
}
