package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"

	"github.com/jmoiron/sqlx"
)

// rowsPerStatement keeps the parameters of a statement below the limits of both databases (32766 and 65535).
const rowsPerStatement = 500

// preparedRows are the numbers of rows for which statements are prepared, largest first: to read the text of a statement costs SQLite a quarter of
// what it costs to insert its rows.
var preparedRows = []int{64, 8, 1}

// insert is a statement that inserts rows.
type insert struct {
	into    string // up to the rows
	columns int
	then    string // after them
}

func (i *insert) text(rows int) string { return i.into + placeholders(rows, i.columns) + i.then }

// placeholders gives "(?,?),(?,?)" for two rows of two columns.
func placeholders(rows, columns int) string {
	row := "(" + strings.Repeat("?,", columns-1) + "?),"
	return strings.TrimSuffix(strings.Repeat(row, rows), ",")
}

// prepared are statements of a database that has one connection to write with: those of an *insert, as preparedRows.
type prepared struct{ statements sync.Map }

func (p *prepared) of(i *insert) []*sqlx.Stmt {
	all, _ := p.statements.Load(i)
	statements, _ := all.([]*sqlx.Stmt)
	return statements
}

// prepare makes the statements of inserts that a transaction is going to run, outside of it: it has the connection. On PostgreSQL there is nothing to do,
// where a statement in one message costs less than several in turn.
func (s *Store) prepare(ctx context.Context, inserts ...*insert) error {
	for _, i := range inserts {
		if s.prepared == nil || s.prepared.of(i) != nil {
			continue
		}
		statements, err := prepareAll(ctx, s.write, i)
		if err != nil {
			return err
		}
		if _, before := s.prepared.statements.LoadOrStore(i, statements); before {
			closeAll(statements)
		}
	}
	return nil
}

func prepareAll(ctx context.Context, db *sqlx.DB, i *insert) (statements []*sqlx.Stmt, err error) {
	for _, rows := range preparedRows {
		stmt, err := db.PreparexContext(ctx, i.text(rows)) //nolint:sqlclosecheck // the store keeps it until the database is closed
		if err != nil {
			closeAll(statements)
			return nil, fmt.Errorf("preparing a statement: %w", err)
		}
		statements = append(statements, stmt)
	}
	return statements, nil
}

func closeAll(statements []*sqlx.Stmt) {
	for _, stmt := range statements {
		_ = stmt.Close() // nothing hangs on it
	}
}

// runner is a statement, or a transaction with the text of one.
type runner interface {
	SelectContext(ctx context.Context, dest any, args ...any) error
	ExecContext(ctx context.Context, args ...any) (sql.Result, error)
}

type textRunner struct {
	tx   *sqlx.Tx
	text string
}

func (r textRunner) SelectContext(ctx context.Context, dest any, args ...any) error {
	return r.tx.SelectContext(ctx, dest, r.text, args...)
}

func (r textRunner) ExecContext(ctx context.Context, args ...any) (sql.Result, error) {
	return r.tx.ExecContext(ctx, r.text, args...)
}

// insertAll runs an insert, which was prepared, for all rows whose values are in args, by as few statements as there are.
func (s *Store) insertAll(ctx context.Context, tx *sqlx.Tx, i *insert, args []any, run func(r runner, args []any) error) error {
	for len(args) > 0 {
		r, rows := s.runner(ctx, tx, i, len(args)/i.columns)
		if err := run(r, args[:rows*i.columns]); err != nil {
			return err
		}
		args = args[rows*i.columns:]
	}
	return nil
}

// runner gives what inserts the first of some rows, and how many that are.
func (s *Store) runner(ctx context.Context, tx *sqlx.Tx, i *insert, rows int) (runner, int) {
	if s.prepared == nil {
		rows = min(rows, rowsPerStatement)
		return textRunner{tx, tx.Rebind(i.text(rows))}, rows
	}
	for at, size := range preparedRows {
		if size <= rows {
			return tx.StmtxContext(ctx, s.prepared.of(i)[at]), size
		}
	}
	panic("no rows to insert")
}

// insertReturning is insertAll for an insert that returns rows.
func insertReturning[T any](ctx context.Context, s *Store, tx *sqlx.Tx, i *insert, args []any) (returned []T, err error) {
	returned = make([]T, 0, len(args)/i.columns)
	err = s.insertAll(ctx, tx, i, args, func(r runner, args []any) error {
		var some []T
		err := r.SelectContext(ctx, &some, args...)
		returned = append(returned, some...)
		return err
	})
	return returned, err
}
