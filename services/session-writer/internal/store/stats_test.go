package store

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
	"hydrallm/shared/query"
)

func TestStatsOfAnEmptyDatabase(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		text, err := json.Marshal(statsOf(t, s))
		require.NoError(t, err)
		require.Equal(t, `{"total_tokens":0,"total_requests":0,"total_cost":null,"lost_calls":0,"providers":[],"clients":[],"health":[],`+
			`"scraping":{"total":0,"hits":0,"fails":0,"recent":[]},"recent_scraping":[]}`, string(text))
	})
}

func TestStatsShape(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		_, err := s.RecordUsage(t.Context(), []contract.RequestRecord{usage("r1")})
		require.NoError(t, err)
		exec(t, s, `INSERT INTO provider_health (provider, status, last_error, active_keys, failed_keys, updated_at) VALUES (?, ?, ?, ?, ?, ?)`,
			"groq", "degraded", "RATE_LIMIT", 2, 1, Time{at})
		for i := range 25 {
			status := "success"
			if i%5 == 0 {
				status = "error"
			}
			exec(t, s, `INSERT INTO scraping_metrics (request_id, delivery, ordinal, url, query, status, chars_count, response_summary, latency_ms, created_at)
				VALUES (?, 1, 1, ?, 'q', ?, 100, 'text', 20, ?)`, fmt.Sprint("r", i), fmt.Sprintf("https://site%d.example/", i), status, Time{at})
		}
		stats := statsOf(t, s)
		require.Len(t, stats.RecentScraping, 20)
		require.Equal(t, stats.RecentScraping, stats.Scraping.Recent)
		require.Equal(t, []int64{25, 20, 5}, []int64{stats.Scraping.Total, stats.Scraping.Hits, stats.Scraping.Fails})
		stats.RecentScraping, stats.Scraping.Recent = stats.RecentScraping[:1], nil
		text, err := json.Marshal(stats)
		require.NoError(t, err)
		stamp := at.Format(query.TimeLayout)
		require.JSONEq(t, `{"total_tokens":13,"total_requests":1,"total_cost":0.0075,"lost_calls":0,
			"providers":[{"provider":"groq","model":"llama-3.1-8b","prompt":10,"completion":3,"total":13,"count":1,"errors":0,"cost":0.0075}],
			"clients":[{"principal":"k:0123456789abcdef","prompt":10,"completion":3,"total":13,"count":1,"errors":0,"cost":0.0075}],
			"health":[{"provider":"groq","status":"degraded","last_error":"RATE_LIMIT","active_keys":2,"failed_keys":1,"updated_at":"`+stamp+`"}],
			"scraping":{"total":25,"hits":20,"fails":5,"recent":null},
			"recent_scraping":[{"url":"https://site24.example/","query":"q","status":"success","chars_count":100,"response_summary":"text",
				"latency_ms":20,"created_at":"`+stamp+`"}]}`, string(text))
	})
}
