package sessionwriter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"time"

	"hydrallm/services/session-writer/internal/memory"
	"hydrallm/services/session-writer/internal/store"
	"hydrallm/shared/bus"
	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
	"hydrallm/shared/topology"
)

// writeLimit bounds the work for one batch; it is below the time after which the stream delivers the facts again.
const writeLimit = 20 * time.Second

// writer stores batches of facts.
type writer struct {
	store     *store.Store
	database  *database
	sessions  *sessions
	stored    *stored
	optimizer *memory.Optimizer
	dead      func(ctx context.Context, stage string, f bus.Fact, reason string) error
	log       *slog.Logger
	metrics   *metrics
}

// row is one statement of a fact: a message holds one per line.
type row[T any] struct {
	value T
	fact  int // index of its message in the batch
}

// batch is what a batch of messages says.
type batch struct {
	usage  []row[contract.RequestRecord]
	logs   []row[contract.Log]
	turns  []row[contract.Turn]
	stored []row[contract.StoredResponse]
	web    []row[contract.WebRecord]
	poison []poison
}

// poison is a message of which a part can't be stored, now or ever.
type poison struct {
	fact   int
	kind   string
	reason string // without content
}

// write stores the facts. An error means that none is lost if all are delivered again. Facts that can't be stored are put among the dead
// letters and do not hold up the others.
func (w *writer) write(ctx context.Context, facts []bus.Fact) error {
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	w.metrics.batch.Observe(float64(len(facts)))
	b := decode(facts)
	refused, err := recordAll(ctx, w, kindUsage, b.usage, noted(w.database, w.store.RecordUsage))
	if err != nil {
		return err
	}
	b.poison = append(b.poison, refused...)
	if refused, err = recordAll(ctx, w, kindLog, b.logs, noted(w.database, w.store.RecordLogs)); err != nil {
		return err
	}
	b.poison = append(b.poison, refused...)
	if refused, err = recordAll(ctx, w, kindResponse, b.stored, w.stored.record); err != nil {
		return err
	}
	b.poison = append(b.poison, refused...)
	if refused, err = recordAll(ctx, w, kindTurn, b.turns, w.recordTurns); err != nil {
		return err
	}
	b.poison = append(b.poison, refused...)
	if refused, err = recordAll(ctx, w, kindWeb, b.web, noted(w.database, w.store.RecordWeb)); err != nil { // their messages are there now
		return err
	}
	return w.bury(ctx, facts, append(b.poison, refused...))
}

// recordTurns stores turns. An answer to a question that is a fact itself comes after that one, wherever it is.
func (w *writer) recordTurns(ctx context.Context, turns []contract.Turn) (int, error) {
	for _, t := range turns {
		if t.Unsaved || t.Kind == contract.TurnAsked {
			if err := w.sessions.catchUp(ctx, t.Session); err != nil {
				return 0, err
			}
		}
	}
	err := w.store.ApplyTurns(ctx, turns)
	w.database.wrote(ctx, err)
	if err != nil {
		return 0, err
	}
	ids := make([]string, len(turns))
	for i := range turns {
		ids[i] = turns[i].Session
	}
	w.optimizer.Consider(ctx, ids)
	return len(turns), nil
}

// noted tells what became of each transaction.
func noted[T any](d *database, record func(context.Context, []T) (int, error)) func(context.Context, []T) (int, error) {
	return func(ctx context.Context, values []T) (int, error) {
		n, err := record(ctx, values)
		d.wrote(ctx, err)
		return n, err
	}
}

// decode reads every part it can.
func decode(facts []bus.Fact) batch {
	var b batch
	for i := range facts {
		f := &facts[i]
		switch {
		case f.Subject == subject.UsageRecorded:
			b.addUsage(i, f.Data)
		case f.Subject == subject.WebRecorded:
			b.addWeb(i, f.Data)
		case strings.HasPrefix(f.Subject, logPrefix):
			b.addLog(i, f.Data)
		case subject.IsTurn(f.Subject):
			b.addTurn(i, f)
		case subject.IsStored(f.Subject):
			b.addStored(i, f)
		default:
			b.poison = append(b.poison, poison{fact: i, kind: kindUnknown, reason: "nothing stores facts of this subject"})
		}
	}
	return b
}

var logPrefix = strings.TrimSuffix(subject.AllLogs, "*")

// statements gives the lines of a message. One that is no JSON does not spoil the others.
func statements(data []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for line := range bytes.SplitSeq(data, []byte{'\n'}) {
			if line = bytes.TrimSpace(line); len(line) > 0 && !yield(line) {
				return
			}
		}
	}
}

func (b *batch) addUsage(fact int, data []byte) {
	b.usage = slices.Grow(b.usage, bytes.Count(data, []byte{'\n'})+1)
	for line := range statements(data) {
		u, err := contract.ParseUsage(line)
		if err != nil {
			b.poison = append(b.poison, poison{fact: fact, kind: kindUsage, reason: "a line is not a usage record"})
			continue
		}
		b.usage = append(b.usage, row[contract.RequestRecord]{u, fact})
	}
}

func (b *batch) addWeb(fact int, data []byte) {
	var r contract.WebRecord
	if err := json.Unmarshal(data, &r); err != nil || r.RequestID == "" {
		b.poison = append(b.poison, poison{fact: fact, kind: kindWeb, reason: "it does not tell what was fetched for a request"})
		return
	}
	b.web = append(b.web, row[contract.WebRecord]{r, fact})
}

func (b *batch) addLog(fact int, data []byte) {
	b.logs = slices.Grow(b.logs, bytes.Count(data, []byte{'\n'})+1)
	for line := range statements(data) {
		l, err := contract.ParseLog(line)
		if err != nil {
			b.poison = append(b.poison, poison{fact: fact, kind: kindLog, reason: "a line is not a log record"})
			continue
		}
		b.logs = append(b.logs, row[contract.Log]{l, fact})
	}
}

func (b *batch) addTurn(fact int, f *bus.Fact) {
	t, err := readTurn(*f)
	if err != nil {
		b.poison = append(b.poison, poison{fact: fact, kind: kindTurn, reason: "it is not a turn of a session"})
		return
	}
	b.turns = append(b.turns, row[contract.Turn]{t, fact})
}

func (b *batch) addStored(fact int, f *bus.Fact) {
	r, err := contract.ParseStoredResponse(f.Data)
	if err != nil || subject.Stored(r.ID) != f.Subject {
		b.poison = append(b.poison, poison{fact: fact, kind: kindResponse, reason: "it is not a stored response"})
		return
	}
	b.stored = append(b.stored, row[contract.StoredResponse]{r, fact})
}

// recordAll stores the rows of one kind in one transaction; if the database refuses the content of one, each on its own.
func recordAll[T any](ctx context.Context, w *writer, kind string, rows []row[T], record func(context.Context, []T) (int, error)) ([]poison, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	begin := time.Now()
	defer func() { w.metrics.seconds.WithLabelValues(kind).Observe(time.Since(begin).Seconds()) }()
	values := make([]T, len(rows))
	for i := range rows {
		values[i] = rows[i].value
	}
	stored, err := record(ctx, values)
	if err == nil {
		w.count(kind, stored, len(rows))
		return nil, nil
	}
	if !errors.Is(err, store.ErrRejected) {
		return nil, err
	}
	var refused []poison
	for i := range rows {
		stored, err := record(ctx, values[i:i+1])
		switch {
		case err == nil:
			w.count(kind, stored, 1)
		case errors.Is(err, store.ErrRejected):
			refused = append(refused, poison{fact: rows[i].fact, kind: kind, reason: "the database refuses its content"})
		default:
			return nil, err
		}
	}
	return refused, nil
}

func (w *writer) count(kind string, stored, given int) {
	w.metrics.stored.WithLabelValues(kind).Add(float64(stored))
	w.metrics.repeated.WithLabelValues(kind).Add(float64(given - stored))
}

// bury puts messages among the dead letters, each once.
func (w *writer) bury(ctx context.Context, facts []bus.Fact, poisons []poison) error {
	buried := map[int]bool{}
	for _, p := range poisons {
		if buried[p.fact] {
			continue
		}
		buried[p.fact] = true
		f := facts[p.fact]
		if err := w.dead(ctx, topology.SessionWriter, f, p.reason); err != nil {
			return fmt.Errorf("burying a fact: %w", err)
		}
		w.metrics.poisonous.WithLabelValues(p.kind).Inc()
		w.log.ErrorContext(ctx, "fact can't be stored", slog.String("subject", f.Subject), slog.Uint64("sequence", f.Sequence),
			slog.Int("bytes", len(f.Data)), slog.String("reason", p.reason))
	}
	return nil
}
