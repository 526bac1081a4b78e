package store

import (
	"context"
	"fmt"

	"hydrallm/shared/query"
)

// maxProviders bounds the provider and model pairs of one answer, and the clients: the ones with the most tokens.
const maxProviders = 1000

const (
	totalsQuery = `SELECT CAST(COALESCE(SUM(total_tokens), 0) AS BIGINT) AS total_tokens,
		CAST(COALESCE(SUM(request_count), 0) AS BIGINT) AS total_requests, SUM(cost_nanos) / 1e9 AS total_cost,
		(SELECT COUNT(*) FROM attempts WHERE outcome = 'lost') AS lost_calls FROM daily_usage`
	providersQuery = `SELECT provider, model, CAST(SUM(prompt_tokens) AS BIGINT) AS prompt, CAST(SUM(completion_tokens) AS BIGINT) AS completion,
		CAST(SUM(total_tokens) AS BIGINT) AS total, CAST(SUM(request_count) AS BIGINT) AS count, CAST(SUM(error_count) AS BIGINT) AS errors,
		SUM(cost_nanos) / 1e9 AS cost
		FROM daily_usage GROUP BY provider, model ORDER BY total DESC, count DESC, provider, model LIMIT ?`
	clientsQuery = `SELECT principal, CAST(SUM(prompt_tokens) AS BIGINT) AS prompt, CAST(SUM(completion_tokens) AS BIGINT) AS completion,
		CAST(SUM(total_tokens) AS BIGINT) AS total, CAST(SUM(request_count) AS BIGINT) AS count, CAST(SUM(error_count) AS BIGINT) AS errors,
		SUM(cost_nanos) / 1e9 AS cost
		FROM daily_usage GROUP BY principal ORDER BY total DESC, count DESC, principal LIMIT ?`
	healthQuery   = `SELECT provider, status, last_error, active_keys, failed_keys, updated_at FROM provider_health ORDER BY provider`
	scrapingQuery = `SELECT COUNT(*) AS total, COALESCE(SUM(CASE WHEN status IN ('success', 'cache_hit') THEN 1 ELSE 0 END), 0) AS hits,
		COALESCE(SUM(CASE WHEN status IN ('success', 'cache_hit') THEN 0 ELSE 1 END), 0) AS fails FROM scraping_metrics`
	recentQuery = `SELECT url, query, status, chars_count, response_summary, latency_ms, created_at
		FROM scraping_metrics ORDER BY id DESC LIMIT 20`
)

// Stats sums what is stored.
func (s *Store) Stats(ctx context.Context) (query.Stats, error) {
	stats := query.Stats{Providers: []query.ProviderUsage{}, Clients: []query.ClientTotal{}, Health: []query.Health{}, RecentScraping: []query.Scrape{}}
	if err := s.read.GetContext(ctx, &stats, totalsQuery); err != nil {
		return stats, fmt.Errorf("reading totals: %w", err)
	}
	if err := s.read.SelectContext(ctx, &stats.Providers, s.read.Rebind(providersQuery), maxProviders); err != nil {
		return stats, fmt.Errorf("reading the usage of providers: %w", err)
	}
	if err := s.read.SelectContext(ctx, &stats.Clients, s.read.Rebind(clientsQuery), maxProviders); err != nil {
		return stats, fmt.Errorf("reading the usage of clients: %w", err)
	}
	if err := s.read.SelectContext(ctx, &stats.Health, healthQuery); err != nil {
		return stats, fmt.Errorf("reading the health of providers: %w", err)
	}
	if err := s.read.GetContext(ctx, &stats.Scraping, scrapingQuery); err != nil {
		return stats, fmt.Errorf("reading the sums of web fetches: %w", err)
	}
	if err := s.read.SelectContext(ctx, &stats.RecentScraping, recentQuery); err != nil {
		return stats, fmt.Errorf("reading recent web fetches: %w", err)
	}
	stats.Scraping.Recent = stats.RecentScraping
	return stats, nil
}
