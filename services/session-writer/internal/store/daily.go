package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"
)

// dayKey is the key of a daily sum.
type dayKey struct{ day, provider, model, principal string }

func (k dayKey) compare(o dayKey) int {
	return cmp.Or(strings.Compare(k.day, o.day), strings.Compare(k.provider, o.provider), strings.Compare(k.model, o.model),
		strings.Compare(k.principal, o.principal))
}

type daySum struct {
	prompt, completion, total int64
	cost                      *int64 // nil = not known
	requests, errors          int64
}

// daySums are what a transaction adds: requests with their tokens, and the costs of calls.
type daySums map[dayKey]*daySum

func (d daySums) of(key dayKey) *daySum {
	sum := d[key]
	if sum == nil {
		sum = new(daySum)
		d[key] = sum
	}
	return sum
}

// addRequest counts a request for the model that answered, whatever name it was asked for under. One that nobody answered counts for the provider
// that was tried last, under the name that was asked for. Its tokens are those of its last call: those of a failed one are not added to them (STR-15).
func (d daySums) addRequest(r *usageRow) {
	key := dayKey{r.at.UTC().Format(dayLayout), r.Provider, r.Model, r.Principal}
	if n := len(r.Attempts); key.provider == "" && n > 0 {
		key.provider = clip(r.Attempts[n-1].Provider, maxName)
	} else if key.provider != "" && r.UpstreamModel != "" {
		key.model = r.UpstreamModel
	}
	sum := d.of(key)
	sum.prompt += r.Prompt
	sum.completion += r.Completion
	sum.total += r.Total
	sum.requests++
	if strings.HasPrefix(r.Status, "error") {
		sum.errors++
	}
}

// addAttempt adds what an upstream call cost, whatever became of it.
func (d daySums) addAttempt(a *attemptRow) {
	if a.CostNanos == nil {
		return
	}
	sum := d.of(dayKey{a.at.UTC().Format(dayLayout), a.Provider, a.Model, a.principal})
	if sum.cost == nil {
		sum.cost = new(int64)
	}
	*sum.cost += *a.CostNanos
}

const (
	insertDaily = `INSERT INTO daily_usage (day, provider, model, principal, prompt_tokens, completion_tokens, total_tokens, cost_nanos, request_count,
		error_count) VALUES `
	dailyColumns = 10
	dailyAdd     = ` ON CONFLICT (day, provider, model, principal) DO UPDATE SET
		prompt_tokens = daily_usage.prompt_tokens + excluded.prompt_tokens,
		completion_tokens = daily_usage.completion_tokens + excluded.completion_tokens,
		total_tokens = daily_usage.total_tokens + excluded.total_tokens,
		cost_nanos = COALESCE(daily_usage.cost_nanos + excluded.cost_nanos, daily_usage.cost_nanos, excluded.cost_nanos),
		request_count = daily_usage.request_count + excluded.request_count,
		error_count = daily_usage.error_count + excluded.error_count`
)

// addDaily adds to the sums of days, in the order of the keys, so that concurrent writers can't block each other in a circle.
func addDaily(ctx context.Context, tx *sqlx.Tx, sums daySums) error {
	keys := make([]dayKey, 0, len(sums))
	for key := range sums {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, dayKey.compare)
	for chunk := range slices.Chunk(keys, rowsPerStatement) {
		args := make([]any, 0, len(chunk)*dailyColumns)
		for _, k := range chunk {
			s := sums[k]
			args = append(args, k.day, k.provider, k.model, k.principal, s.prompt, s.completion, s.total, s.cost, s.requests, s.errors)
		}
		statement := tx.Rebind(insertDaily + placeholders(len(chunk), dailyColumns) + dailyAdd)
		if _, err := tx.ExecContext(ctx, statement, args...); err != nil {
			return fmt.Errorf("adding to the daily sums: %w", err)
		}
	}
	return nil
}
