package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"hydrallm/shared/contract"
)

var insertUsage = &insert{
	into: `INSERT INTO usage_metrics (request_id, trace_id, session_id, principal, endpoint, model, provider, upstream, upstream_model, key_index, stream,
		status, routing_reason, prompt_tokens, completion_tokens, total_tokens, latency_ms, first_token_ms, created_at) VALUES `,
	columns: 19,
	then:    ` ON CONFLICT (request_id) DO NOTHING`,
	key:     `request_id`,
}

// RecordUsage stores what facts tell of requests and of their upstream calls, and adds it to the daily sums, in one transaction. Facts
// may come twice and in any order: each request, and the end of each call, counts once. It returns how many of them were no repetition of a
// request that is stored. A fact without a request id makes it fail with ErrRejected; then nothing is stored.
func (s *Store) RecordUsage(ctx context.Context, usage []contract.RequestRecord) (stored int, err error) {
	if slices.ContainsFunc(usage, func(u contract.RequestRecord) bool { return u.RequestID == "" }) {
		return 0, fmt.Errorf("recording usage: %w: a fact has no request id", ErrRejected)
	}
	now := time.Now()
	rows, calls := usageRows(usage, now), attemptRows(usage, now)
	if len(rows)+len(calls) == 0 {
		return len(usage), nil
	}
	if err := s.prepare(ctx, insertAttempts, insertUsage); err != nil {
		return 0, fmt.Errorf("recording usage: %w", err)
	}
	fresh, err := s.recordRows(ctx, rows, calls, false)
	if errors.Is(err, errRepeated) {
		fresh, err = s.recordRows(ctx, rows, calls, true)
	}
	if err != nil {
		return 0, fmt.Errorf("recording usage: %w", rejection(err))
	}
	over := 0
	for i := range usage {
		if usage[i].Over() {
			over++
		}
	}
	return len(usage) - over + fresh, nil
}

// errRepeated says that some of what was to be stored is there already, so that the sums need to know what is not.
var errRepeated = errors.New("a fact is stored already")

// recordRows stores requests and calls and adds them to the sums, in one transaction, and says how many of the requests are new. Repetitions are rare: unless it is
// to expect some, it fails with errRepeated when there are any.
func (s *Store) recordRows(ctx context.Context, rows []usageRow, calls []attemptRow, repeated bool) (fresh int, err error) {
	err = s.inTx(ctx, func(tx *sqlx.Tx) error {
		sums := usageSums{daySums{}, clientSums{}}
		if err := s.recordAttempts(ctx, tx, calls, sums, repeated); err != nil {
			return err
		}
		inserted, err := s.insertUsageRows(ctx, tx, rows, repeated)
		if err != nil {
			return err
		}
		fresh = len(inserted)
		for i := range inserted {
			sums.addRequest(&inserted[i])
		}
		if err := loseAttempts(ctx, tx, rows); err != nil {
			return err
		}
		if err := addDaily(ctx, tx, sums.days); err != nil {
			return err
		}
		return addClients(ctx, tx, sums.clients)
	})
	return fresh, err
}

// usageSums are what a transaction adds to sums.
type usageSums struct {
	days    daySums
	clients clientSums
}

func (s usageSums) addRequest(r *usageRow) {
	s.days.addRequest(r)
	s.clients.add(r.Principal, r.at, max(r.Total, r.Prompt+r.Completion), 0)
}

// addEnded adds a call if it has ended.
func (s usageSums) addEnded(a *attemptRow) {
	if !a.Outcome.Ended() {
		return
	}
	s.days.addAttempt(a)
	if a.CostNanos != nil {
		s.clients.add(a.principal, a.at, 0, *a.CostNanos)
	}
}

// usageRow is the fact of a request that is over, in the form of the table.
type usageRow struct {
	contract.RequestRecord

	at Time
}

// usageRows gives one row per request that is over, ordered by its id: writers that store the same facts at once then wait for each other in one
// order.
func usageRows(usage []contract.RequestRecord, now time.Time) []usageRow {
	rows := make([]usageRow, 0, len(usage))
	for i := range usage {
		if usage[i].Over() {
			rows = append(rows, newUsageRow(usage[i], now))
		}
	}
	slices.SortStableFunc(rows, func(a, b usageRow) int { return strings.Compare(a.RequestID, b.RequestID) })
	return slices.CompactFunc(rows, func(a, b usageRow) bool { return a.RequestID == b.RequestID })
}

func newUsageRow(u contract.RequestRecord, now time.Time) usageRow {
	for _, name := range []*string{
		&u.RequestID, &u.TraceID, &u.SessionID, &u.Principal, &u.Model, &u.Provider, &u.Upstream, &u.UpstreamModel, &u.Status, &u.RoutingReason, (*string)(&u.Endpoint),
	} {
		*name = clip(*name, maxName)
	}
	for _, n := range []*int64{&u.Prompt, &u.Completion, &u.Total, &u.LatencyMS, &u.FirstTokenMS} {
		*n = count(*n)
	}
	return usageRow{RequestRecord: u, at: plausible(u.At, now)}
}

// insertUsageRows gives the rows that were not there before. Unless it is to expect others, one makes it fail with errRepeated.
func (s *Store) insertUsageRows(ctx context.Context, tx *sqlx.Tx, rows []usageRow, repeated bool) ([]usageRow, error) {
	args := make([]any, 0, len(rows)*insertUsage.columns)
	for i := range rows {
		r := &rows[i]
		args = append(args, r.RequestID, r.TraceID, r.SessionID, r.Principal, string(r.Endpoint), r.Model, r.Provider, r.Upstream, r.UpstreamModel, int64(r.KeyIndex), r.Stream,
			r.Status, r.RoutingReason, r.Prompt, r.Completion, r.Total, r.LatencyMS, r.FirstTokenMS, r.at.text())
	}
	if !repeated {
		n, err := s.insertAll(ctx, tx, insertUsage, args)
		if err != nil {
			return nil, fmt.Errorf("inserting requests: %w", err)
		}
		if n < len(rows) {
			return nil, errRepeated
		}
		return rows, nil
	}
	ids, err := insertTelling[string](ctx, tx, insertUsage, args)
	if err != nil {
		return nil, fmt.Errorf("inserting requests: %w", err)
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
