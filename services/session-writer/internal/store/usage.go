package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"hydrallm/shared/contract"
)

const (
	insertUsage = `INSERT INTO usage_metrics (request_id, session_id, endpoint, model, provider, upstream, upstream_model, key_index, stream,
		status, routing_reason, prompt_tokens, completion_tokens, total_tokens, latency_ms, first_token_ms, attempts, created_at) VALUES `
	usageColumns  = 18
	usageConflict = ` ON CONFLICT (request_id) DO NOTHING RETURNING request_id`
)

// rowsPerStatement keeps the parameters of a statement below the limits of both databases (32766 and 65535).
const rowsPerStatement = 500

// maxAttempts bounds the attempts kept of one request.
const maxAttempts = 64

// RecordUsage stores finished requests and adds them to the daily sums, in one transaction. A request id that is stored already is
// ignored, so each request counts once however often its fact comes. It returns how many requests were new. A fact without a request id
// makes it fail with ErrRejected; then nothing is stored.
func (s *Store) RecordUsage(ctx context.Context, usage []contract.RequestRecord) (stored int, err error) {
	if len(usage) == 0 {
		return 0, nil
	}
	rows := usageRows(usage, time.Now())
	err = s.inTx(ctx, func(tx *sqlx.Tx) error {
		var fresh []usageRow
		for chunk := range slices.Chunk(rows, rowsPerStatement) {
			inserted, err := insertUsageRows(ctx, tx, chunk)
			if err != nil {
				return err
			}
			fresh = append(fresh, inserted...)
		}
		stored = len(fresh)
		return addDaily(ctx, tx, fresh)
	})
	if err != nil {
		return 0, fmt.Errorf("recording usage: %w", rejection(err))
	}
	return stored, nil
}

// usageRow is a fact in the form of the table.
type usageRow struct {
	contract.RequestRecord
	attempts string // JSON
	at       Time
}

// usageRows gives one row per request id, ordered by it: writers that store the same facts at once then wait for each other in one order.
func usageRows(usage []contract.RequestRecord, now time.Time) []usageRow {
	rows := make([]usageRow, 0, len(usage))
	for i := range usage {
		rows = append(rows, newUsageRow(usage[i], now))
	}
	slices.SortStableFunc(rows, func(a, b usageRow) int { return strings.Compare(a.RequestID, b.RequestID) })
	return slices.CompactFunc(rows, func(a, b usageRow) bool { return a.RequestID == b.RequestID })
}

func newUsageRow(u contract.RequestRecord, now time.Time) usageRow {
	for _, name := range []*string{
		&u.RequestID, &u.SessionID, &u.Model, &u.Provider, &u.Upstream, &u.UpstreamModel, &u.Status, &u.RoutingReason, (*string)(&u.Endpoint),
	} {
		*name = clip(*name, maxName)
	}
	for _, n := range []*int64{&u.Prompt, &u.Completion, &u.Total, &u.LatencyMS, &u.FirstTokenMS} {
		*n = count(*n)
	}
	return usageRow{RequestRecord: u, attempts: attemptsJSON(u.Attempts), at: plausible(u.At, now)}
}

func attemptsJSON(attempts []contract.Attempt) string {
	if len(attempts) == 0 {
		return "[]"
	}
	kept := slices.Clone(attempts[:min(len(attempts), maxAttempts)])
	for i := range kept {
		a := &kept[i]
		for _, name := range []*string{&a.Upstream, &a.Provider, &a.Outcome, &a.Reason} {
			*name = clip(*name, maxName)
		}
	}
	text, err := json.Marshal(kept)
	if err != nil { // strings and numbers always marshal
		panic(fmt.Sprintf("encoding attempts: %v", err))
	}
	return string(text)
}

// insertUsageRows gives the rows that were not there before.
func insertUsageRows(ctx context.Context, tx *sqlx.Tx, rows []usageRow) ([]usageRow, error) {
	args := make([]any, 0, len(rows)*usageColumns)
	for i := range rows {
		r := &rows[i]
		args = append(args, r.RequestID, r.SessionID, string(r.Endpoint), r.Model, r.Provider, r.Upstream, r.UpstreamModel, r.KeyIndex, r.Stream,
			r.Status, r.RoutingReason, r.Prompt, r.Completion, r.Total, r.LatencyMS, r.FirstTokenMS, r.attempts, r.at)
	}
	var ids []string
	statement := tx.Rebind(insertUsage + placeholders(len(rows), usageColumns) + usageConflict)
	if err := tx.SelectContext(ctx, &ids, statement, args...); err != nil {
		return nil, fmt.Errorf("inserting requests: %w", err)
	}
	if len(ids) == len(rows) {
		return rows, nil
	}
	slices.Sort(ids)
	fresh := make([]usageRow, 0, len(ids))
	for _, r := range rows {
		if _, ok := slices.BinarySearch(ids, r.RequestID); ok {
			fresh = append(fresh, r)
		}
	}
	return fresh, nil
}

// placeholders gives "(?,?),(?,?)" for two rows of two columns.
func placeholders(rows, columns int) string {
	row := "(" + strings.Repeat("?,", columns-1) + "?),"
	return strings.TrimSuffix(strings.Repeat(row, rows), ",")
}

// dayKey is the key of a daily sum.
type dayKey struct{ day, provider, model string }

func (k dayKey) compare(o dayKey) int {
	return cmp.Or(strings.Compare(k.day, o.day), strings.Compare(k.provider, o.provider), strings.Compare(k.model, o.model))
}

type daySum struct{ prompt, completion, total, requests, errors int64 }

const (
	insertDaily  = `INSERT INTO daily_usage (day, provider, model, prompt_tokens, completion_tokens, total_tokens, request_count, error_count) VALUES `
	dailyColumns = 8
	dailyAdd     = ` ON CONFLICT (day, provider, model) DO UPDATE SET
		prompt_tokens = daily_usage.prompt_tokens + excluded.prompt_tokens,
		completion_tokens = daily_usage.completion_tokens + excluded.completion_tokens,
		total_tokens = daily_usage.total_tokens + excluded.total_tokens,
		request_count = daily_usage.request_count + excluded.request_count,
		error_count = daily_usage.error_count + excluded.error_count`
)

// addDaily adds requests to the sums of their days, in the order of the keys, so that concurrent writers can't block each other in a circle.
func addDaily(ctx context.Context, tx *sqlx.Tx, rows []usageRow) error {
	sums := map[dayKey]*daySum{}
	for i := range rows {
		key := dayKeyOf(&rows[i])
		sum := sums[key]
		if sum == nil {
			sum = new(daySum)
			sums[key] = sum
		}
		sum.add(&rows[i])
	}
	keys := make([]dayKey, 0, len(sums))
	for key := range sums {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, dayKey.compare)
	for chunk := range slices.Chunk(keys, rowsPerStatement) {
		args := make([]any, 0, len(chunk)*dailyColumns)
		for _, k := range chunk {
			s := sums[k]
			args = append(args, k.day, k.provider, k.model, s.prompt, s.completion, s.total, s.requests, s.errors)
		}
		statement := tx.Rebind(insertDaily + placeholders(len(chunk), dailyColumns) + dailyAdd)
		if _, err := tx.ExecContext(ctx, statement, args...); err != nil {
			return fmt.Errorf("adding to the daily sums: %w", err)
		}
	}
	return nil
}

// dayKeyOf counts a request for the model that answered, whatever name it was asked for under. One that nobody answered counts for the provider that
// was tried last, under the name that was asked for.
func dayKeyOf(r *usageRow) dayKey {
	key := dayKey{day: r.at.UTC().Format(dayLayout), provider: r.Provider, model: r.Model}
	if n := len(r.Attempts); key.provider == "" && n > 0 {
		key.provider = clip(r.Attempts[n-1].Provider, maxName)
	} else if key.provider != "" && r.UpstreamModel != "" {
		key.model = r.UpstreamModel
	}
	return key
}

func (s *daySum) add(r *usageRow) {
	s.prompt += r.Prompt
	s.completion += r.Completion
	s.total += r.Total
	s.requests++
	if strings.HasPrefix(r.Status, "error") {
		s.errors++
	}
}
