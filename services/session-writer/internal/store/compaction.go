package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
)

// Large gives those of the sessions whose next prompt has more tokens than a threshold, without a summary.
func (s *Store) Large(ctx context.Context, sessions []string, tokens int64) (large []string, err error) {
	if len(sessions) == 0 {
		return nil, nil
	}
	statement, args, err := sqlx.In(`SELECT id FROM sessions WHERE id IN (?) AND context_tokens > ?`, sessions, tokens)
	if err == nil {
		err = s.read.SelectContext(ctx, &large, s.read.Rebind(statement), args...)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the size of sessions: %w", err)
	}
	return large, nil
}

// Context gives what the next prompt of a session builds upon, oldest first.
func (s *Store) Context(ctx context.Context, session string) (messages []Message, err error) {
	err = s.read.SelectContext(ctx, &messages, s.read.Rebind(`SELECT `+messageColumns+` FROM messages WHERE session_id = ? AND state IN ('done', 'summary')
		ORDER BY turn, place`), session)
	if err != nil {
		return nil, fmt.Errorf("reading a session: %w", err)
	}
	return messages, nil
}

// Compaction is what becomes of the older messages of a session.
type Compaction struct {
	Removed []Message // the oldest, in order; a summary before them included
	Message string    // that stands for them, as Chat Completions has it
	Summary string
}

// Compact puts a summary in the place of messages, in one transaction. Messages that came meanwhile stay. It is false, and nothing changes, when
// what is to be removed is not there any more as it was read.
func (s *Store) Compact(ctx context.Context, session string, c Compaction) (done bool, err error) {
	if len(c.Removed) == 0 {
		return false, nil
	}
	err = s.inTx(ctx, func(tx *sqlx.Tx) error {
		done, err = s.compact(ctx, tx, session, c, time.Now())
		if err == nil && !done {
			return errUnchanged
		}
		return err
	})
	if errors.Is(err, errUnchanged) || errors.Is(err, ErrNoSession) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("compacting a session: %w", err)
	}
	return done, nil
}

var errUnchanged = errors.New("nothing is changed")

func (s *Store) compact(ctx context.Context, tx *sqlx.Tx, session string, c Compaction, now time.Time) (done bool, err error) {
	if _, err := s.lockSession(ctx, tx, session); err != nil {
		return false, err
	}
	before := int64(0)
	for _, m := range c.Removed {
		res, err := tx.ExecContext(ctx, tx.Rebind(`DELETE FROM messages WHERE id = ? AND session_id = ? AND state = ?`), m.ID, session, m.State)
		if err != nil {
			return false, err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return false, err
		}
		before += m.Tokens
	}
	last := c.Removed[len(c.Removed)-1]
	marker := newMessage(c.Message)
	marker.Role, marker.State, marker.Turn, marker.Place = "system", stateSummary, last.Turn, last.Place
	id, err := s.insertMessage(ctx, tx, session, "", now, marker)
	if err != nil {
		return false, err
	}
	data, err := json.Marshal(struct {
		Auto     bool   `json:"auto"`
		Overflow bool   `json:"overflow"`
		Summary  string `json:"summary"`
		Count    int    `json:"compressed_count"`
		Saving   int64  `json:"token_saving"`
	}{true, false, c.Summary, len(c.Removed), max(before-marker.Tokens, 0)})
	if err != nil {
		return false, err
	}
	if err := s.insertPart(ctx, tx, id, partCompaction, string(data), now); err != nil {
		return false, err
	}
	_, err = tx.ExecContext(ctx, tx.Rebind(`UPDATE sessions SET summary_token_count = ?,
		message_count = (SELECT COUNT(*) FROM messages WHERE session_id = sessions.id),
		context_tokens = (SELECT COALESCE(SUM(tokens), 0) FROM messages WHERE session_id = sessions.id AND state = 'done') WHERE id = ?`), marker.Tokens, session)
	return err == nil, err
}
