package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"hydrallm/shared/contract"
	"hydrallm/shared/query"
)

var insertLogs = &insert{
	into:    `INSERT INTO system_logs (digest, level, category, message, request_id, metadata, created_at) VALUES `,
	columns: 7,
	then:    ` ON CONFLICT (digest) DO NOTHING`,
}

// RecordLogs stores events in one transaction and returns how many were new. An event with the id of a stored one, or without an id and equal
// to it in every field, time included, is the same fact again. An event without a message makes it fail with ErrRejected; then nothing is stored.
func (s *Store) RecordLogs(ctx context.Context, logs []contract.Log) (stored int, err error) {
	if len(logs) == 0 {
		return 0, nil
	}
	if err := s.prepare(ctx, insertLogs); err != nil {
		return 0, fmt.Errorf("recording logs: %w", err)
	}
	now := time.Now()
	err = s.inTx(ctx, func(tx *sqlx.Tx) (err error) {
		stored, err = s.insertLogRows(ctx, tx, logs, now)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("recording logs: %w", rejection(err))
	}
	return stored, nil
}

func (s *Store) insertLogRows(ctx context.Context, tx *sqlx.Tx, logs []contract.Log, now time.Time) (stored int, err error) {
	args := make([]any, 0, len(logs)*insertLogs.columns)
	for i := range logs {
		l := &logs[i]
		args = append(args, digest(l), clip(l.Level, maxName), clip(l.Category, maxName), clip(l.Message, maxMessage), clip(l.RequestID, maxName),
			metadata(l.Metadata), plausible(l.At, now).text())
	}
	stored, err = s.insertAll(ctx, tx, insertLogs, args)
	if err != nil {
		return 0, fmt.Errorf("inserting events: %w", err)
	}
	return stored, nil
}

// digest identifies a fact by its id, or by its content: each field with its length before it. An id that sorts by time, as those of requests do, keeps
// its order, so that the entries of an index that belong together stand together. No other digest has a colon.
func digest(l *contract.Log) string {
	if l.ID != "" && len(l.ID) <= maxPlainID && !strings.ContainsFunc(l.ID, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "id:" + l.ID
	}
	h := sha256.New()
	if l.ID != "" {
		h.Write([]byte("id:" + l.ID)) // no content begins so: its first byte is the length of a level
		return hex.EncodeToString(h.Sum(nil)[:16])
	}
	for _, field := range []string{l.Level, l.Category, l.Message, l.RequestID, string(l.Metadata)} {
		h.Write(binary.AppendUvarint(nil, uint64(len(field))))
		h.Write([]byte(field))
	}
	h.Write(binary.AppendVarint(nil, l.At.UnixNano()))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// maxPlainID bounds an id that stands in a digest as it is.
const maxPlainID = 64

// metadata gives the JSON to store, or nil. A document that is too long is replaced, since a part of it would not be JSON.
func metadata(raw json.RawMessage) any {
	switch {
	case len(raw) == 0:
		return nil
	case len(raw) > maxDocument:
		return `{"dropped":"too long"}`
	}
	return strings.ToValidUTF8(string(raw), "\uFFFD")
}

// MaxLogs bounds the entries of one answer.
const MaxLogs = 1000

// Logs gives the newest entries of those that are asked for, newest first; the limit is kept within 1..MaxLogs.
func (s *Store) Logs(ctx context.Context, q query.Logs) ([]query.LogEntry, error) {
	entries := []query.LogEntry{}
	w := pageOf(q.Page)
	w.is("level", q.Level)
	w.is("category", q.Category)
	w.is("request_id", q.Request)
	if q.Text != "" {
		w.and(`LOWER(message) LIKE LOWER(?) ESCAPE '!'`, "%"+escapeLike(q.Text)+"%")
	}
	newest := `SELECT id, level, category, message, request_id, COALESCE(CAST(metadata AS TEXT), '') AS metadata, created_at
		FROM system_logs` + w.where() + ` ORDER BY id DESC LIMIT ?`
	if err := s.read.SelectContext(ctx, &entries, s.read.Rebind(newest), append(w.args, bounded(q.Limit, MaxLogs))...); err != nil {
		return nil, fmt.Errorf("reading logs: %w", err)
	}
	return entries, nil
}

// ClearLogs removes every entry.
func (s *Store) ClearLogs(ctx context.Context) error {
	if _, err := s.write.ExecContext(ctx, `DELETE FROM system_logs`); err != nil {
		return fmt.Errorf("clearing logs: %w", err)
	}
	return nil
}
