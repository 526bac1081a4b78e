package store

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
	"hydrallm/shared/query"
)

// usageStored is a row as a test reads it back.
type usageStored struct {
	RequestID     string     `db:"request_id"`
	TraceID       string     `db:"trace_id"`
	SessionID     string     `db:"session_id"`
	Principal     string     `db:"principal"`
	Endpoint      string     `db:"endpoint"`
	Model         string     `db:"model"`
	Provider      string     `db:"provider"`
	Upstream      string     `db:"upstream"`
	UpstreamModel string     `db:"upstream_model"`
	KeyIndex      int        `db:"key_index"`
	Stream        bool       `db:"stream"`
	Status        string     `db:"status"`
	RoutingReason string     `db:"routing_reason"`
	Prompt        int64      `db:"prompt_tokens"`
	Completion    int64      `db:"completion_tokens"`
	Total         int64      `db:"total_tokens"`
	LatencyMS     int64      `db:"latency_ms"`
	FirstTokenMS  int64      `db:"first_token_ms"`
	CreatedAt     query.Time `db:"created_at"`
}

func storedUsage(t *testing.T, s *Store, rid string) usageStored {
	t.Helper()
	var row usageStored
	require.NoError(t, s.read.GetContext(t.Context(), &row, s.read.Rebind(`SELECT request_id, trace_id, session_id, principal, endpoint, model, provider, upstream,
		upstream_model, key_index, stream, status, routing_reason, prompt_tokens, completion_tokens, total_tokens, latency_ms, first_token_ms,
		created_at FROM usage_metrics WHERE request_id = ?`), rid))
	return row
}

func TestUsageKeepsEveryField(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		n, err := s.RecordUsage(t.Context(), []contract.RequestRecord{usage("r1")})
		require.NoError(t, err)
		require.Equal(t, 1, n)
		row := storedUsage(t, s, "r1")
		require.Equal(t, usageStored{
			RequestID: "r1", TraceID: "0af7651916cd43dd8448eb211c80319c", SessionID: "ses_1", Principal: "k:0123456789abcdef", Endpoint: "chat.completions", Model: "fast", Provider: "groq", Upstream: "groq-1",
			UpstreamModel: "llama-3.1-8b", KeyIndex: 2, Stream: true, Status: "success", RoutingReason: "model_hint",
			Prompt: 10, Completion: 3, Total: 13, LatencyMS: 250, FirstTokenMS: 120, CreatedAt: query.Time{Time: at},
		}, row)
	})
}

// success, failure and cancellation are counted per day, provider and model, failures also as errors; costs are those of all calls.
func TestUsageIsSummedPerDay(t *testing.T) {
	t.Parallel()
	with := func(rid string, change func(*contract.RequestRecord)) contract.RequestRecord {
		u := usage(rid)
		change(&u)
		return u
	}
	batch := []contract.RequestRecord{
		usage("a"),
		with("b", func(u *contract.RequestRecord) {
			u.Status, u.Total, u.Attempts[1] = "error: RATE_LIMIT", 0, u.Attempts[0]
			u.Attempts[1].Ordinal = 2
		}),
		with("c", func(u *contract.RequestRecord) { u.Status = "cancelled" }),
		with("d", func(u *contract.RequestRecord) {
			u.At, u.Attempts[1].At = u.At.Add(-24*time.Hour), u.At.Add(-24*time.Hour)
		}),
		with("e", func(u *contract.RequestRecord) {
			u.UpstreamModel, u.Attempts[1].Model = "llama-3.3-70b", "llama-3.3-70b"
		}),
		with("f", func(u *contract.RequestRecord) {
			u.Provider, u.Status = "", "error: TIMEOUT"
			u.Attempts[1].Provider, u.Attempts[1].CostNanos = "cerebras", nil
		}),
		with("h", func(u *contract.RequestRecord) { // another name of the model that answers "fast" too, and a failure that told tokens
			u.Model, u.Attempts[0].Prompt, u.Attempts[0].Total, u.Attempts[0].CostNanos = "auto", 5, 5, new(int64(500_000))
		}),
		with("g", func(u *contract.RequestRecord) { u.Provider, u.Status, u.Attempts = "", "error: BUSY", nil }),
	}
	type row struct {
		Day, Provider, Model string
		Requests, Errors     int64
		Total                int64
		Cost                 *int64
	}
	today, yesterday := at.Format(dayLayout), at.Add(-24*time.Hour).Format(dayLayout)
	want := []row{
		{yesterday, "groq", "llama-3.1-8b", 1, 0, 13, new(int64(7_500_000))},
		{today, "", "fast", 1, 1, 13, nil},
		{today, "cerebras", "fast", 1, 1, 13, nil}, // nobody answered: the one tried last
		{today, "groq", "llama-3.1-8b", 4, 1, 39, new(int64(23_000_000))},
		{today, "groq", "llama-3.3-70b", 1, 0, 13, new(int64(7_500_000))},
	}
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		for _, part := range [][]contract.RequestRecord{batch[:2], batch[2:]} {
			_, err := s.RecordUsage(t.Context(), part)
			require.NoError(t, err)
		}
		var got []row
		require.NoError(t, s.read.SelectContext(t.Context(), &got, `SELECT CAST(day AS TEXT) AS day, provider, model, request_count AS requests,
			error_count AS errors, total_tokens AS total, cost_nanos AS cost FROM daily_usage ORDER BY day, provider, model`))
		require.Equal(t, want, got)
		stats := statsOf(t, s)
		require.Equal(t, int64(8), stats.TotalRequests)
		require.Equal(t, int64(7*13), stats.TotalTokens)
		require.InDelta(t, 0.038, *stats.TotalCost, 1e-12)
		clients := query.ClientTotal{}
		for _, c := range stats.Clients {
			clients.Count, clients.Total, clients.Errors = clients.Count+c.Count, clients.Total+c.Total, clients.Errors+c.Errors
		}
		require.Equal(t, query.ClientTotal{Count: 8, Total: 7 * 13, Errors: 3}, clients)
		require.InDelta(t, 0.0305, *stats.Providers[0].Cost, 1e-12)
		stats.Providers[0].Cost = nil
		require.Equal(t, query.ProviderUsage{Provider: "groq", Model: "llama-3.1-8b", Prompt: 50, Completion: 15, Total: 52, Count: 5, Errors: 1}, stats.Providers[0])
	})
}

// A fact may be delivered more than once: in one batch, in two, and by two writers at once.
func TestUsageIsCountedOnce(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		batch := usages(40)
		changed := usage(batch[0].RequestID)
		changed.Total = 1000
		n, err := s.RecordUsage(t.Context(), append(batch[:20:20], changed, batch[3]))
		require.NoError(t, err)
		require.Equal(t, 20, n)

		var wg sync.WaitGroup
		stored := make([]int, 8)
		for i := range stored {
			wg.Go(func() {
				n, err := s.RecordUsage(t.Context(), batch)
				require.NoError(t, err)
				stored[i] = n
			})
		}
		wg.Wait()
		sum := 0
		for _, n := range stored {
			sum += n
		}
		require.Equal(t, 20, sum)
		require.Equal(t, 40, countRows(t, s, "usage_metrics"))
		stats := statsOf(t, s)
		require.Equal(t, int64(40), stats.TotalRequests)
		require.Equal(t, int64(40*13), stats.TotalTokens)
	})
}

func TestUsageBatchLargerThanAStatement(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		batch := usages(2*rowsPerStatement + 7)
		for i := range batch {
			batch[i].UpstreamModel, batch[i].Attempts[1].Model = batch[i].RequestID, batch[i].RequestID // as many daily sums as requests
		}
		n, err := s.RecordUsage(t.Context(), batch)
		require.NoError(t, err)
		require.Equal(t, len(batch), n)
		require.Equal(t, len(batch), countRows(t, s, "daily_usage"))
		stats := statsOf(t, s)
		require.Equal(t, int64(len(batch)), stats.TotalRequests)
		require.Len(t, stats.Providers, maxProviders)

		n, err = s.RecordUsage(t.Context(), nil)
		require.NoError(t, err)
		require.Zero(t, n)
	})
}

// One bad fact is told from a trouble that may pass, and nothing of its batch stays half stored.
func TestUsageWithoutRequestIDIsRejected(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		batch := usages(5)
		bad := append(batch[:2:2], usage(""), batch[3])
		_, err := s.RecordUsage(t.Context(), bad)
		require.ErrorIs(t, err, ErrRejected)
		require.Zero(t, countRows(t, s, "usage_metrics"))
		require.Zero(t, countRows(t, s, "attempts"))
		require.Zero(t, statsOf(t, s).TotalRequests)

		n, err := s.RecordUsage(t.Context(), batch)
		require.NoError(t, err)
		require.Equal(t, 5, n)

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = s.RecordUsage(ctx, []contract.RequestRecord{usage("late")})
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, ErrRejected)
	})
}

// Model names come from clients and numbers from upstreams; no content of a fact may stop the ledger.
func TestUsageTakesHostileContent(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		nul := usage("nul\x00id")
		nul.Model, nul.Status = "m\x00\xff\xfe", "error: \x00"
		nul.Attempts[0].Reason = "\x00\xff\U0001F600"
		nul.Attempts[1].Outcome = "\x00"
		long := usage("long")
		long.Model = strings.Repeat("한", 1000)
		long.Attempts = make([]contract.Attempt, 10_000)
		numbers := usage("numbers")
		numbers.Prompt, numbers.Completion, numbers.Total, numbers.LatencyMS = math.MaxInt64, math.MinInt64, -1, math.MaxInt64
		more := usage("numbers2")
		more.Prompt = math.MaxInt64
		for _, u := range []*contract.RequestRecord{&numbers, &more} {
			a := &u.Attempts[1]
			a.Delivery, a.Ordinal, a.KeyIndex, a.Status = math.MaxUint64, math.MaxInt, math.MaxInt, math.MaxInt
			a.Prompt, a.Completion, a.Total, a.Cached, a.CostNanos = math.MaxInt64, math.MinInt64, -1, math.MaxInt64, new(int64(math.MaxInt64))
			u.Attempts[0].Ordinal, u.Attempts[0].Outcome, u.Attempts[0].Until = math.MinInt, contract.CallBegun, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
		}
		never, ancient, future := usage("never"), usage("ancient"), usage("future")
		never.At = time.Time{}
		ancient.At = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
		future.At = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

		n, err := s.RecordUsage(t.Context(), []contract.RequestRecord{nul, long, numbers, more, never, ancient, future})
		require.NoError(t, err)
		require.Equal(t, 7, n)

		row := storedUsage(t, s, "nul\uFFFDid")
		require.Equal(t, "m\uFFFD\uFFFD", row.Model)
		calls := storedCalls(t, s, "nul\uFFFDid")
		require.Contains(t, calls[0].Reason, "\U0001F600")
		require.Equal(t, "failed", calls[1].Outcome)
		row = storedUsage(t, s, "long")
		require.Equal(t, strings.Repeat("한", maxName/3), row.Model)
		require.Len(t, storedCalls(t, s, "long"), maxAttempts)
		row = storedUsage(t, s, "numbers")
		require.Equal(t, []int64{maxCount, 0, 0, maxCount}, []int64{row.Prompt, row.Completion, row.Total, row.LatencyMS})
		for _, rid := range []string{"never", "ancient", "future"} {
			require.WithinDuration(t, time.Now(), storedUsage(t, s, rid).CreatedAt.Time, time.Minute, rid)
		}
	})
}

// Two writers with the same facts in opposite order, as after a redelivery, must not block each other in a circle.
func TestOppositeOrdersDoNotDeadlock(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		for round := range 10 {
			forward := make([]contract.RequestRecord, 50)
			for i := range forward {
				forward[i] = usage(fmt.Sprintf("r%d-%02d", round, i))
				forward[i].UpstreamModel, forward[i].Attempts[1].Model = fmt.Sprintf("m%d", i), fmt.Sprintf("m%d", i)
			}
			backward := make([]contract.RequestRecord, len(forward))
			for i := range forward {
				backward[len(forward)-1-i] = forward[i]
			}
			var wg sync.WaitGroup
			for _, batch := range [][]contract.RequestRecord{forward, backward} {
				wg.Go(func() {
					_, err := s.RecordUsage(t.Context(), batch)
					require.NoError(t, err)
				})
			}
			wg.Wait()
		}
		require.Equal(t, int64(500), statsOf(t, s).TotalRequests)
	})
}

func FuzzClip(f *testing.F) {
	for _, seed := range []string{"", "plain", "a\x00b", "\xff\xfe", "한국어", strings.Repeat("é", 200)} {
		f.Add(seed, 16)
	}
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = min(max(limit, 0), 1<<16)
		got := clip(s, limit)
		if len(got) > limit || !utf8.ValidString(got) || strings.ContainsRune(got, 0) {
			t.Fatalf("clip(%q, %d) = %q", s, limit, got)
		}
		if len(s) <= limit && utf8.ValidString(s) && !strings.ContainsRune(s, 0) && got != s {
			t.Fatalf("clip changed %q to %q", s, got)
		}
	})
}
