package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
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
	key     string // columns that name a row, for who has to know which of them were stored
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

// insertAll runs an insert, which was prepared, for all rows whose values are in args, by as few statements as there are, and says how many rows it has
// stored or changed.
func (s *Store) insertAll(ctx context.Context, tx *sqlx.Tx, i *insert, args []any) (stored int, err error) {
	for len(args) > 0 {
		res, rows, err := s.insertSome(ctx, tx, i, args)
		if err != nil {
			return 0, err
		}
		n, err := res.RowsAffected()
		if err != nil {
			return 0, err
		}
		stored, args = stored+int(n), args[rows*i.columns:]
	}
	return stored, nil
}

// insertSome inserts the first of some rows, and says how many that are.
func (s *Store) insertSome(ctx context.Context, tx *sqlx.Tx, i *insert, args []any) (res sql.Result, rows int, err error) {
	rows = len(args) / i.columns
	if s.prepared == nil {
		rows = min(rows, rowsPerStatement)
		res, err = tx.ExecContext(ctx, tx.Rebind(i.text(rows)), args[:rows*i.columns]...)
		return res, rows, err
	}
	for at, size := range preparedRows {
		if size <= rows {
			res, err = tx.StmtxContext(ctx, s.prepared.of(i)[at]).ExecContext(ctx, args[:size*i.columns]...)
			return res, size, err
		}
	}
	panic("no rows to insert")
}

// insertTelling is insertAll; it gives the keys of the rows that it has stored or changed, which costs a fifth more.
func insertTelling[K any](ctx context.Context, tx *sqlx.Tx, i *insert, args []any) (stored []K, err error) {
	for chunk := range slices.Chunk(args, rowsPerStatement*i.columns) {
		var some []K
		if err := tx.SelectContext(ctx, &some, tx.Rebind(i.text(len(chunk)/i.columns)+" RETURNING "+i.key), chunk...); err != nil {
			return nil, err
		}
		stored = append(stored, some...)
	}
	return stored, nil
}
