package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"
)

// Store is an open database. It is safe for concurrent use.
type Store struct {
	write *sqlx.DB
	read  *sqlx.DB // the same as write on PostgreSQL
	ids   *ids
}

const (
	sqlitePrefix = "sqlite:"
	readers      = 4 // connections that read a SQLite database at the same time
	pgConns      = 8
)

// Open opens the database at address and brings its schema up to date; several processes may do so at the same time. The address is
// "sqlite:" and a path, relative to the working directory, whose directories and file are created for the owner only, or a postgres:// URL.
// No error shows the password of the address. The caller must Close the store.
func Open(ctx context.Context, address string) (*Store, error) {
	switch {
	case strings.HasPrefix(address, sqlitePrefix):
		s, err := openSQLite(ctx, strings.TrimPrefix(address, sqlitePrefix))
		if err != nil {
			return nil, fmt.Errorf("opening the SQLite database: %w", err)
		}
		return s, nil
	case strings.HasPrefix(address, "postgres://"), strings.HasPrefix(address, "postgresql://"):
		s, err := openPostgres(ctx, address)
		if err != nil {
			return nil, fmt.Errorf("opening the PostgreSQL database: %w", err)
		}
		return s, nil
	}
	return nil, errors.New("database address is neither sqlite:PATH nor a postgres:// address")
}

// Close waits for the statements under way and closes the database.
func (s *Store) Close() error {
	err := s.write.Close()
	if s.read != s.write {
		err = errors.Join(err, s.read.Close())
	}
	if err != nil {
		return fmt.Errorf("closing the database: %w", err)
	}
	return nil
}

// inTx runs fn in a transaction that may write, and commits it if fn returns nil.
func (s *Store) inTx(ctx context.Context, fn func(*sqlx.Tx) error) error {
	tx, err := s.write.BeginTxx(ctx, nil)
	if err != nil {
		return fmt.Errorf("beginning a transaction: %w", err)
	}
	if err := fn(tx); err != nil {
		if back := tx.Rollback(); back != nil && !errors.Is(back, sql.ErrTxDone) {
			err = errors.Join(err, fmt.Errorf("rolling back: %w", back))
		}
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("committing: %w", err)
	}
	return nil
}
