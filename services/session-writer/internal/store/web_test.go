package store

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
)

// visited is what a request led to: a search, and a page that it found.
func visited(session, rid string, delivery uint64) contract.WebRecord {
	return contract.WebRecord{RequestID: rid, SessionID: session, Delivery: delivery, Visits: []contract.Visit{
		{Kind: contract.VisitSearch, Query: "lamps", Status: contract.VisitSuccess, Results: 3, Summary: "Lamps; More lamps", LatencyMS: 30, At: at},
		{
			Kind: contract.VisitFetch, URL: "https://lamp.example/", Query: "lamps", Title: "Lamps", Status: contract.VisitCacheHit, Chars: 9000,
			Summary: "A lamp", Content: "A lamp is a thing.", LatencyMS: 2, At: at,
		},
	}}
}

func recordWeb(t *testing.T, s *Store, records ...contract.WebRecord) int {
	t.Helper()
	n, err := s.RecordWeb(t.Context(), records)
	require.NoError(t, err)
	return n
}

// webParts gives the parts of the first message of a session that tell of the web, in order.
func webParts(t *testing.T, s *Store, session string) (types, data []string) {
	t.Helper()
	for _, p := range messagesOf(t, s, session)[0].Parts {
		if strings.HasPrefix(p.Type, "web_") {
			types, data = append(types, p.Type), append(data, string(p.Data))
		}
	}
	return types, data
}

// each visit has a row, and those for a session are parts of the question; a fact that comes again changes neither.
func TestWebIsRecorded(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		ask(t, s, "a", "r1", "lamps?")
		require.Equal(t, 2, recordWeb(t, s, visited("a", "r1", 1), visited("", "r2", 1)))
		require.Zero(t, recordWeb(t, s, visited("a", "r1", 1)))
		require.Equal(t, 1, recordWeb(t, s, visited("a", "r1", 2)), "another delivery fetched again")

		stats := statsOf(t, s)
		require.Equal(t, []int64{6, 6, 0}, []int64{stats.Scraping.Total, stats.Scraping.Hits, stats.Scraping.Fails})
		require.Equal(t, "cache_hit", stats.RecentScraping[0].Status)
		require.Equal(t, int64(9000), stats.RecentScraping[0].Chars)
		require.Equal(t, "lamps", stats.RecentScraping[1].Query)
		require.Empty(t, stats.RecentScraping[1].URL)

		types, data := webParts(t, s, "a")
		require.Equal(t, []string{"web_search", "web_fetch"}, types)
		stamp := at.UTC().Format("2006-01-02T15:04:05Z")
		require.JSONEq(t, `{"query":"lamps","status":"success","results_count":3,"searched_at":"`+stamp+`"}`, data[0])
		require.JSONEq(t, `{"url":"https://lamp.example/","status":"cache_hit","title":"Lamps","content":"A lamp is a thing.","content_tokens":4,"fetched_at":"`+stamp+`"}`, data[1])
	})
}

// what was fetched comes back in no prompt, is pruned with the turn, and goes with the session.
func TestWebOfASession(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		ask(t, s, "a", "r1", "lamps?")
		recordWeb(t, s, visited("a", "r1", 1))
		apply(t, s, answered("a", "r1", "many"))
		history := ask(t, s, "a", "r2", "which?")
		require.Len(t, history, 2)
		require.NotContains(t, strings.Join(history, ""), "thing")

		o := outline(t, s)
		require.NoError(t, s.Compact(t.Context(), "a", o.Messages[1].Turn, o.Messages[1].Place, nil))
		_, data := webParts(t, s, "a")
		require.Contains(t, data[1], `"content":"[PRUNED]"`)

		require.NoError(t, s.DeleteSession(t.Context(), "a"))
		require.Zero(t, countRows(t, s, "scraping_metrics"))
		require.Zero(t, countRows(t, s, "parts"))
	})
}

// A fact about a session that is gone, of a later version, or with texts that no database takes, is stored as far as it can be.
func TestOddWebRecords(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		odd := visited("gone", "r1", 1<<63)
		odd.Visits[0].Status, odd.Visits[0].Query = "guessed", "a\x00b\xff"
		many := visited("", "r2", 1)
		for range 5 {
			many.Visits = append(many.Visits, many.Visits...)
		}
		ask(t, s, "b", "r3", "?")
		binary := visited("b", "r3", 1)
		binary.Visits[1].Content, binary.Visits[1].Title = "a\x00b\xff"+strings.Repeat("글", maxContent), "\x00"
		require.Equal(t, 3, recordWeb(t, s, odd, many, binary, contract.WebRecord{RequestID: "r4"}))
		require.Equal(t, int64(2+maxVisits+2), statsOf(t, s).Scraping.Total)
		require.Equal(t, int64(1), statsOf(t, s).Scraping.Fails)
		_, data := webParts(t, s, "b")
		require.True(t, json.Valid([]byte(data[1])))
		require.Less(t, len(data[1]), maxContent+1000)
		_, err := s.RecordWeb(t.Context(), []contract.WebRecord{{Visits: odd.Visits}})
		require.ErrorIs(t, err, ErrRejected, "it does not say of which request it tells")
	})
}
