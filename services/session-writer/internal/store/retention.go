package store

import (
	"context"
	"fmt"
	"time"
)

// Limit bounds a table by the number of rows and by their age.
type Limit struct {
	Rows int64
	Age  time.Duration
}

// Retention says how much is kept.
type Retention struct {
	Logs  Limit
	Usage Limit // single requests; younger than the facts of the stream (7 days) they also keep a late repetition from counting twice
	Calls Limit // single upstream calls, for which the same holds
	Web   Limit // single fetches and searches, for which the same holds
	Daily Limit // sums per day, provider, model and principal; what goes here leaves the totals

	Sessions SessionLimit
}

// SessionLimit bounds the sessions by the time since their last use and by their number.
type SessionLimit struct {
	Age   time.Duration // 0 = none
	Count int           // 0 = none
}

// DefaultRetention bounds the database of a busy gateway to a few hundred megabytes.
var DefaultRetention = Retention{
	Logs:  Limit{Rows: 100_000, Age: 30 * 24 * time.Hour},
	Usage: Limit{Rows: 1_000_000, Age: 90 * 24 * time.Hour},
	Calls: Limit{Rows: 2_000_000, Age: 90 * 24 * time.Hour},
	Web:   Limit{Rows: 100_000, Age: 30 * 24 * time.Hour},
	Daily: Limit{Rows: 400_000, Age: 2 * 365 * 24 * time.Hour},
}

// Pruned counts the rows that were removed.
type Pruned struct{ Logs, Usage, Calls, Web, Daily, Sessions, Responses int64 }

// pruneStep is how many rows one transaction removes at most, so that the writers behind it wait for milliseconds.
const pruneStep = 2000

// Rows are pruned from the lowest id on, which is the order in which they came; ids only leave gaps, so the difference of two is at least
// the number of rows between them.
const (
	pruneLogs = `DELETE FROM system_logs WHERE id IN (SELECT id FROM system_logs ORDER BY id LIMIT ?)
		AND (created_at < ? OR id <= (SELECT MAX(id) FROM system_logs) - ?)`
	pruneUsage = `DELETE FROM usage_metrics WHERE id IN (SELECT id FROM usage_metrics ORDER BY id LIMIT ?)
		AND (created_at < ? OR id <= (SELECT MAX(id) FROM usage_metrics) - ?)`
	pruneCalls = `DELETE FROM attempts WHERE id IN (SELECT id FROM attempts ORDER BY id LIMIT ?)
		AND (created_at < ? OR id <= (SELECT MAX(id) FROM attempts) - ?)`
	pruneWeb = `DELETE FROM scraping_metrics WHERE id IN (SELECT id FROM scraping_metrics ORDER BY id LIMIT ?)
		AND (created_at < ? OR id <= (SELECT MAX(id) FROM scraping_metrics) - ?)`
	pruneDaily = `DELETE FROM daily_usage WHERE (day, provider, model, principal) IN (
			SELECT day, provider, model, principal FROM daily_usage ORDER BY day, request_count, provider, model, principal LIMIT ?)
		AND day < ?`
	surplusDaily = `DELETE FROM daily_usage WHERE (day, provider, model, principal) IN (
			SELECT day, provider, model, principal FROM daily_usage ORDER BY day, request_count, provider, model, principal LIMIT ?)`
)

// Prune removes what is above the limits of r at now, oldest first, in small transactions.
func (s *Store) Prune(ctx context.Context, r Retention, now time.Time) (Pruned, error) {
	var p Pruned
	var err error
	if p.Logs, err = s.pruneSteps(ctx, pruneLogs, pruneStep, Time{now.Add(-r.Logs.Age)}, r.Logs.Rows); err != nil {
		return p, fmt.Errorf("pruning logs: %w", err)
	}
	if p.Usage, err = s.pruneSteps(ctx, pruneUsage, pruneStep, Time{now.Add(-r.Usage.Age)}, r.Usage.Rows); err != nil {
		return p, fmt.Errorf("pruning usage: %w", err)
	}
	if p.Calls, err = s.pruneSteps(ctx, pruneCalls, pruneStep, Time{now.Add(-r.Calls.Age)}, r.Calls.Rows); err != nil {
		return p, fmt.Errorf("pruning upstream calls: %w", err)
	}
	if p.Web, err = s.pruneSteps(ctx, pruneWeb, pruneStep, Time{now.Add(-r.Web.Age)}, r.Web.Rows); err != nil {
		return p, fmt.Errorf("pruning web fetches: %w", err)
	}
	if p.Daily, err = s.pruneDays(ctx, r.Daily, now); err != nil {
		return p, fmt.Errorf("pruning daily sums: %w", err)
	}
	if _, err = s.pruneSteps(ctx, pruneClients, pruneStep, slotOf(now.Add(-clientsKept))); err != nil {
		return p, fmt.Errorf("pruning the usage of clients: %w", err)
	}
	if p.Responses, err = s.pruneSteps(ctx, pruneResponses, Time{now}, pruneStep); err != nil {
		return p, fmt.Errorf("pruning responses: %w", err)
	}
	before := time.Time{}
	if r.Sessions.Age > 0 {
		before = now.Add(-r.Sessions.Age)
	}
	if p.Sessions, err = s.CleanSessions(ctx, before, r.Sessions.Count); err != nil {
		return p, err
	}
	return p, nil
}

func (s *Store) pruneDays(ctx context.Context, l Limit, now time.Time) (int64, error) {
	removed, err := s.pruneSteps(ctx, pruneDaily, pruneStep, now.Add(-l.Age).UTC().Format(dayLayout))
	if err != nil {
		return removed, err
	}
	var rows int64
	if err := s.read.GetContext(ctx, &rows, `SELECT COUNT(*) FROM daily_usage`); err != nil {
		return removed, fmt.Errorf("counting: %w", err)
	}
	for surplus := rows - l.Rows; surplus > 0; surplus -= pruneStep {
		n, err := s.remove(ctx, surplusDaily, min(surplus, pruneStep))
		removed += n
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// pruneSteps repeats a statement until it removes nothing.
func (s *Store) pruneSteps(ctx context.Context, statement string, args ...any) (removed int64, err error) {
	for {
		n, err := s.remove(ctx, statement, args...)
		removed += n
		if err != nil || n == 0 {
			return removed, err
		}
	}
}

func (s *Store) remove(ctx context.Context, statement string, args ...any) (int64, error) {
	res, err := s.write.ExecContext(ctx, s.write.Rebind(statement), args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}
