package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"hydrallm/shared/contract"
	"hydrallm/shared/query"
)

var insertAttempts = &insert{
	into: `INSERT INTO attempts (request_id, delivery, ordinal, principal, endpoint, model, provider, upstream, upstream_model, key_index,
		outcome, reason, status, prompt_tokens, completion_tokens, total_tokens, cached_tokens, cost_nanos, latency_ms, lost_after, headers,
		created_at) VALUES `,
	columns: 22,
	// It does what attemptRow.merge does.
	then: ` ON CONFLICT (request_id, delivery, ordinal) DO UPDATE SET
		provider = COALESCE(NULLIF(excluded.provider, ''), attempts.provider),
		upstream = COALESCE(NULLIF(excluded.upstream, ''), attempts.upstream),
		upstream_model = COALESCE(NULLIF(excluded.upstream_model, ''), attempts.upstream_model),
		key_index = CASE WHEN excluded.upstream = '' THEN attempts.key_index ELSE excluded.key_index END,
		outcome = CASE WHEN excluded.outcome = 'begun' THEN attempts.outcome ELSE excluded.outcome END,
		reason = CASE WHEN excluded.outcome = 'begun' THEN attempts.reason ELSE excluded.reason END, status = excluded.status, prompt_tokens = excluded.prompt_tokens,
		completion_tokens = excluded.completion_tokens, total_tokens = excluded.total_tokens, cached_tokens = excluded.cached_tokens,
		cost_nanos = excluded.cost_nanos, latency_ms = excluded.latency_ms, headers = excluded.headers, lost_after = NULL
		WHERE attempts.outcome = 'begun' AND excluded.outcome <> 'begun'
			OR attempts.outcome = 'lost' AND (excluded.outcome NOT IN ('begun', 'lost') OR attempts.upstream = '' AND excluded.upstream <> '')`,
	key: `request_id, delivery, ordinal`,
}

const (
	maxAttempts = 64                // calls that are kept of one fact
	minPending  = 30 * time.Second  // until a call without an end is lost, whatever its fact says: the end may be next in the stream
	maxPending  = 24 * time.Hour    // the same
	maxCost     = int64(1) << 42    // billionths that one call may add to a sum
	maxIndex    = int64(1) << 31    // of keys, ordinals, statuses
	unknownEnd  = "no end was told" // reason of a call that is lost by its time
)

// attemptID names a call.
type attemptID struct {
	RequestID string `db:"request_id"`
	Delivery  int64  `db:"delivery"`
	Ordinal   int64  `db:"ordinal"`
}

func (a attemptID) compare(b attemptID) int {
	return cmp.Or(strings.Compare(a.RequestID, b.RequestID), cmp.Compare(a.Delivery, b.Delivery), cmp.Compare(a.Ordinal, b.Ordinal))
}

// attemptRow is an upstream call in the form of the table.
type attemptRow struct {
	contract.Attempt

	id                         attemptID
	principal, endpoint, asked string
	headers                    string // as JSON
	at                         Time
	lostAfter                  *Time // of one that has begun
}

// attemptRows gives the calls of which facts tell, ordered by their ids, each with the best that they say of it.
func attemptRows(usage []contract.RequestRecord, now time.Time) []attemptRow {
	n := 0
	for i := range usage {
		n += min(len(usage[i].Attempts), maxAttempts)
	}
	rows, known := make([]attemptRow, 0, n), make(map[attemptID]int, n)
	for i := range usage {
		u := &usage[i]
		for k := range u.Attempts[:min(len(u.Attempts), maxAttempts)] {
			row := newAttemptRow(u, k, now)
			if at, seen := known[row.id]; seen {
				rows[at].merge(row)
				continue
			}
			known[row.id] = len(rows)
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b attemptRow) int { return a.id.compare(b.id) })
	return rows
}

// merge takes in what another fact says of the same call: what settles it, and, of one that is lost, where it went, which whoever says that it is lost
// does not know.
func (r *attemptRow) merge(o attemptRow) {
	lost := *r
	switch settles := o.Outcome.Settles(r.Outcome); {
	case settles && o.Upstream == "":
		r.Outcome, r.Reason, r.lostAfter = o.Outcome, o.Reason, nil
	case settles:
		*r = o
	case r.Outcome == contract.CallLost && r.Upstream == "" && o.Upstream != "":
		*r = o
		r.Outcome, r.Reason, r.lostAfter = lost.Outcome, lost.Reason, nil
	}
}

func newAttemptRow(u *contract.RequestRecord, i int, now time.Time) attemptRow {
	a := u.Attempts[i]
	if a.Ordinal <= 0 { // of a version that told tokens only of the request
		a.Ordinal = i + 1
		if i == len(u.Attempts)-1 {
			a.Model, a.KeyIndex, a.Prompt, a.Completion, a.Total = u.UpstreamModel, u.KeyIndex, u.Prompt, u.Completion, u.Total
		}
	}
	if !a.Outcome.Known() {
		a.Outcome = contract.CallFailed
	}
	for _, name := range []*string{&a.Upstream, &a.Provider, &a.Model, &a.Reason} {
		*name = clip(*name, maxName)
	}
	for _, n := range []*int64{&a.Prompt, &a.Completion, &a.Total, &a.Cached, &a.DurationMS} {
		*n = count(*n)
	}
	if a.CostNanos != nil {
		a.CostNanos = new(min(max(*a.CostNanos, 0), maxCost))
	}
	at := a.At
	if at.IsZero() {
		at = u.At
	}
	row := attemptRow{
		Attempt:   a,
		id:        attemptID{clip(u.RequestID, maxName), int64(min(a.Delivery, uint64(maxCount))), min(int64(a.Ordinal), maxIndex)},
		principal: clip(u.Principal, maxName), endpoint: clip(string(u.Endpoint), maxName), asked: clip(u.Model, maxName), headers: headersText(a.Headers), at: plausible(at, now),
	}
	if a.Outcome == contract.CallBegun {
		row.lostAfter = &Time{now.Add(min(max(a.Until.Sub(now), minPending), maxPending))}
	}
	return row
}

// maxHeaders bounds what is kept of the headers of a call, in bytes of JSON.
const maxHeaders = 8 << 10

// headersText gives headers as they are stored, as many of the first ones as may be; "" for none.
func headersText(headers [][2]string) string {
	kept, n := make([][2]string, 0, len(headers)), 0
	for _, header := range headers {
		header = [2]string{clip(header[0], maxName), clip(header[1], maxName)}
		if n += len(header[0]) + len(header[1]); n > maxHeaders {
			break
		}
		kept = append(kept, header)
	}
	if len(kept) == 0 {
		return ""
	}
	return string(contract.AppendHeaders(nil, kept))
}

// recordAttempts stores calls, and adds to the sums what is new of those that have ended. Unless it is to expect repetitions, one makes it fail with
// errRepeated.
func (s *Store) recordAttempts(ctx context.Context, tx *sqlx.Tx, rows []attemptRow, sums usageSums, repeated bool) error {
	args := make([]any, 0, len(rows)*insertAttempts.columns)
	for i := range rows {
		r := &rows[i]
		args = append(args, r.id.RequestID, r.id.Delivery, r.id.Ordinal, r.principal, r.endpoint, r.asked, r.Provider, r.Upstream, r.Model,
			min(int64(r.KeyIndex), maxIndex), string(r.Outcome), r.Reason, min(int64(r.Status), maxIndex), r.Prompt, r.Completion, r.Total, r.Cached,
			optional(r.CostNanos), r.DurationMS, optional(r.lostAfter), r.headers, r.at.text())
	}
	if !repeated {
		n, err := s.insertAll(ctx, tx, insertAttempts, args)
		if err != nil {
			return fmt.Errorf("storing upstream calls: %w", err)
		}
		if n < len(rows) {
			return errRepeated
		}
		for i := range rows {
			sums.addEnded(&rows[i])
		}
		return nil
	}
	changed, err := insertTelling[attemptID](ctx, tx, insertAttempts, args)
	if err != nil {
		return fmt.Errorf("storing upstream calls: %w", err)
	}
	for _, id := range changed {
		at, ok := slices.BinarySearchFunc(rows, id, func(r attemptRow, id attemptID) int { return r.id.compare(id) })
		if ok {
			sums.addEnded(&rows[at])
		}
	}
	return nil
}

// loseAttempts books what has begun at earlier deliveries of requests that are over: their workers are gone.
func loseAttempts(ctx context.Context, tx *sqlx.Tx, over []usageRow) error {
	var ids []any
	for i := range over {
		if slices.ContainsFunc(over[i].Attempts, func(a contract.Attempt) bool { return a.Outcome == contract.CallLost }) {
			ids = append(ids, over[i].RequestID)
		}
	}
	for chunk := range slices.Chunk(ids, rowsPerStatement) {
		args := append([]any{contract.ReasonWorkerDied}, chunk...)
		lose := `UPDATE attempts SET outcome = 'lost', reason = ?, lost_after = NULL WHERE outcome = 'begun' AND request_id IN ` + placeholders(1, len(chunk))
		if _, err := tx.ExecContext(ctx, tx.Rebind(lose), args...); err != nil {
			return fmt.Errorf("booking lost calls: %w", err)
		}
	}
	return nil
}

// loseStep is how many calls one transaction books as lost at most.
const loseStep = 2000

// LoseOverdue books every call as lost that has begun and of which nobody told an end in time, and says how many. An end that is told later
// still counts.
func (s *Store) LoseOverdue(ctx context.Context, now time.Time) (int64, error) {
	n, err := s.pruneSteps(ctx, `UPDATE attempts SET outcome = 'lost', reason = ?, lost_after = NULL WHERE outcome = 'begun'
		AND id IN (SELECT id FROM attempts WHERE outcome = 'begun' AND lost_after < ? ORDER BY lost_after LIMIT ?)`, unknownEnd, Time{now}, loseStep)
	if err != nil {
		return n, fmt.Errorf("booking lost calls: %w", err)
	}
	return n, nil
}

// MaxCalls bounds the calls of one answer.
const MaxCalls = 1000

// Calls gives the newest upstream calls, newest first; limit is kept within 1..MaxCalls, 0 is 50.
func (s *Store) Calls(ctx context.Context, limit int) ([]query.Call, error) {
	calls := []query.Call{}
	const newest = `SELECT ` + callColumns + ` FROM attempts WHERE outcome <> 'none' ORDER BY id DESC LIMIT ?`
	if err := s.read.SelectContext(ctx, &calls, s.read.Rebind(newest), bounded(limit, MaxCalls)); err != nil {
		return nil, fmt.Errorf("reading upstream calls: %w", err)
	}
	return calls, nil
}
