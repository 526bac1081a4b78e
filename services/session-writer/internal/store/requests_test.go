package store

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
	"hydrallm/shared/query"
)

func limited(n int) query.Logs { return query.Logs{Page: query.Page{Limit: n}} }

// someRequests are one of each kind, oldest first: answered after a failure, answered at once, failed, cancelled.
func someRequests() []contract.RequestRecord {
	saved, first, failed, left := usage("saved"), usage("first"), usage("failed"), usage("left")
	first.Attempts, first.Model, first.SessionID, first.Principal = first.Attempts[1:], "50%_off", "ses_2", "admin"
	failed.Status, failed.Provider, failed.UpstreamModel, failed.FirstTokenMS = "error: RATE_LIMIT", "", "", 0
	failed.Attempts, failed.TraceID = failed.Attempts[:1], ""
	left.Status, left.Attempts, left.RoutingReason = "cancelled", nil, contract.ReasonTokenCount
	return []contract.RequestRecord{saved, first, failed, left}
}

func record(t *testing.T, s *Store, facts ...contract.RequestRecord) {
	t.Helper()
	for _, f := range facts { // one by one, so that their numbers are in this order
		_, err := s.RecordUsage(t.Context(), []contract.RequestRecord{f})
		require.NoError(t, err)
	}
}

// requests are found by what is known of them, newest first, each with the way it took.
func TestRequests(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		record(t, s, someRequests()...)
		tests := map[string]struct {
			ask  query.Requests
			want []string
		}{
			"all":                        {query.Requests{}, []string{"left", "failed", "first", "saved"}},
			"by the begin of the id":     {query.Requests{ID: "f"}, []string{"failed", "first"}},
			"% is no pattern":            {query.Requests{ID: "%"}, []string{}},
			"_ is no pattern":            {query.Requests{ID: "_aved"}, []string{}},
			"! is no escape":             {query.Requests{ID: "!"}, []string{}},
			"by the trace":               {query.Requests{Trace: "0AF7651916cd43dd8448eb211c80319c"}, []string{"left", "first", "saved"}},
			"by another trace":           {query.Requests{Trace: "0af7651916cd43dd8448eb211c80319d"}, []string{}},
			"by the session":             {query.Requests{Session: "ses_2"}, []string{"first"}},
			"by the model asked for":     {query.Requests{Model: "50%_off"}, []string{"first"}},
			"by the model that answered": {query.Requests{Model: "llama-3.1-8b"}, []string{"left", "first", "saved"}},
			"by the provider":            {query.Requests{Provider: "groq"}, []string{"left", "first", "saved"}},
			"by the client":              {query.Requests{Client: "admin"}, []string{"first"}},
			"answered":                   {query.Requests{Status: query.RequestsAnswered}, []string{"first", "saved"}},
			"failed":                     {query.Requests{Status: query.RequestsFailed}, []string{"failed"}},
			"cancelled":                  {query.Requests{Status: query.RequestsCancelled}, []string{"left"}},
			"saved by failover":          {query.Requests{Status: query.RequestsSaved}, []string{"saved"}},
			"by the reason of a call":    {query.Requests{Reason: "RATE_LIMIT"}, []string{"failed", "saved"}},
			"by the reason of routing":   {query.Requests{Reason: contract.ReasonTokenCount}, []string{"left"}},
			"by several":                 {query.Requests{Provider: "groq", Status: query.RequestsSaved, Client: "admin"}, []string{}},
			"a statement":                {query.Requests{Session: `' OR 1=1 --`}, []string{}},
		}
		for name, tt := range tests {
			page, err := s.Requests(t.Context(), tt.ask)
			require.NoError(t, err, name)
			got := []string{}
			for _, r := range page.Requests {
				got = append(got, r.ID)
			}
			require.Equal(t, tt.want, got, name)
			require.False(t, page.More)
		}
		page, err := s.Requests(t.Context(), query.Requests{ID: "saved"})
		require.NoError(t, err)
		saved := page.Requests[0]
		require.Equal(t, storedCalls(t, s, "saved"), saved.Calls)
		require.True(t, saved.Stream)
		require.Equal(t, "0af7651916cd43dd8448eb211c80319c", saved.Trace)
		require.Equal(t, query.Headers{"Retry-After": "7", "X-Request-Id": `req "1"`}, saved.Calls[0].Headers)
		require.Nil(t, saved.Calls[1].Headers)
		require.Equal(t, int64(120), saved.FirstTokenMS)
		require.Equal(t, query.Time{Time: at}, saved.CreatedAt)
	})
}

// lists have an end, and go on from where they were.
func TestPagesOfRequests(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		const n = 60
		_, err := s.RecordUsage(t.Context(), usages(n))
		require.NoError(t, err)
		seen := map[string]bool{}
		page := query.RequestPage{More: true}
		for before := int64(0); page.More; before = page.Requests[len(page.Requests)-1].Number {
			page, err = s.Requests(t.Context(), query.Requests{Page: query.Page{Limit: 25, Before: before}})
			require.NoError(t, err)
			for _, r := range page.Requests {
				require.False(t, seen[r.ID])
				seen[r.ID] = true
			}
		}
		require.Len(t, seen, n)
		all, err := s.Requests(t.Context(), query.Requests{Page: query.Page{Limit: 1 << 40}})
		require.NoError(t, err)
		require.Len(t, all.Requests, n)
		newer, err := s.Requests(t.Context(), query.Requests{Page: query.Page{After: all.Requests[2].Number}})
		require.NoError(t, err)
		require.Equal(t, all.Requests[:2], newer.Requests)
		usual, err := s.Requests(t.Context(), query.Requests{})
		require.NoError(t, err)
		require.Len(t, usual.Requests, defaultRows)
		require.True(t, usual.More)
	})
}

// a page has no more than one message takes, whatever headers the calls have; what is left out is on the next one.
func TestPagesOfRequestsWithManyHeaders(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		const n = 400
		facts := usages(n)
		var many [][2]string
		for i := range 100 {
			many = append(many, [2]string{fmt.Sprintf("X-Ratelimit-%d", i), strings.Repeat("9", maxName)})
		}
		for i := range facts {
			call := facts[i].Attempts[0]
			call.Headers, facts[i].Attempts = many, nil
			for call.Ordinal = range 8 {
				call.Ordinal++
				facts[i].Attempts = append(facts[i].Attempts, call)
			}
		}
		_, err := s.RecordUsage(t.Context(), facts)
		require.NoError(t, err)
		seen, pages := 0, 0
		page := query.RequestPage{More: true}
		for before := int64(0); page.More; pages++ {
			page, err = s.Requests(t.Context(), query.Requests{Page: query.Page{Limit: MaxRequests, Before: before}})
			require.NoError(t, err)
			text, err := json.Marshal(page)
			require.NoError(t, err)
			require.Less(t, len(text), 8<<20)
			seen += len(page.Requests)
			before = page.Requests[len(page.Requests)-1].Number
			call := page.Requests[0].Calls[0]
			require.Equal(t, strings.Repeat("9", maxName), call.Headers["X-Ratelimit-0"])
			require.Len(t, call.Headers, 30, "as many as are kept of one call")
		}
		require.Equal(t, n, seen)
		require.Greater(t, pages, 1)
	})
}

// each request counts in its step, for its model, provider and client; the time before is there to compare with.
func TestTimeline(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		facts := someRequests()
		facts[0].At, facts[1].At, facts[2].At, facts[3].At = at, at.Add(59*time.Second+999*time.Millisecond), at.Add(time.Minute), at.Add(-time.Millisecond)
		later := usage("later")
		later.At = at.Add(2 * time.Minute) // not included
		record(t, s, append(facts, later)...)
		ask := query.Timeline{From: at, To: at.Add(2 * time.Minute), Step: time.Minute}
		sums, err := s.Timeline(t.Context(), ask)
		require.NoError(t, err)
		require.Len(t, sums.Points, 2)
		require.False(t, sums.Partial)
		require.Equal(t, int64(60000), sums.StepMS)
		first, second := sums.Points[0], sums.Points[1]
		require.Equal(t, [4]int64{2, 0, 0, 1}, [4]int64{first.Requests, first.Failed, first.Cancelled, first.Saved})
		require.Equal(t, [4]int64{1, 1, 0, 0}, [4]int64{second.Requests, second.Failed, second.Cancelled, second.Saved})
		require.Equal(t, [2]int64{1, 1}, [2]int64{sums.Before.Requests, sums.Before.Cancelled})
		require.Equal(t, int64(3), sums.Total.Requests)
		require.InDelta(t, 0.015, *sums.Total.Cost, 1e-9)
		require.Nil(t, second.Cost, "no price is known")
		require.InDelta(t, 120, sums.Total.MedianMS, 25)
		require.Zero(t, second.MedianMS)
		require.Equal(t, "llama-3.1-8b", sums.Models[0].Name)
		require.Equal(t, "fast", sums.Models[1].Name, "nobody answered")
		require.ElementsMatch(t, []string{"groq", ""}, []string{sums.Providers[0].Name, sums.Providers[1].Name})
		require.ElementsMatch(t, []string{"k:0123456789abcdef", "admin"}, []string{sums.Clients[0].Name, sums.Clients[1].Name})

		ask.Client = "admin"
		sums, err = s.Timeline(t.Context(), ask)
		require.NoError(t, err)
		require.Equal(t, int64(1), sums.Total.Requests)
		ask.Client, ask.Model = "", "fast"
		sums, err = s.Timeline(t.Context(), ask)
		require.NoError(t, err)
		require.Equal(t, int64(2), sums.Total.Requests)
	})
}

// whatever is asked for, the answer has a bounded number of steps.
func TestTimelineIsBounded(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		now := time.Now()
		for name, ask := range map[string]query.Timeline{
			"nothing":      {},
			"tiny steps":   {From: now.Add(-time.Hour), To: now, Step: 1},
			"no step":      {From: now.Add(-7 * 24 * time.Hour), To: now},
			"backwards":    {From: now, To: now.Add(-time.Hour), Step: time.Minute},
			"for ever":     {From: time.Unix(0, 0), To: now, Step: time.Minute},
			"a moment":     {From: now, To: now.Add(1), Step: time.Hour},
			"a long step":  {From: now.Add(-time.Hour), To: now, Step: 1 << 62},
			"a minus step": {From: now.Add(-time.Hour), To: now, Step: -5},
		} {
			sums, err := s.Timeline(t.Context(), ask)
			require.NoError(t, err, name)
			require.NotEmpty(t, sums.Points, name)
			require.LessOrEqual(t, len(sums.Points), MaxPoints+1, name)
		}
	})
}

// what is summed has an end, and it is known whether something is missing.
func TestOldestSummed(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		record(t, s, someRequests()...)
		for most, want := range map[int64]bool{10: false, 4: false, 3: true, 1: true} {
			id, others, err := s.oldestSummed(t.Context(), Time{at.Add(-time.Hour)}, most)
			require.NoError(t, err)
			require.Equal(t, want, others, most)
			page, err := s.Requests(t.Context(), query.Requests{Page: query.Page{After: id}})
			require.NoError(t, err)
			require.LessOrEqual(t, int64(len(page.Requests)), most)
		}
		_, others, err := s.oldestSummed(t.Context(), Time{at.Add(time.Hour)}, 1)
		require.NoError(t, err)
		require.False(t, others, "they are too old to count")
	})
}

// The estimate is as good as it says it is.
func TestPercentiles(t *testing.T) {
	t.Parallel()
	require.Zero(t, new(tally).percentile(0.5))
	for _, ms := range []int64{4, 100, 333, 1000, 7777, 100000} {
		eachMS := tally{}
		for i, most := range firstTokenBins {
			if ms <= most {
				eachMS.bins[i] = 10
				break
			}
		}
		require.InEpsilon(t, ms, eachMS.percentile(0.5), 0.5, ms)
	}
	spread := tally{}
	spread.bins[0], spread.bins[len(firstTokenBins)] = 95, 5
	require.LessOrEqual(t, spread.percentile(0.5), int64(5))
	require.Equal(t, firstTokenBins[len(firstTokenBins)-1], spread.percentile(0.99))
}

// events are found by level, category, request and text, which is no pattern.
func TestLogsAreFound(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		odd := event(1)
		odd.Level, odd.Category, odd.RequestID, odd.Message = "ERROR", "LLM_EXECUTION", "r2", `100% <script>alert("x")</script>`
		_, err := s.RecordLogs(t.Context(), []contract.Log{event(0), odd, event(2)})
		require.NoError(t, err)
		for want, asks := range map[int][]query.Logs{
			3: {{}, {Text: ""}, {Category: ""}},
			2: {{Level: "INFO"}, {Text: "EVENT"}, {Request: "r1"}},
			1: {{Text: "100%"}, {Text: "<SCRIPT>"}, {Category: "LLM_EXECUTION"}, {Level: "ERROR", Request: "r2"}},
			0: {{Text: "e_ent"}, {Text: "%" + "x"}, {Level: "INFO", Request: "r2"}, {Text: "!"}},
		} {
			for _, ask := range asks {
				got, err := s.Logs(t.Context(), ask)
				require.NoError(t, err)
				require.Len(t, got, want, fmt.Sprint(ask))
			}
		}
		all, err := s.Logs(t.Context(), query.Logs{})
		require.NoError(t, err)
		older, err := s.Logs(t.Context(), query.Logs{Page: query.Page{Before: all[0].ID}})
		require.NoError(t, err)
		require.Equal(t, all[1:], older)
		newer, err := s.Logs(t.Context(), query.Logs{Page: query.Page{After: all[1].ID}})
		require.NoError(t, err)
		require.Equal(t, all[:1], newer)
	})
}
