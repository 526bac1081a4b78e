package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// ApplyTurns stores facts in one transaction. What is stored already stays as it is, in whatever order and however often facts come: an answer stands in the
// turn of its question. Facts of sessions that were deleted are nothing.
func (s *Store) ApplyTurns(ctx context.Context, turns []contract.Turn) error {
	ordered := slices.Clone(turns) // sessions are locked in one order by all
	slices.SortStableFunc(ordered, func(a, b contract.Turn) int { return cmp.Compare(a.Session, b.Session) })
	err := s.inTx(ctx, func(tx *sqlx.Tx) error { return s.applyTurns(ctx, tx, ordered) })
	if err != nil {
		return fmt.Errorf("storing turns: %w", rejection(err))
	}
	return nil
}

// CatchUp is ApplyTurns for all facts of one session, in order, up to a place in the stream.
func (s *Store) CatchUp(ctx context.Context, session string, turns []contract.Turn, applied uint64) error {
	err := s.inTx(ctx, func(tx *sqlx.Tx) error {
		if err := s.applyTurns(ctx, tx, turns); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, tx.Rebind(`UPDATE sessions SET applied = ? WHERE id = ? AND applied < ?`), int64(applied), session, int64(applied))
		return err
	})
	if err != nil {
		return fmt.Errorf("storing the turns of a session: %w", rejection(err))
	}
	return nil
}

// applyTurns stores facts in few statements, however many they are. Those of one session are stored one after the other.
func (s *Store) applyTurns(ctx context.Context, tx *sqlx.Tx, turns []contract.Turn) error {
	if len(turns) == 0 {
		return nil
	}
	known, err := lockSessions(ctx, tx, turns)
	if err != nil {
		return err
	}
	for _, round := range rounds(turns) {
		var answers []*contract.Turn
		for _, t := range round {
			if t.Kind == contract.TurnAsked {
				if err := s.applyQuestion(ctx, tx, t); err != nil {
					return err
				}
				known[t.Session] = true
			} else if known[t.Session] && len(t.Messages) > 0 { // else the session was deleted meanwhile
				answers = append(answers, t)
			}
		}
		for chunk := range slices.Chunk(answers, rowsPerStatement) {
			if err := s.applyAnswers(ctx, tx, chunk); err != nil {
				return err
			}
		}
	}
	return nil
}

// rounds makes groups of facts in which each session has one at most, and those of a session keep their order from group to group.
func rounds(turns []contract.Turn) (groups [][]*contract.Turn) {
	nth := map[string]int{}
	for i := range turns {
		t := &turns[i]
		n := nth[t.Session]
		nth[t.Session]++
		if n == len(groups) {
			groups = append(groups, nil)
		}
		groups[n] = append(groups[n], t)
	}
	return groups
}

// Applied gives the place in the stream up to which the facts of a session are known to be stored, 0 for a session that is not known.
func (s *Store) Applied(ctx context.Context, session string) (uint64, error) {
	var places []int64
	if err := s.read.SelectContext(ctx, &places, s.read.Rebind(`SELECT applied FROM sessions WHERE id = ?`), session); err != nil {
		return 0, fmt.Errorf("reading a session: %w", err)
	}
	if len(places) == 0 {
		return 0, nil
	}
	return uint64(places[0]), nil
}

// answerRow is an answer with what it changes in its session.
type answerRow struct {
	turn     *contract.Turn
	at       time.Time
	messages int64 // more than before
	tokens   int64 // more in later prompts
}

// applyAnswers stores answers, each of another session.
func (s *Store) applyAnswers(ctx context.Context, tx *sqlx.Tx, turns []*contract.Turn) error {
	stored, err := turnsOf(ctx, tx, turns)
	if err != nil {
		return err
	}
	var (
		answers    []answerRow
		rows       []messageRow // of the answers
		gone, done []string     // ids of messages
	)
	now := time.Now()
	for _, t := range turns {
		turn := stored[t.Session]
		if len(turn) == 0 {
			continue
		}
		m := NewMessage(t.Message(0))
		m.Role, m.Turn, m.Place, m.State, m.Surface = "assistant", turn[0].Turn, answerPlace, stateDone, string(t.Surface)
		if t.Kind != contract.TurnAnswered {
			m.State = statePartial
		}
		a := answerRow{turn: t, at: plausible(t.At, now).Time, messages: 1}
		if last := turn[len(turn)-1]; last.Place == answerPlace {
			if last.State != statePartial || m.State == statePartial {
				continue
			}
			gone, a.messages = append(gone, last.ID), 0
		}
		if m.State == stateDone { // the turn is part of later prompts from here
			a.tokens = m.Tokens
			for i := range turn {
				if turn[i].State == stateOpen {
					a.tokens += turn[i].Tokens
					done = append(done, turn[i].ID)
				}
			}
		}
		answers = append(answers, a)
		rows = append(rows, messageRow{Message: m, session: t.Session, request: t.RequestID, at: a.at})
	}
	if err := eachID(ctx, tx, `DELETE FROM messages WHERE id IN (?)`, gone); err != nil {
		return err
	}
	if err := s.insertMessages(ctx, tx, rows); err != nil {
		return err
	}
	if err := eachID(ctx, tx, `UPDATE messages SET state = 'done' WHERE id IN (?)`, done); err != nil {
		return err
	}
	parts := make([]messagePart, len(answers))
	for i, a := range answers {
		parts[i] = messagePart{message: rows[i].ID, kind: partStepCost, data: stepCost(a.turn), at: a.at}
	}
	if err := s.insertParts(ctx, tx, parts); err != nil {
		return err
	}
	return s.addAnswers(ctx, tx, answers)
}

// turnsOf gives what is stored of turns, by session and in order of place.
func turnsOf(ctx context.Context, tx *sqlx.Tx, turns []*contract.Turn) (map[string][]Message, error) {
	if len(turns) == 0 {
		return nil, nil
	}
	args := make([]any, 0, 2*len(turns))
	for _, t := range turns {
		args = append(args, t.Session, t.RequestID)
	}
	var rows []struct {
		Message
		Session string `db:"session_id"`
	}
	statement := tx.Rebind(`SELECT m.id, m.session_id, m.turn, m.place, m.state, m.tokens FROM (VALUES ` + placeholders(len(turns), 2) + `) AS v
		CROSS JOIN messages m WHERE m.session_id = v.column1 AND m.request_id = v.column2 ORDER BY m.session_id, m.turn, m.place`)
	if err := tx.SelectContext(ctx, &rows, statement, args...); err != nil {
		return nil, err
	}
	stored := make(map[string][]Message, len(turns))
	for i := range rows {
		stored[rows[i].Session] = append(stored[rows[i].Session], rows[i].Message)
	}
	return stored, nil
}

// eachID executes a statement whose one parameter is a list of ids.
func eachID(ctx context.Context, tx *sqlx.Tx, statement string, ids []string) error {
	for chunk := range slices.Chunk(ids, rowsPerStatement) {
		expanded, args, err := sqlx.In(statement, chunk)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, tx.Rebind(expanded), args...); err != nil {
			return err
		}
	}
	return nil
}

// addAnswers notes answers in their sessions. All of these exist and are locked, so that the statement only updates: it is an insertion since one with many
// rows needs no types for its values, and finds each row by its key, in both databases.
func (s *Store) addAnswers(ctx context.Context, tx *sqlx.Tx, answers []answerRow) error {
	if len(answers) == 0 {
		return nil
	}
	const columns = 9
	args := make([]any, 0, columns*len(answers))
	for _, a := range answers {
		args = append(args, a.turn.Session, s.project, "", Time{a.at}, Time{a.at}, a.messages, a.tokens, clip(a.turn.Model, maxName), clip(a.turn.Provider, maxName))
	}
	_, err := tx.ExecContext(ctx, tx.Rebind(`INSERT INTO sessions (id, project_id, owner, created_at, updated_at, message_count, context_tokens, last_model,
		last_provider) VALUES `+placeholders(len(answers), columns)+` ON CONFLICT (id) DO UPDATE SET
		updated_at = CASE WHEN sessions.updated_at < excluded.updated_at THEN excluded.updated_at ELSE sessions.updated_at END,
		message_count = sessions.message_count + excluded.message_count, context_tokens = sessions.context_tokens + excluded.context_tokens,
		last_model = excluded.last_model, last_provider = excluded.last_provider`), args...)
	return err
}

// applyQuestion stores a question that could not be saved when it came. One for a session that belongs to somebody else is dropped.
func (s *Store) applyQuestion(ctx context.Context, tx *sqlx.Tx, t *contract.Turn) error {
	at := plausible(t.At, time.Now()).Time
	row, err := s.claimSession(ctx, tx, t.Session, t.Principal, at)
	if errors.Is(err, ErrNoSession) {
		return nil
	} else if err != nil {
		return err
	}
	if turn, err := turnOf(ctx, tx, t.Session, t.RequestID); err != nil || turn > 0 {
		return err
	}
	messages := make([]Message, len(t.Messages))
	for i := range t.Messages {
		messages[i] = NewMessage(t.Message(i))
	}
	if row.Title == "" {
		row.Title = titleOf(messages)
	}
	return s.saveQuestion(ctx, tx, row, question{request: t.RequestID, surface: t.Surface, at: at, turn: row.Turns + 1, messages: messages})
}

// NewMessage makes a message to be saved: it reads role and size.
func NewMessage(m contract.Message) Message {
	if !rawjson.Valid(m.Body) || m.Body[0] != '{' { // a fact is no place for anything else
		return Message{Role: "user", Body: `{"role":"user","content":""}`}
	}
	return Message{
		Role: rawjson.Text(rawjson.Get(m.Body, "role")), Tokens: count(openai.MessageTokens(m.Body)), Body: string(m.Body), Original: m.OriginalText(),
	}
}

// stepCost is the data of the part that every answer has.
func stepCost(t *contract.Turn) string {
	data, err := json.Marshal(struct {
		Provider  string `json:"provider"`
		Model     string `json:"model"`
		KeyIndex  int    `json:"key_index"`
		Tokens    int64  `json:"tokens"`
		LatencyMS int64  `json:"latency_ms"`
		Truncated bool   `json:"truncated,omitempty"`
	}{clip(t.Provider, maxName), clip(t.Model, maxName), t.KeyIndex, count(t.Tokens), count(t.LatencyMS), t.Truncated})
	if err != nil { // strings and numbers always marshal
		panic(fmt.Sprintf("encoding the cost of a step: %v", err))
	}
	return string(data)
}
