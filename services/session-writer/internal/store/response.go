package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"hydrallm/shared/contract"
)

// ErrNoResponse says that there is no such response: it was not stored, or has expired.
var ErrNoResponse = errors.New("no such response")

// Response is a stored response.
type Response struct {
	ID       string `db:"id"`
	Previous string `db:"previous_id"` // "" = none
	Owner    string `db:"owner"`       // principal
	Deleted  bool   `db:"deleted"`     // its documents are gone
	Input    string `db:"input"`       // array of the items of its request
	Body     string `db:"response"`    // as its client got it
}

// extendStep is how much later than now a response of a chain has to expire before that is written: not each turn writes to all those before it.
const extendStep = 24 * time.Hour

// RecordResponses stores responses that expire when their life is over, and sees to it that those that they go on from do not expire before them. It gives how many
// are new: what is stored already, or was deleted, stays as it is.
func (s *Store) RecordResponses(ctx context.Context, list []contract.StoredResponse, life time.Duration) (stored int, err error) {
	ordered := slices.Clone(list) // rows are locked in one order by all
	slices.SortFunc(ordered, func(a, b contract.StoredResponse) int { return cmp.Compare(a.ID, b.ID) })
	err = s.inTx(ctx, func(tx *sqlx.Tx) error {
		stored = 0
		for i := range ordered {
			added, err := recordResponse(ctx, tx, &ordered[i], life)
			if err != nil {
				return err
			}
			stored += added
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("storing responses: %w", rejection(err))
	}
	return stored, nil
}

func recordResponse(ctx context.Context, tx *sqlx.Tx, r *contract.StoredResponse, life time.Duration) (int, error) {
	at := plausible(r.At, time.Now()).Time
	expires := at.Add(life)
	res, err := tx.ExecContext(ctx, tx.Rebind(`INSERT INTO responses (id, previous_id, owner, created_at, expires_at, input, response) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO NOTHING`), r.ID, r.Previous, r.Owner, Time{at}, Time{expires}, string(r.Input), string(r.Response))
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	if err != nil || n == 0 || r.Previous == "" {
		return int(n), err
	}
	_, err = tx.ExecContext(ctx, tx.Rebind(`WITH RECURSIVE chain (id, previous_id) AS (
			SELECT id, previous_id FROM responses WHERE id = ?
			UNION SELECT r.id, r.previous_id FROM responses r JOIN chain c ON r.id = c.previous_id)
		UPDATE responses SET expires_at = ? WHERE id IN (SELECT id FROM chain) AND expires_at < ?`),
		r.Previous, Time{expires}, Time{expires.Add(-extendStep)})
	return int(n), err
}

const responseColumns = `id, previous_id, owner, deleted <> 0 AS deleted, input, response`

// Response gives a response, also one that was deleted. The error is ErrNoResponse if there is none.
func (s *Store) Response(ctx context.Context, id string) (r Response, err error) {
	err = s.read.GetContext(ctx, &r, s.read.Rebind(`SELECT `+responseColumns+` FROM responses WHERE id = ? AND expires_at > ?`), id, Time{time.Now()})
	if errors.Is(err, sql.ErrNoRows) {
		return r, ErrNoResponse
	}
	if err != nil {
		return r, fmt.Errorf("reading a response: %w", err)
	}
	return r, nil
}

// ResponseChain gives a response and those that it goes on from, newest first, as far as they are stored, and at most as many as have size bytes together and one
// more.
func (s *Store) ResponseChain(ctx context.Context, id string, size int) (chain []Response, err error) {
	rows, err := s.read.QueryxContext(ctx, s.read.Rebind(`WITH RECURSIVE chain (id, previous_id, depth) AS (
			SELECT id, previous_id, 0 FROM responses WHERE id = ?
			UNION ALL SELECT r.id, r.previous_id, c.depth + 1 FROM responses r JOIN chain c ON r.id = c.previous_id WHERE c.depth < ?)
		SELECT r.id, r.previous_id, r.owner, r.deleted <> 0 AS deleted, r.input, r.response FROM chain c JOIN responses r ON r.id = c.id
		WHERE r.expires_at > ? ORDER BY c.depth`), id, maxChain, Time{time.Now()})
	if err != nil {
		return nil, fmt.Errorf("reading a chain of responses: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for size >= 0 && rows.Next() {
		var r Response
		if err := rows.StructScan(&r); err != nil {
			return nil, fmt.Errorf("reading a chain of responses: %w", err)
		}
		size -= len(r.Input) + len(r.Body)
		chain = append(chain, r)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("reading a chain of responses: %w", err)
	}
	return chain, nil
}

// maxChain bounds how far back a chain is followed.
const maxChain = 10_000

// DeleteResponse removes the documents of a response. The error is ErrNoResponse if there is none.
func (s *Store) DeleteResponse(ctx context.Context, id string) error {
	n, err := s.remove(ctx, `UPDATE responses SET deleted = 1, input = '', response = '' WHERE id = ? AND deleted = 0`, id)
	if err != nil {
		return fmt.Errorf("deleting a response: %w", err)
	}
	if n == 0 {
		return ErrNoResponse
	}
	return nil
}

// pruneResponses removes those that have expired, in small steps.
const pruneResponses = `DELETE FROM responses WHERE id IN (SELECT id FROM responses WHERE expires_at < ? ORDER BY expires_at LIMIT ?)`
