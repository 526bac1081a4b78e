package store

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
	"hydrallm/shared/query"
)

// storedCalls are the calls of a request, with those that were not made.
func storedCalls(t *testing.T, s *Store, rid string) (calls []query.Call) {
	t.Helper()
	require.NoError(t, s.read.SelectContext(t.Context(), &calls, s.read.Rebind(`SELECT request_id, delivery, ordinal, principal, endpoint, model, provider,
		upstream, upstream_model, key_index, outcome, reason, status, prompt_tokens, completion_tokens, total_tokens, cached_tokens,
		cost_nanos / 1e9 AS cost, latency_ms, created_at, headers FROM attempts WHERE request_id = ? ORDER BY delivery, ordinal`), rid))
	return calls
}

// outcomes are those of the calls of a request, each with its delivery and ordinal.
func outcomes(t *testing.T, s *Store, rid string) (list []string) {
	t.Helper()
	for _, c := range storedCalls(t, s, rid) {
		list = append(list, fmt.Sprintf("%d.%d %s %s", c.Delivery, c.Ordinal, c.Upstream, c.Outcome))
	}
	return list
}

// every call is a row with all that is known of it, and with who pays.
func TestCallsKeepEveryField(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		_, err := s.RecordUsage(t.Context(), []contract.RequestRecord{usage("r1")})
		require.NoError(t, err)
		want := []query.Call{
			{
				RequestID: "r1", Delivery: 1, Ordinal: 1, Principal: "k:0123456789abcdef", Endpoint: "chat.completions", Model: "fast", Provider: "groq",
				Upstream: "groq-0", UpstreamModel: "llama-3.1-8b", Outcome: "failed", Reason: "RATE_LIMIT", Status: 429, LatencyMS: 40,
				CreatedAt: query.Time{Time: at}, Headers: query.Headers{"Retry-After": "7", "X-Request-Id": "req \"1\""},
			},
			{
				RequestID: "r1", Delivery: 1, Ordinal: 2, Principal: "k:0123456789abcdef", Endpoint: "chat.completions", Model: "fast", Provider: "groq",
				Upstream: "groq-1", UpstreamModel: "llama-3.1-8b", KeyIndex: 2, Outcome: "success", Status: 200, Prompt: 10, Completion: 3, Total: 13,
				Cached: 4, Cost: new(0.0075), LatencyMS: 200, CreatedAt: query.Time{Time: at.Add(50 * time.Millisecond)},
			},
		}
		require.Equal(t, want, storedCalls(t, s, "r1"))
		none := begun("r2", 1, 1)
		none.Attempts[0].Outcome = contract.CallNone
		_, err = s.RecordUsage(t.Context(), []contract.RequestRecord{none})
		require.NoError(t, err)
		for limit, n := range map[int]int{0: 2, -1: 1, 1: 1, 2: 2, 5000: 2} {
			newest, err := s.Calls(t.Context(), limit)
			require.NoError(t, err)
			require.Equal(t, []query.Call{want[1], want[0]}[:n], newest, "what was not made is no call")
		}
	})
}

// spent is the sum of what calls cost, by the daily sums.
func spent(t *testing.T, s *Store) (nanos int64) {
	t.Helper()
	require.NoError(t, s.read.GetContext(t.Context(), &nanos, `SELECT CAST(COALESCE(SUM(cost_nanos), 0) AS BIGINT) FROM daily_usage`))
	return nanos
}

// begun is the fact of the nth call of a delivery, before it is made.
func begun(rid string, delivery uint64, n int) contract.RequestRecord {
	u := usage(rid)
	u.Status, u.Attempts = "", nil
	for i := range n {
		u.Attempts = append(u.Attempts, contract.Attempt{
			Delivery: delivery, Ordinal: i + 1, Upstream: fmt.Sprint("u", i+1), Provider: "p", Model: "m", KeyIndex: i + 1, Outcome: contract.CallFailed, At: at,
		})
	}
	a := &u.Attempts[n-1]
	a.Outcome, a.Until = contract.CallBegun, time.Now().Add(time.Hour)
	return u
}

// ended is the fact of a delivery that is over, whose last call told its tokens, behind others that were lost.
func ended(rid string, delivery uint64, n int, lost ...uint64) contract.RequestRecord {
	u := begun(rid, delivery, n)
	u.Status = "success"
	a := &u.Attempts[n-1]
	a.Outcome, a.Until, a.Total, a.CostNanos = contract.CallSuccess, time.Time{}, 10, new(int64(5))
	u.Attempts = append(contract.LostCalls(lost), u.Attempts...)
	return u
}

// handedBack is the fact of a delivery that ended before the request did.
func handedBack(rid string, delivery uint64) contract.RequestRecord {
	u := begun(rid, delivery, 1)
	u.Attempts[0].Outcome, u.Attempts[0].Total, u.Attempts[0].CostNanos = contract.CallCancelled, 3, new(int64(1))
	return u
}

// whatever facts of a request come, in whatever order and how often, each call is there once, with the best that is known of it, and its
// cost counts once.
func TestCallsInAnyOrder(t *testing.T) {
	t.Parallel()
	noCall := begun("r", 1, 1)
	noCall.Attempts = []contract.Attempt{{Delivery: 1, Ordinal: 1, Outcome: contract.CallNone}}
	tests := map[string]struct {
		facts []contract.RequestRecord
		want  []string
		nanos int64
	}{
		"a call":                           {[]contract.RequestRecord{begun("r", 1, 1), ended("r", 1, 1)}, []string{"1.1 u1 success"}, 5},
		"two calls":                        {[]contract.RequestRecord{begun("r", 1, 1), begun("r", 1, 2), ended("r", 1, 2)}, []string{"1.1 u1 failed", "1.2 u2 success"}, 5},
		"a call that goes on":              {[]contract.RequestRecord{begun("r", 1, 1)}, []string{"1.1 u1 begun"}, 0},
		"the worker died":                  {[]contract.RequestRecord{begun("r", 1, 1), ended("r", 2, 1, 1)}, []string{"1.1 u1 lost", "2.1 u1 success"}, 5},
		"the worker died before its fact":  {[]contract.RequestRecord{ended("r", 2, 1, 1)}, []string{"1.1  lost", "2.1 u1 success"}, 5},
		"two workers died":                 {[]contract.RequestRecord{begun("r", 3, 1), ended("r", 5, 1, 1, 3)}, []string{"1.1  lost", "3.1 u1 lost", "5.1 u1 success"}, 5},
		"a worker passed for dead":         {[]contract.RequestRecord{begun("r", 1, 1), ended("r", 1, 1), ended("r", 2, 1, 1)}, []string{"1.1 u1 success", "2.1 u1 success"}, 10},
		"it was handed back":               {[]contract.RequestRecord{begun("r", 1, 1), handedBack("r", 1), ended("r", 2, 1, 1)}, []string{"1.1 u1 cancelled", "2.1 u1 success"}, 6},
		"it was handed back without calls": {[]contract.RequestRecord{noCall, ended("r", 2, 1, 1)}, []string{"1.1  none", "2.1 u1 success"}, 5},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachBackend(t, func(t *testing.T, s *Store) {
				t.Helper()
				for i, order := range permutations(len(tt.facts)) {
					rid := fmt.Sprint("r", i)
					for _, k := range append(order, order...) {
						u := tt.facts[k]
						u.RequestID = rid
						_, err := s.RecordUsage(t.Context(), []contract.RequestRecord{u})
						require.NoError(t, err)
					}
					require.Equal(t, tt.want, outcomes(t, s, rid), order)
					require.Equal(t, int64(i+1)*tt.nanos, spent(t, s), order)
				}
				together := slices.Clone(tt.facts)
				for i := range together {
					together[i].RequestID = "together"
				}
				slices.Reverse(together)
				_, err := s.RecordUsage(t.Context(), append(together, together...))
				require.NoError(t, err)
				require.Equal(t, tt.want, outcomes(t, s, "together"))
			})
		})
	}
}

// permutations gives all orders of n things.
func permutations(n int) (all [][]int) {
	if n == 0 {
		return [][]int{nil}
	}
	for _, p := range permutations(n - 1) {
		for i := range n {
			all = append(all, slices.Insert(slices.Clone(p), i, n-1))
		}
	}
	return all
}

// calls that were lost with their worker are booked with the record of the request, also the second one of a delivery.
func TestCallsOfDeadWorkersAreLost(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		for _, u := range []contract.RequestRecord{begun("r", 1, 2), begun("other", 1, 1), ended("r", 2, 1, 1)} {
			_, err := s.RecordUsage(t.Context(), []contract.RequestRecord{u})
			require.NoError(t, err)
		}
		require.Equal(t, []string{"1.1 u1 failed", "1.2 u2 lost", "2.1 u1 success"}, outcomes(t, s, "r"))
		require.Equal(t, []string{"1.1 u1 begun"}, outcomes(t, s, "other"))
		require.Equal(t, int64(1), statsOf(t, s).LostCalls)
	})
}

// what has begun and never ends is lost, once, when its time is over; an end that is told later counts all the same, once.
func TestOverdueCallsAreLost(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		record := func(u ...contract.RequestRecord) {
			_, err := s.RecordUsage(t.Context(), u)
			require.NoError(t, err)
		}
		never := begun("never", 1, 1)
		never.Attempts[0].Until = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
		past := begun("past", 1, 1)
		past.Attempts[0].Until = time.Time{}
		record(begun("r", 1, 1), begun("done", 1, 1), ended("done", 1, 1), never, past)
		lose := func(after time.Duration) int64 {
			n, err := s.LoseOverdue(t.Context(), time.Now().Add(after))
			require.NoError(t, err)
			return n
		}
		require.Zero(t, lose(0), "the end may be the next fact")
		require.Equal(t, int64(1), lose(50*time.Minute))
		require.Equal(t, []string{"1.1 u1 lost"}, outcomes(t, s, "past"))
		require.Equal(t, int64(1), lose(2*time.Hour))
		require.Equal(t, []string{"1.1 u1 lost"}, outcomes(t, s, "r"))
		require.Equal(t, int64(1), lose(25*time.Hour), "whatever a fact says")
		require.Zero(t, lose(1000*time.Hour))
		require.Equal(t, int64(3), statsOf(t, s).LostCalls)
		require.Equal(t, int64(5), spent(t, s))

		record(begun("r", 1, 1))
		require.Equal(t, []string{"1.1 u1 lost"}, outcomes(t, s, "r"), "that it began is nothing new")
		record(ended("r", 1, 1))
		record(ended("r", 1, 1))
		require.Equal(t, []string{"1.1 u1 success"}, outcomes(t, s, "r"))
		require.Equal(t, int64(10), spent(t, s))
		require.Equal(t, int64(2), statsOf(t, s).LostCalls)
		require.Zero(t, lose(1000*time.Hour))
	})
}

// Two writers that get the same facts, and one that books what is overdue, agree.
func TestWritersOfCallsAgree(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		const n = 40
		var begins, ends []contract.RequestRecord
		for i := range n {
			begins = append(begins, begun(fmt.Sprintf("r%02d", i), 1, 1))
			ends = append(ends, ended(fmt.Sprintf("r%02d", i), 1, 1))
		}
		slices.Reverse(ends)
		var wg sync.WaitGroup
		for range 3 {
			for _, batch := range [][]contract.RequestRecord{begins, ends} {
				wg.Go(func() {
					_, err := s.RecordUsage(t.Context(), batch)
					require.NoError(t, err)
				})
			}
			wg.Go(func() {
				_, err := s.LoseOverdue(t.Context(), time.Now().Add(2*time.Hour))
				require.NoError(t, err)
			})
		}
		wg.Wait()
		stats := statsOf(t, s)
		require.Equal(t, int64(5*n), spent(t, s))
		require.Equal(t, int64(n), stats.TotalRequests)
		require.Zero(t, stats.LostCalls)
		require.Equal(t, n, countRows(t, s, "attempts"))
	})
}

// A fact of a version that did not name calls, and told tokens only of requests, is booked as far as it goes.
func TestFactsOfTheVersionBefore(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		u := usage("r1")
		u.Attempts = []contract.Attempt{{Upstream: "a", Provider: "p", Outcome: "failed"}, {Upstream: "b", Provider: "p", Outcome: "success"}}
		for range 2 {
			_, err := s.RecordUsage(t.Context(), []contract.RequestRecord{u})
			require.NoError(t, err)
		}
		require.Equal(t, []string{"0.1 a failed", "0.2 b success"}, outcomes(t, s, "r1"))
		require.Equal(t, int64(13), statsOf(t, s).TotalTokens)
	})
}

// what a principal spent is a sum of days, and of calls.
func TestSpendOfAPrincipal(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		mine, other := usage("mine"), usage("other")
		other.Principal = "k:fedcba9876543210"
		_, err := s.RecordUsage(t.Context(), []contract.RequestRecord{mine, other})
		require.NoError(t, err)
		for _, table := range []string{"daily_usage", "attempts"} {
			var nanos int64
			require.NoError(t, s.read.GetContext(t.Context(), &nanos,
				s.read.Rebind("SELECT CAST(SUM(cost_nanos) AS BIGINT) FROM "+table+" WHERE principal = ?"), other.Principal))
			require.Equal(t, int64(7_500_000), nanos, table)
		}
	})
}
