package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"hydrallm/shared/contract"
)

// Fork says what is copied where.
type Fork struct {
	Source    string
	Point     string // id of the last message to copy; "" = all
	Principal string // who asks; the fork is theirs
	ID        string // of the fork; "" = a new one
}

// Fork copies a session up to a message, that included, and gives the id of the copy. The source stays as it is. The error is ErrNoSession when
// there is no such session for the principal, or no such message in it. A fork that is there already, with the same id, is left alone.
func (s *Store) Fork(ctx context.Context, f Fork) (id string, err error) {
	if f.ID == "" {
		f.ID = s.ids.next(prefixSession)
	}
	if err := s.inTx(ctx, func(tx *sqlx.Tx) error { return s.fork(ctx, tx, f, time.Now()) }); err != nil {
		return "", fmt.Errorf("forking a session: %w", err)
	}
	return f.ID, nil
}

func (s *Store) fork(ctx context.Context, tx *sqlx.Tx, f Fork, now time.Time) error {
	row, err := s.lockSession(ctx, tx, f.Source)
	if err == nil {
		err = mayUse(row, f.Principal)
	}
	if err != nil {
		return err
	}
	var there int
	if err := tx.GetContext(ctx, &there, tx.Rebind(`SELECT COUNT(*) FROM sessions WHERE id = ?`), f.ID); err != nil || there > 0 {
		return err
	}
	point, whole, err := forkPoint(ctx, tx, f)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, tx.Rebind(`INSERT INTO sessions (id, project_id, parent_session_id, fork_point_message_id, owner, title, created_at, updated_at,
		turns) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`), f.ID, s.project, f.Source, point.ID, forkOwner(row, f.Principal),
		clip(row.Title, maxTitle)+fmt.Sprintf(" (fork %d)", row.Forks+1), Time{now}, Time{now}, point.Turn)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, tx.Rebind(`UPDATE sessions SET forks = forks + 1 WHERE id = ?`), f.Source); err != nil {
		return err
	}
	if err := s.copyMessages(ctx, tx, f, point); err != nil {
		return err
	}
	if !whole { // a question whose answer is not copied is no part of later prompts
		if _, err := tx.ExecContext(ctx, tx.Rebind(`UPDATE messages SET state = 'open' WHERE session_id = ? AND turn = ? AND state = 'done'`), f.ID, point.Turn); err != nil {
			return err
		}
	}
	_, err = tx.ExecContext(ctx, tx.Rebind(`UPDATE sessions SET message_count = (SELECT COUNT(*) FROM messages WHERE session_id = sessions.id),
		summary_token_count = (SELECT COALESCE(SUM(tokens), 0) FROM messages WHERE session_id = sessions.id AND state = 'summary'),
		context_tokens = (SELECT COALESCE(SUM(tokens), 0) FROM messages WHERE session_id = sessions.id AND state = 'done') WHERE id = ?`), f.ID)
	return err
}

// forkOwner is who a fork belongs to: who asks for it, but the admin makes it for the owner of the source.
func forkOwner(row sessionRow, principal string) string {
	if principal == contract.PrincipalAdmin {
		return row.Owner
	}
	return principal
}

// forkPoint finds the last message to copy, and whether it ends its turn.
func forkPoint(ctx context.Context, tx *sqlx.Tx, f Fork) (point Message, whole bool, err error) {
	if f.Point == "" {
		err = tx.GetContext(ctx, &point, tx.Rebind(`SELECT id, turn, place, state FROM messages WHERE session_id = ? ORDER BY turn DESC, place DESC LIMIT 1`), f.Source)
		if errors.Is(err, sql.ErrNoRows) {
			return Message{}, true, nil // an empty session has an empty fork
		}
		return point, true, err
	}
	err = tx.GetContext(ctx, &point, tx.Rebind(`SELECT id, turn, place, state FROM messages WHERE session_id = ? AND id = ?`), f.Source, f.Point)
	if errors.Is(err, sql.ErrNoRows) {
		return point, false, ErrNoSession
	}
	return point, point.Place == answerPlace || point.State == stateSummary, err
}

// copyMessages copies the messages up to a point, with their parts and new ids.
func (s *Store) copyMessages(ctx context.Context, tx *sqlx.Tx, f Fork, point Message) error {
	var messages []string
	if err := tx.SelectContext(ctx, &messages, tx.Rebind(`SELECT id FROM messages
		WHERE session_id = ? AND (turn, place) <= (?, ?) ORDER BY turn, place`), f.Source, point.Turn, point.Place); err != nil {
		return err
	}
	for _, source := range messages {
		id := s.ids.next(prefixMessage)
		_, err := tx.ExecContext(ctx, tx.Rebind(`INSERT INTO messages (id, session_id, role, created_at, turn, place, state, tokens, surface, body, original)
			SELECT ?, ?, role, created_at, turn, place, state, tokens, surface, body, original FROM messages WHERE id = ?`), id, f.ID, source)
		if err != nil {
			return err
		}
		var parts []string
		if err := tx.SelectContext(ctx, &parts, tx.Rebind(`SELECT id FROM parts WHERE message_id = ? ORDER BY id`), source); err != nil {
			return err
		}
		for _, part := range parts {
			if _, err := tx.ExecContext(ctx, tx.Rebind(`INSERT INTO parts (id, message_id, type, data, created_at)
				SELECT ?, ?, type, data, created_at FROM parts WHERE id = ?`), s.ids.next(prefixPart), id, part); err != nil {
				return err
			}
		}
	}
	return nil
}
