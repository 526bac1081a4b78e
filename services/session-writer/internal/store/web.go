package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"hydrallm/shared/contract"
)

const (
	insertVisits = `INSERT INTO scraping_metrics (request_id, delivery, ordinal, session_id, url, query, status, chars_count, response_summary, latency_ms,
		created_at) VALUES `
	visitColumns  = 11
	visitConflict = ` ON CONFLICT (request_id, delivery, ordinal) DO NOTHING`
)

// maxVisits bounds what one fact may tell; a request leads to a few pages.
const maxVisits = 32

// maxURL bounds stored addresses and queries, in bytes.
const maxURL = 2048

// RecordWeb stores what was fetched and searched for requests, in one transaction: rows for all of it, and parts of the question that it was done for, if
// that is one of a session. A record that is stored already changes nothing, nor does that of a later delivery change the parts. It returns
// how many records were new.
func (s *Store) RecordWeb(ctx context.Context, records []contract.WebRecord) (stored int, err error) {
	ordered := slices.Clone(records) // sessions are locked in one order by all
	slices.SortStableFunc(ordered, func(a, b contract.WebRecord) int { return cmp.Compare(a.SessionID, b.SessionID) })
	err = s.inTx(ctx, func(tx *sqlx.Tx) error {
		for i := range ordered {
			fresh, err := s.recordWeb(ctx, tx, &ordered[i])
			if err != nil {
				return err
			}
			if fresh {
				stored++
			}
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("recording web fetches: %w", rejection(err))
	}
	return stored, nil
}

func (s *Store) recordWeb(ctx context.Context, tx *sqlx.Tx, r *contract.WebRecord) (fresh bool, err error) {
	visits := r.Visits[:min(len(r.Visits), maxVisits)]
	if len(visits) == 0 {
		return false, nil
	}
	question, err := questionOf(ctx, tx, r)
	if err != nil {
		return false, err
	}
	var session any
	if question != "" {
		session = r.SessionID
	}
	now := time.Now()
	args := make([]any, 0, len(visits)*visitColumns)
	for i := range visits {
		v := &visits[i]
		if !v.Status.Known() {
			v.Status = contract.VisitError // of a later version
		}
		args = append(args, clip(r.RequestID, maxName), int64(min(r.Delivery, maxCount)), i+1, session, clip(v.URL, maxURL), clip(v.Query, maxURL), string(v.Status),
			count(int64(v.Chars)), clip(v.Summary, maxMessage), count(v.LatencyMS), plausible(v.At, now))
	}
	res, err := tx.ExecContext(ctx, tx.Rebind(insertVisits+placeholders(len(visits), visitColumns)+visitConflict), args...)
	if err != nil {
		return false, err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 || question == "" {
		return n > 0, err
	}
	return true, s.addWebParts(ctx, tx, question, visits, now)
}

// questionOf gives the message that a request of a session asks, "" when there is none, or not any more. The session is locked then.
func questionOf(ctx context.Context, tx *sqlx.Tx, r *contract.WebRecord) (id string, err error) {
	if r.SessionID == "" {
		return "", nil
	}
	known, err := lockSessions(ctx, tx, []contract.Turn{{Session: r.SessionID}})
	if err != nil || !known[r.SessionID] {
		return "", err
	}
	var ids []string
	err = tx.SelectContext(ctx, &ids, tx.Rebind(`SELECT id FROM messages WHERE session_id = ? AND request_id = ? AND role = 'user'
		ORDER BY turn DESC, place DESC LIMIT 1`), r.SessionID, r.RequestID)
	if err != nil || len(ids) == 0 {
		return "", err
	}
	return ids[0], nil
}

func (s *Store) addWebParts(ctx context.Context, tx *sqlx.Tx, message string, visits []contract.Visit, now time.Time) error {
	var there int
	if err := tx.GetContext(ctx, &there, tx.Rebind(`SELECT COUNT(*) FROM parts WHERE message_id = ? AND type IN (?, ?)`), message, partWebFetch, partWebSearch); err != nil {
		return err
	}
	if there > 0 {
		return nil
	}
	parts := make([]messagePart, len(visits))
	for i := range visits {
		v := &visits[i]
		v.URL, v.Query, v.Title, v.Content = clip(v.URL, maxURL), clip(v.Query, maxURL), clip(v.Title, maxName), clip(v.Content, maxContent)
		kind := partWebFetch
		if v.Kind == contract.VisitSearch {
			kind = partWebSearch
		}
		parts[i] = messagePart{message: message, kind: kind, data: string(v.AppendPartData(nil, true)), at: plausible(v.At, now).Time}
	}
	return s.insertParts(ctx, tx, parts)
}

// maxContent bounds what is kept of a page, in bytes. The text in prompts is far shorter.
const maxContent = 256 << 10
