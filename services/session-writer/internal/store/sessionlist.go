package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"hydrallm/shared/openai/rawjson"
	"hydrallm/shared/query"
)

const sessionColumns = `id, project_id, COALESCE(parent_session_id, '') AS parent_session_id, COALESCE(fork_point_message_id, '') AS fork_point_message_id,
	owner, title, created_at, updated_at, message_count, last_model, last_provider, summary_token_count`

// MaxSessions bounds the entries of one answer.
const MaxSessions = 1000

// Sessions gives the sessions that were used last, newest first; limit is kept within 1..MaxSessions.
func (s *Store) Sessions(ctx context.Context, limit int) ([]query.Session, error) {
	list := []query.Session{}
	statement := s.read.Rebind(`SELECT ` + sessionColumns + ` FROM sessions ORDER BY updated_at DESC, id DESC LIMIT ?`)
	if err := s.read.SelectContext(ctx, &list, statement, min(max(limit, 1), MaxSessions)); err != nil {
		return nil, fmt.Errorf("reading sessions: %w", err)
	}
	return list, nil
}

// Session gives one; the error is ErrNoSession if there is none.
func (s *Store) Session(ctx context.Context, id string) (one query.Session, err error) {
	err = s.read.GetContext(ctx, &one, s.read.Rebind(`SELECT `+sessionColumns+` FROM sessions WHERE id = ?`), id)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return one, ErrNoSession
	case err != nil:
		return one, fmt.Errorf("reading a session: %w", err)
	}
	return one, nil
}

// NewSession makes a session that belongs to nobody yet and gives its id.
func (s *Store) NewSession(ctx context.Context) (id string, err error) {
	id = s.ids.next(prefixSession)
	err = s.inTx(ctx, func(tx *sqlx.Tx) error { return s.createSession(ctx, tx, id, "", time.Now()) })
	if err != nil {
		return "", fmt.Errorf("making a session: %w", err)
	}
	return id, nil
}

// DeleteSession removes a session with all that it holds; the error is ErrNoSession if there is none.
func (s *Store) DeleteSession(ctx context.Context, id string) error {
	n, err := s.remove(ctx, `DELETE FROM sessions WHERE id = ?`, id)
	switch {
	case err != nil:
		return fmt.Errorf("deleting a session: %w", err)
	case n == 0:
		return ErrNoSession
	}
	return nil
}

// cleanStep is how many sessions one transaction removes at most.
const cleanStep = 100

// CleanSessions removes the sessions that were not used since before, and of the others those that were not used for longest until most are left; 0 leaves
// all.
func (s *Store) CleanSessions(ctx context.Context, before time.Time, most int) (removed int64, err error) {
	removed, err = s.pruneSteps(ctx, `DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE updated_at < ? ORDER BY updated_at LIMIT ?)`, Time{before}, cleanStep)
	if err == nil && most > 0 {
		var n int64
		n, err = s.pruneSteps(ctx, `DELETE FROM sessions WHERE id IN (SELECT id FROM sessions ORDER BY updated_at DESC, id DESC LIMIT ? OFFSET ?)`, cleanStep, most)
		removed += n
	}
	if err != nil {
		return removed, fmt.Errorf("cleaning up sessions: %w", err)
	}
	return removed, nil
}

// Bounds of a page of messages. An answer to a query has to fit into one message of the bus.
const (
	pageCount   = 500
	pageBytes   = 2 << 20
	shownLength = 1 << 20 // of a message; of a longer one only the fact is shown
)

// Messages gives the messages of a session behind one of them, "" for the first, in their order. The error is ErrNoSession if there is none.
func (s *Store) Messages(ctx context.Context, session, after string) (page query.MessagePage, err error) {
	page.Messages = []query.Message{}
	if _, err := s.Session(ctx, session); err != nil {
		return page, err
	}
	type row struct {
		Message
		CreatedAt query.Time `db:"created_at"`
	}
	rows, err := s.read.QueryxContext(ctx, s.read.Rebind(`SELECT `+messageColumns+`, created_at FROM messages WHERE session_id = ? AND (turn, place) >
		(SELECT COALESCE(MAX(turn), -1), COALESCE(MAX(place), -1) FROM messages WHERE session_id = ? AND id = ?) ORDER BY turn, place LIMIT ?`),
		session, session, after, pageCount+1)
	if err != nil {
		return page, fmt.Errorf("reading messages: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for size := 0; rows.Next(); {
		var r row
		if err := rows.StructScan(&r); err != nil {
			return page, fmt.Errorf("reading a message: %w", err)
		}
		shown := 2 * len(r.Body) // content is in it twice
		if len(r.Body) > shownLength {
			shown = 0
		}
		if size += shown; len(page.Messages) > 0 && size > pageBytes || len(page.Messages) == pageCount {
			page.More = true
			break
		}
		page.Messages = append(page.Messages, shownMessage(&r.Message, r.CreatedAt))
	}
	if err := rows.Err(); err != nil {
		return page, fmt.Errorf("reading messages: %w", err)
	}
	return page, s.addParts(ctx, session, page.Messages)
}

// tooLong stands for a content that is not shown.
const tooLong = `"[too long to be shown]"`

func shownMessage(m *Message, at query.Time) query.Message {
	out := query.Message{ID: m.ID, Role: m.Role, CreatedAt: at, Parts: []query.Part{}, Content: tooLong}
	switch m.State {
	case stateOpen:
		out.State = query.MessageUnanswered
	case statePartial:
		out.State = query.MessagePartial
	}
	if len(m.Body) > shownLength {
		return out
	}
	out.Body, out.Content = query.Document(m.Body), query.Document(rawjson.Get([]byte(m.Body), "content"))
	if len(out.Content) > 0 && out.Content[0] == '"' && m.State != stateSummary {
		out.Parts = append(out.Parts, query.Part{Type: "text", Data: `{"text":` + out.Content + `}`})
	}
	return out
}

// addParts adds what is stored beside the messages.
func (s *Store) addParts(ctx context.Context, session string, messages []query.Message) error {
	if len(messages) == 0 {
		return nil
	}
	at := make(map[string]int, len(messages))
	list := make([]string, len(messages))
	for i := range messages {
		at[messages[i].ID], list[i] = i, messages[i].ID
	}
	statement, args, err := sqlx.In(`SELECT message_id, type, CAST(data AS TEXT) AS data FROM parts WHERE message_id IN (?) ORDER BY id`, list)
	if err != nil {
		return fmt.Errorf("reading parts of session %s: %w", session, err)
	}
	var rows []struct {
		Message string         `db:"message_id"`
		Type    string         `db:"type"`
		Data    query.Document `db:"data"`
	}
	if err := s.read.SelectContext(ctx, &rows, s.read.Rebind(statement), args...); err != nil {
		return fmt.Errorf("reading parts: %w", err)
	}
	for _, r := range rows {
		m := &messages[at[r.Message]]
		m.Parts = append(m.Parts, query.Part{Type: r.Type, Data: r.Data})
	}
	return nil
}
