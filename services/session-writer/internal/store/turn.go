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

func (s *Store) applyTurns(ctx context.Context, tx *sqlx.Tx, turns []contract.Turn) error {
	var costs []messagePart
	for i := range turns {
		cost, err := s.applyTurn(ctx, tx, &turns[i])
		if err != nil {
			return err
		}
		if cost.message != "" {
			costs = append(costs, cost)
		}
	}
	return s.insertParts(ctx, tx, costs)
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

// applyTurn stores one fact, and gives the part that is to be added to its message.
func (s *Store) applyTurn(ctx context.Context, tx *sqlx.Tx, t *contract.Turn) (cost messagePart, err error) {
	at := plausible(t.At, time.Now()).Time
	if t.Kind == contract.TurnAsked {
		return cost, s.applyQuestion(ctx, tx, t, at)
	}
	row, err := s.lockSession(ctx, tx, t.Session)
	if errors.Is(err, ErrNoSession) {
		return cost, nil // deleted meanwhile
	} else if err != nil {
		return cost, err
	}
	var turn []Message // what is stored of it
	if err := tx.SelectContext(ctx, &turn, tx.Rebind(`SELECT turn, place, state, tokens FROM messages WHERE session_id = ? AND request_id = ?
		ORDER BY turn, place`), t.Session, t.RequestID); err != nil || len(turn) == 0 || len(t.Messages) == 0 {
		return cost, err
	}
	m := NewMessage(t.Message(0))
	m.Role, m.Turn, m.Place, m.State, m.Surface = "assistant", turn[0].Turn, answerPlace, stateDone, string(t.Surface)
	if t.Kind != contract.TurnAnswered {
		m.State = statePartial
	}
	more := int64(1) // messages in the session
	if last := turn[len(turn)-1]; last.Place == answerPlace {
		if last.State != statePartial || m.State == statePartial {
			return cost, nil
		}
		if _, err := tx.ExecContext(ctx, tx.Rebind(`DELETE FROM messages WHERE session_id = ? AND turn = ? AND place = ?`), t.Session, m.Turn, m.Place); err != nil {
			return cost, err
		}
		more = 0
	}
	id, err := s.insertMessage(ctx, tx, t.Session, t.RequestID, at, m)
	if err != nil || id == "" {
		return cost, err
	}
	if m.State == stateDone { // the turn is part of later prompts from here
		row.ContextTokens += m.Tokens
		for i := range turn {
			if turn[i].State == stateOpen {
				row.ContextTokens += turn[i].Tokens
			}
		}
		if _, err := tx.ExecContext(ctx, tx.Rebind(`UPDATE messages SET state = 'done' WHERE session_id = ? AND turn = ? AND state = 'open'`), row.ID, m.Turn); err != nil {
			return cost, err
		}
	}
	_, err = tx.ExecContext(ctx, tx.Rebind(`UPDATE sessions SET message_count = message_count + ?, context_tokens = ?, last_model = ?, last_provider = ?,
		updated_at = CASE WHEN updated_at < ? THEN ? ELSE updated_at END WHERE id = ?`),
		more, row.ContextTokens, clip(t.Model, maxName), clip(t.Provider, maxName), Time{at}, Time{at}, row.ID)
	return messagePart{message: id, kind: partStepCost, data: stepCost(t), at: at}, err
}

// applyQuestion stores a question that could not be saved when it came. One for a session that belongs to somebody else is dropped.
func (s *Store) applyQuestion(ctx context.Context, tx *sqlx.Tx, t *contract.Turn, at time.Time) error {
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
