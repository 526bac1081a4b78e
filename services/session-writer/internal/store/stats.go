package store

import (
	"context"
	"fmt"
)

// Stats is the answer of GET /v1/admin/stats. The sums cover the days that the daily sums are kept for.
type Stats struct {
	TotalTokens    int64           `db:"total_tokens" json:"total_tokens"`
	TotalRequests  int64           `db:"total_requests" json:"total_requests"`
	Providers      []ProviderUsage `db:"-" json:"providers"`
	Health         []Health        `db:"-" json:"health"`
	Scraping       Scraping        `db:"-" json:"scraping"`
	RecentScraping []Scrape        `db:"-" json:"recent_scraping"`
}

// ProviderUsage sums the requests for one model at one provider. Count includes requests that failed; the provider is empty when none was
// tried.
type ProviderUsage struct {
	Provider   string `db:"provider" json:"provider"`
	Model      string `db:"model" json:"model"`
	Prompt     int64  `db:"prompt" json:"prompt"`
	Completion int64  `db:"completion" json:"completion"`
	Total      int64  `db:"total" json:"total"`
	Count      int64  `db:"count" json:"count"`
	Errors     int64  `db:"errors" json:"errors"`
}

// Health is the last known state of a provider.
type Health struct {
	Provider   string `db:"provider" json:"provider"`
	Status     string `db:"status" json:"status"`
	LastError  string `db:"last_error" json:"last_error"`
	ActiveKeys int64  `db:"active_keys" json:"active_keys"`
	FailedKeys int64  `db:"failed_keys" json:"failed_keys"`
	UpdatedAt  Time   `db:"updated_at" json:"updated_at"`
}

// Scraping sums the web fetches; a hit is one with status "success".
type Scraping struct {
	Total  int64    `db:"total" json:"total"`
	Hits   int64    `db:"hits" json:"hits"`
	Fails  int64    `db:"fails" json:"fails"`
	Recent []Scrape `db:"-" json:"recent"`
}

// Scrape is one web fetch.
type Scrape struct {
	URL       string `db:"url" json:"url"`
	Query     string `db:"query" json:"query"`
	Status    string `db:"status" json:"status"`
	Chars     int64  `db:"chars_count" json:"chars_count"`
	Summary   string `db:"response_summary" json:"response_summary"`
	LatencyMS int64  `db:"latency_ms" json:"latency_ms"`
	CreatedAt Time   `db:"created_at" json:"created_at"`
}

// maxProviders bounds the provider and model pairs of one answer: the ones with the most tokens.
const maxProviders = 1000

const (
	totalsQuery = `SELECT CAST(COALESCE(SUM(total_tokens), 0) AS BIGINT) AS total_tokens,
		CAST(COALESCE(SUM(request_count), 0) AS BIGINT) AS total_requests FROM daily_usage`
	providersQuery = `SELECT provider, model, CAST(SUM(prompt_tokens) AS BIGINT) AS prompt, CAST(SUM(completion_tokens) AS BIGINT) AS completion,
		CAST(SUM(total_tokens) AS BIGINT) AS total, CAST(SUM(request_count) AS BIGINT) AS count, CAST(SUM(error_count) AS BIGINT) AS errors
		FROM daily_usage GROUP BY provider, model ORDER BY total DESC, count DESC, provider, model LIMIT ?`
	healthQuery   = `SELECT provider, status, last_error, active_keys, failed_keys, updated_at FROM provider_health ORDER BY provider`
	scrapingQuery = `SELECT COUNT(*) AS total, COALESCE(SUM(CASE WHEN status = 'success' THEN 1 ELSE 0 END), 0) AS hits,
		COALESCE(SUM(CASE WHEN status = 'success' THEN 0 ELSE 1 END), 0) AS fails FROM scraping_metrics`
	recentQuery = `SELECT url, query, status, chars_count, response_summary, latency_ms, created_at
		FROM scraping_metrics ORDER BY id DESC LIMIT 20`
)

// Stats sums what is stored.
func (s *Store) Stats(ctx context.Context) (*Stats, error) {
	stats := &Stats{Providers: []ProviderUsage{}, Health: []Health{}, RecentScraping: []Scrape{}}
	if err := s.read.GetContext(ctx, stats, totalsQuery); err != nil {
		return nil, fmt.Errorf("reading totals: %w", err)
	}
	if err := s.read.SelectContext(ctx, &stats.Providers, s.read.Rebind(providersQuery), maxProviders); err != nil {
		return nil, fmt.Errorf("reading the usage of providers: %w", err)
	}
	if err := s.read.SelectContext(ctx, &stats.Health, healthQuery); err != nil {
		return nil, fmt.Errorf("reading the health of providers: %w", err)
	}
	if err := s.read.GetContext(ctx, &stats.Scraping, scrapingQuery); err != nil {
		return nil, fmt.Errorf("reading the sums of web fetches: %w", err)
	}
	if err := s.read.SelectContext(ctx, &stats.RecentScraping, recentQuery); err != nil {
		return nil, fmt.Errorf("reading recent web fetches: %w", err)
	}
	stats.Scraping.Recent = stats.RecentScraping
	return stats, nil
}
