package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"hydrallm/shared/contract"
	"hydrallm/shared/openai/rawjson"
)

// ErrChanged says that what was to be compacted is no longer as it was read.
var ErrChanged = errors.New("the session has changed meanwhile")

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

// AllLarge is Large for all sessions, at most so many, those that were used last.
func (s *Store) AllLarge(ctx context.Context, tokens int64, most int) (large []string, err error) {
	err = s.read.SelectContext(ctx, &large, s.read.Rebind(`SELECT id FROM sessions WHERE context_tokens > ? ORDER BY updated_at DESC LIMIT ?`), tokens, most)
	if err != nil {
		return nil, fmt.Errorf("reading the size of sessions: %w", err)
	}
	return large, nil
}

// Outline is what prompts of a session build upon now, without the texts.
type Outline struct {
	Tokens   int64     // estimate of the messages, the summary left out
	Summary  Message   // with its body; ID is "" if there is none
	Folded   string    // text of that summary
	Messages []Message // of answered turns, in order, without bodies
}

// Outline reads a session; one that is not there has an empty outline.
func (s *Store) Outline(ctx context.Context, session string) (o Outline, err error) {
	err = s.read.SelectContext(ctx, &o.Messages, s.read.Rebind(`SELECT id, role, turn, place, state, tokens FROM messages
		WHERE session_id = ? AND state IN ('done', 'summary') ORDER BY turn, place`), session)
	if err != nil {
		return o, fmt.Errorf("reading the outline of a session: %w", err)
	}
	if len(o.Messages) > 0 && o.Messages[0].Summary() {
		if o.Summary, o.Folded, err = s.summary(ctx, session); err != nil {
			return o, fmt.Errorf("reading the summary of a session: %w", err)
		}
		o.Messages = o.Messages[1:]
	}
	for i := range o.Messages {
		o.Tokens += o.Messages[i].Tokens
	}
	return o, nil
}

// summary reads the message that stands for older ones, and its text.
func (s *Store) summary(ctx context.Context, session string) (m Message, text string, err error) {
	err = s.read.GetContext(ctx, &m, s.read.Rebind(`SELECT `+messageColumns+` FROM messages WHERE session_id = ? AND state = 'summary' ORDER BY turn, place`), session)
	if errors.Is(err, sql.ErrNoRows) { // another compaction is between two reads
		return m, "", ErrChanged
	} else if err != nil {
		return m, "", err
	}
	var data string
	err = s.read.GetContext(ctx, &data, s.read.Rebind(`SELECT CAST(data AS TEXT) FROM parts WHERE message_id = ? AND type = ?`), m.ID, partCompaction)
	if errors.Is(err, sql.ErrNoRows) {
		return m, "", ErrChanged
	}
	return m, rawjson.Text(rawjson.Get([]byte(data), "summary")), err
}

// maxCompacted bounds the texts that one compaction reads, in bytes.
const maxCompacted = 4 << 20

// Before gives the messages of answered turns before a place in the session, in order, with their bodies: the oldest of them, if they are too long
// together, and at least one.
func (s *Store) Before(ctx context.Context, session string, turn, place int64) (list []Message, err error) {
	rows, err := s.read.QueryxContext(ctx, s.read.Rebind(`SELECT `+messageColumns+` FROM messages
		WHERE session_id = ? AND state = 'done' AND (turn, place) < (?, ?) ORDER BY turn, place`), session, turn, place)
	if err != nil {
		return nil, fmt.Errorf("reading older messages: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for size := 0; rows.Next(); {
		var m Message
		if err := rows.StructScan(&m); err != nil {
			return nil, fmt.Errorf("reading an older message: %w", err)
		}
		if size += len(m.Body); size > maxCompacted && len(list) > 0 {
			break
		}
		list = append(list, m)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("reading older messages: %w", err)
	}
	return list, nil
}

// Summary is what takes the place of messages.
type Summary struct {
	Folded  string   // id of the summary that goes into this one, "" = there is none
	Removed []string // ids of the messages
	Body    []byte   // the message that prompts get, which is valid JSON
	Part    CompactionPart
}

// CompactionPart is the data of the part of a summary.
type CompactionPart struct {
	Auto     bool   `json:"auto"`
	Overflow bool   `json:"overflow"`
	Summary  string `json:"summary"`
	Count    int    `json:"compressed_count"`
	Saving   int64  `json:"token_saving"`

	// Requests are those that were summarised last: a redelivery of one finds its turn here. The store fills it in.
	Requests []string `json:"requests,omitempty"`
}

// Compact writes a compaction, in one transaction. What was fetched from the web for messages before a place becomes a mark, and failed attempts there
// are removed. A summary, unless it is nil, takes the place of messages; what came meanwhile stays. The error is ErrChanged when another compaction came
// first, and ErrNoSession when the session is gone; then nothing is written.
func (s *Store) Compact(ctx context.Context, session string, turn, place int64, sum *Summary) error {
	err := s.inTx(ctx, func(tx *sqlx.Tx) error {
		if _, err := s.lockSession(ctx, tx, session); err != nil {
			return err
		}
		if err := prunePartsBefore(ctx, tx, session, turn, place); err != nil {
			return err
		}
		if sum == nil {
			return nil
		}
		return s.putSummary(ctx, tx, session, sum)
	})
	if err != nil {
		return fmt.Errorf("compacting a session: %w", rejection(err))
	}
	return nil
}

// pruned stands for what was fetched from the web.
const pruned = `"[PRUNED]"`

func prunePartsBefore(ctx context.Context, tx *sqlx.Tx, session string, turn, place int64) error {
	const before = ` IN (SELECT id FROM messages WHERE session_id = ? AND (turn, place) < (?, ?))`
	var parts []struct {
		ID   string `db:"id"`
		Data string `db:"data"`
	}
	if err := tx.SelectContext(ctx, &parts, tx.Rebind(`SELECT id, CAST(data AS TEXT) AS data FROM parts
		WHERE type = ? AND message_id`+before), partWebFetch, session, turn, place); err != nil {
		return err
	}
	for _, p := range parts {
		data := []byte(p.Data)
		if len(data) == 0 || data[0] != '{' || rawjson.Is(rawjson.Get(data, "content"), "[PRUNED]") {
			continue
		}
		data = rawjson.AppendSet(nil, data, "content", []byte(pruned))
		if _, err := tx.ExecContext(ctx, tx.Rebind(`UPDATE parts SET data = ? WHERE id = ?`), string(data), p.ID); err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, tx.Rebind(`DELETE FROM parts WHERE type = ? AND message_id`+before), partRetry, session, turn, place)
	return err
}

// removeStep is how many messages one statement removes, which is far below the parameters that a statement may have.
const removeStep = 500

// maxFolded bounds the requests that a summary names. A request is redelivered within minutes, if at all.
const maxFolded = 256

// putSummary removes messages and puts their summary before all others.
func (s *Store) putSummary(ctx context.Context, tx *sqlx.Tx, session string, sum *Summary) error {
	ids, requests := sum.Removed, []string(nil)
	if sum.Folded != "" {
		ids = append([]string{sum.Folded}, ids...)
		before, err := compactionPart(ctx, tx, sum.Folded)
		if err != nil {
			return err
		}
		requests = before.Requests
	}
	for some := range slices.Chunk(ids, removeStep) {
		statement, args, err := sqlx.In(`DELETE FROM messages WHERE session_id = ? AND state IN ('done', 'summary') AND id IN (?) RETURNING request_id`, session, some)
		if err != nil {
			return err
		}
		var removed []string
		if err := tx.SelectContext(ctx, &removed, tx.Rebind(statement), args...); err != nil {
			return err
		}
		if len(removed) != len(some) {
			return ErrChanged
		}
		requests = append(requests, removed...)
	}
	part := sum.Part
	part.Requests = lastRequests(requests)
	data, err := json.Marshal(part)
	if err != nil {
		return err
	}
	m, at := NewMessage(contract.Message{Body: sum.Body}), time.Now()
	m.State, m.Turn = stateSummary, summaryTurn
	rows := []messageRow{{Message: m, session: session, at: at}}
	if err := s.insertMessages(ctx, tx, rows); errors.Is(err, errPlaceTaken) { // there is one that this one does not fold
		return ErrChanged
	} else if err != nil {
		return err
	}
	if err := s.insertParts(ctx, tx, []messagePart{{message: rows[0].ID, kind: partCompaction, data: string(data), at: at}}); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, tx.Rebind(`UPDATE sessions SET summary_token_count = ?,
		message_count = (SELECT COUNT(*) FROM messages WHERE session_id = sessions.id),
		context_tokens = (SELECT COALESCE(SUM(tokens), 0) FROM messages WHERE session_id = sessions.id AND state = 'done') WHERE id = ?`), m.Tokens, session)
	return err
}

// lastRequests gives the last of some requests, each once.
func lastRequests(list []string) (last []string) {
	for _, r := range slices.Backward(list) {
		if len(last) < maxFolded && r != "" && !slices.Contains(last, r) {
			last = append(last, r)
		}
	}
	slices.Reverse(last)
	return last
}

// compactionPart reads the part of a summary; it is empty when there is none.
func compactionPart(ctx context.Context, tx *sqlx.Tx, message string) (p CompactionPart, err error) {
	var data string
	err = tx.GetContext(ctx, &data, tx.Rebind(`SELECT CAST(data AS TEXT) FROM parts WHERE message_id = ? AND type = ?`), message, partCompaction)
	if errors.Is(err, sql.ErrNoRows) {
		return p, nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(data), &p)
	}
	return p, err
}
