package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"hydrallm/shared/contract"
	"hydrallm/shared/openai/rawjson"
)

// ErrNoSession says that there is no such session, or none that the asker may see, or no such message in it.
var ErrNoSession = errors.New("no such session")

// States of a message.
const (
	stateDone    = "done"    // of a turn with a whole answer
	stateOpen    = "open"    // a question without a whole answer: it is no part of later prompts
	statePartial = "partial" // an answer that broke off: neither
	stateSummary = "summary" // stands for the messages before it
)

// summaryTurn is the turn of a summary, which is before all others: those of requests begin at 1.
const summaryTurn = 0

// answerPlace is the place of the answer in its turn, behind all that was asked.
const answerPlace = 1 << 20

const defaultProject = "default"

// Message is a stored message of a session.
type Message struct {
	ID       string `db:"id"`
	Role     string `db:"role"`
	Turn     int64  `db:"turn"`
	Place    int64  `db:"place"`
	State    string `db:"state"`
	Tokens   int64  `db:"tokens"`   // estimated
	Surface  string `db:"surface"`  // that it came over
	Body     string `db:"body"`     // as Chat Completions has it
	Original string `db:"original"` // as that surface has it, "" if that is the same
}

// Message gives the message itself.
func (m *Message) Message() contract.Message { return contract.ReadMessage(m.Body, m.Original) }

// Summary says whether the message stands for older ones.
func (m *Message) Summary() bool { return m.State == stateSummary }

// Ask is the beginning of a turn.
type Ask struct {
	Session   string
	Request   string // id
	Principal string
	Surface   contract.Surface
	At        time.Time
	Pending   []contract.Turn // facts of the session that may not be stored yet, in order
	Applied   uint64          // place in the stream up to which the session's facts are stored with them
	Again     bool            // the request may have begun its turn before
}

// BeginTurn stores pending facts, reads the history of a session, oldest first, and saves the messages that take chooses in view of it, all in one
// transaction, so that history never holds the turn itself. A session that does not exist is made. When the same request begins its
// turn again, nothing more is saved, and take gets the history before that turn. The error is ErrNoSession for another principal's session.
func (s *Store) BeginTurn(ctx context.Context, a Ask, take func(history []Message) []Message) error {
	err := s.inTx(ctx, func(tx *sqlx.Tx) error {
		if err := s.applyTurns(ctx, tx, a.Pending); err != nil {
			return err
		}
		row, err := s.claimSession(ctx, tx, a.Session, a.Principal, a.At)
		if err != nil {
			return err
		}
		history, own, err := historyBefore(ctx, tx, a.Session, a.Request)
		if err != nil {
			return err
		}
		fresh := take(history)
		if own > 0 {
			return nil
		}
		if a.Again && len(history) > 0 && history[0].Summary() { // the turn may have been answered and summarised meanwhile
			if summary, err := compactionPart(ctx, tx, history[0].ID); err != nil || slices.Contains(summary.Requests, a.Request) {
				return err
			}
		}
		if row.Applied = max(row.Applied, int64(a.Applied)); row.Title == "" {
			row.Title = titleOf(fresh)
		}
		return s.saveQuestion(ctx, tx, row, question{request: a.Request, surface: a.Surface, at: a.At, turn: row.Turns + 1, messages: fresh})
	})
	if err != nil {
		return fmt.Errorf("beginning a turn: %w", rejection(err))
	}
	return nil
}

// sessionRow is what turns need of a session.
type sessionRow struct {
	ID      string `db:"id"`
	Owner   string `db:"owner"`
	Title   string `db:"title"`
	Turns   int64  `db:"turns"`
	Applied int64  `db:"applied"`
	Forks   int64  `db:"forks"`
}

// lockSession reads a session and keeps others from writing to it until the transaction ends. The error is ErrNoSession if there is none.
func (s *Store) lockSession(ctx context.Context, tx *sqlx.Tx, id string) (row sessionRow, err error) {
	statement := `SELECT id, owner, title, turns, applied, forks FROM sessions WHERE id = ?`
	if tx.DriverName() == postgresDriver { // the whole of a SQLite database is locked
		statement += ` FOR UPDATE`
	}
	err = tx.GetContext(ctx, &row, tx.Rebind(statement), id)
	if errors.Is(err, sql.ErrNoRows) {
		return row, ErrNoSession
	}
	return row, err
}

// lockSessions is lockSession for those of facts, and says which of them there are.
func lockSessions(ctx context.Context, tx *sqlx.Tx, turns []contract.Turn) (known map[string]bool, err error) {
	asked := make([]string, len(turns))
	for i := range turns {
		asked[i] = turns[i].Session
	}
	slices.Sort(asked)
	statement, args, err := sqlx.In(`SELECT id FROM sessions WHERE id IN (?) ORDER BY id`, slices.Compact(asked)) // they are locked in one order by all
	if err != nil {
		return nil, err
	}
	if tx.DriverName() == postgresDriver {
		statement += ` FOR UPDATE`
	}
	var ids []string
	if err := tx.SelectContext(ctx, &ids, tx.Rebind(statement), args...); err != nil {
		return nil, err
	}
	known = make(map[string]bool, len(ids))
	for _, id := range ids {
		known[id] = true
	}
	return known, nil
}

// claimSession locks a session for a principal, makes it if there is none, and gives it to the first who uses it. The admin sees all.
func (s *Store) claimSession(ctx context.Context, tx *sqlx.Tx, id, principal string, at time.Time) (sessionRow, error) {
	row, err := s.lockSession(ctx, tx, id)
	if errors.Is(err, ErrNoSession) {
		if err := s.createSession(ctx, tx, id, principal, at); err != nil {
			return row, err
		}
		row, err = s.lockSession(ctx, tx, id) // another process may have made it
	}
	switch {
	case err != nil:
		return row, err
	case row.Owner == "":
		row.Owner = principal
		_, err = tx.ExecContext(ctx, tx.Rebind(`UPDATE sessions SET owner = ? WHERE id = ?`), principal, id)
		return row, err
	}
	return row, mayUse(row, principal)
}

func mayUse(row sessionRow, principal string) error {
	if row.Owner != principal && row.Owner != "" && principal != contract.PrincipalAdmin {
		return ErrNoSession
	}
	return nil
}

func (s *Store) createSession(ctx context.Context, tx *sqlx.Tx, id, owner string, at time.Time) error {
	_, err := tx.ExecContext(ctx, tx.Rebind(`INSERT INTO sessions (id, project_id, owner, created_at, updated_at) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (id) DO NOTHING`), id, s.project, owner, Time{at}, Time{at})
	return err
}

// maxHistory bounds the history of one prompt, in bytes of its bodies; older turns are left out.
const maxHistory = 16 << 20

const messageColumns = `id, role, turn, place, state, tokens, surface, body, original`

// turnOf gives the turn of a request, 0 if nothing of it is stored.
func turnOf(ctx context.Context, tx *sqlx.Tx, session, request string) (turn int64, err error) {
	err = tx.GetContext(ctx, &turn, tx.Rebind(`SELECT `+ownTurn), session, request)
	return turn, err
}

// ownTurn is the turn of a request in a session as an expression.
const ownTurn = `COALESCE((SELECT MAX(turn) FROM messages WHERE session_id = ? AND request_id = ?), 0)`

// historyBefore reads what the prompt of a request builds upon: the messages of answered turns before its own, oldest first, and the summary of those that are
// no longer there. own is the turn of the request, 0 when it has none yet and all are before it.
func historyBefore(ctx context.Context, tx *sqlx.Tx, session, request string) (history []Message, own int64, err error) {
	rows, err := tx.QueryxContext(ctx, tx.Rebind(`SELECT `+messageColumns+`, `+ownTurn+` AS own FROM messages WHERE session_id = ?
		AND state IN ('done', 'summary') AND turn < COALESCE(NULLIF(`+ownTurn+`, 0), ?) ORDER BY turn DESC, place DESC`),
		session, request, session, session, request, int64(math.MaxInt64))
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	size, cut, base := 0, false, []Message(nil)
	for rows.Next() {
		var m struct {
			Message
			Own int64 `db:"own"`
		}
		if err := rows.StructScan(&m); err != nil {
			return nil, 0, err
		}
		own = m.Own
		if size += len(m.Body); size > maxHistory { // the turn at hand is not whole then
			for n := len(history); n > 0 && history[n-1].Turn == m.Turn; n-- {
				history = history[:n-1]
			}
			cut = true
			break
		}
		history = append(history, m.Message)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, 0, err
	}
	if size == 0 { // there may be a turn without a history
		own, err = turnOf(ctx, tx, session, request)
		return nil, own, err
	}
	if cut { // the summary is still the base
		for n := len(history); n > 0 && history[n-1].Role == "tool"; n-- { // their call is in the turn before
			history = history[:n-1]
		}
		if err := tx.SelectContext(ctx, &base, tx.Rebind(`SELECT `+messageColumns+` FROM messages WHERE session_id = ? AND turn = ?
			AND state = 'summary'`), session, summaryTurn); err != nil {
			return nil, 0, err
		}
		history = append(history, base...)
	}
	slices.Reverse(history)
	return history, own, nil
}

// question is what a turn begins with.
type question struct {
	request  string
	surface  contract.Surface
	at       time.Time
	turn     int64
	messages []Message
}

// saveQuestion saves the messages of a turn that has no answer yet, and the session's row.
func (s *Store) saveQuestion(ctx context.Context, tx *sqlx.Tx, row sessionRow, q question) error {
	rows := make([]messageRow, len(q.messages))
	for i, m := range q.messages {
		m.Turn, m.Place, m.State, m.Surface = q.turn, int64(i), stateOpen, string(q.surface)
		rows[i] = messageRow{Message: m, session: row.ID, request: q.request, at: q.at}
	}
	if err := s.insertMessages(ctx, tx, rows); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, tx.Rebind(`UPDATE sessions SET title = ?, turns = ?, applied = ?, updated_at = ?, message_count = message_count + ?
		WHERE id = ?`), row.Title, q.turn, row.Applied, Time{q.at}, len(q.messages), row.ID)
	return err
}

// messageRow is a message to be inserted.
type messageRow struct {
	Message
	session, request string
	at               time.Time
}

const insertColumns = 12

// errPlaceTaken is never seen unless the rows of a session are not what its lock promises.
var errPlaceTaken = fmt.Errorf("%w: there is a message in the place of another", ErrRejected)

// insertMessages adds messages and gives them new ids. errPlaceTaken says that there is a message in the place of one.
func (s *Store) insertMessages(ctx context.Context, tx *sqlx.Tx, rows []messageRow) error {
	for chunk := range slices.Chunk(rows, rowsPerStatement) {
		args := make([]any, 0, len(chunk)*insertColumns)
		for i := range chunk {
			m := &chunk[i]
			m.ID = s.ids.next(prefixMessage)
			args = append(args, m.ID, m.session, storedRole(m.Role), Time{m.at}, m.Turn, m.Place, m.State, m.request, m.Tokens, m.Surface, m.Body, m.Original)
		}
		res, err := tx.ExecContext(ctx, tx.Rebind(`INSERT INTO messages (id, session_id, role, created_at, turn, place, state, request_id, tokens, surface,
			body, original) VALUES `+placeholders(len(chunk), insertColumns)+` ON CONFLICT (session_id, turn, place) DO NOTHING`), args...)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n < int64(len(chunk)) {
			return cmp.Or(err, errPlaceTaken)
		}
	}
	return nil
}

// storedRole is the role as the table knows it. Roles that only some providers have are the user's.
func storedRole(role string) string {
	switch role {
	case "system", "assistant", "tool":
		return role
	case "function":
		return "tool"
	case "developer":
		return "system"
	}
	return "user"
}

const (
	partStepCost   = "step_cost"
	partCompaction = "compaction"
	partWebFetch   = string(contract.VisitFetch)
	partWebSearch  = string(contract.VisitSearch)
	partRetry      = "retry"
)

// messagePart is what is stored beside the text of a message.
type messagePart struct {
	message string // id
	kind    string
	data    string // JSON
	at      time.Time
}

const partColumns = 5

// insertParts adds parts with new ids.
func (s *Store) insertParts(ctx context.Context, tx *sqlx.Tx, parts []messagePart) error {
	for chunk := range slices.Chunk(parts, rowsPerStatement) {
		args := make([]any, 0, len(chunk)*partColumns)
		for _, p := range chunk {
			args = append(args, s.ids.next(prefixPart), p.message, p.kind, p.data, Time{p.at})
		}
		statement := tx.Rebind(`INSERT INTO parts (id, message_id, type, data, created_at) VALUES ` + placeholders(len(chunk), partColumns))
		if _, err := tx.ExecContext(ctx, statement, args...); err != nil {
			return err
		}
	}
	return nil
}

const maxTitle = 80

// titleOf names a session after what it begins with.
func titleOf(messages []Message) string {
	for _, m := range messages {
		content := rawjson.Get([]byte(m.Body), "content")
		if len(content) > 0 && content[0] == '[' {
			for span := range rawjson.Elements(content) {
				if text := rawjson.Get(span.Of(content), "text"); text != nil {
					content = text
					break
				}
			}
		}
		if text := rawjson.Text(content); m.Role == "user" && text != "" {
			return clip(text, maxTitle)
		}
	}
	return ""
}
