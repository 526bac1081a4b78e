package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/jmoiron/sqlx"
	"modernc.org/sqlite"
)

const sqliteDriver = "sqlite" // the name under which sqlx knows the bind type

// busyMS is how long a connection waits for another process that holds the lock it needs.
const busyMS = "30000"

func openSQLite(ctx context.Context, path string) (_ *Store, err error) {
	if path == "" || strings.HasPrefix(path, ":memory:") {
		return nil, errors.New("the address names no file")
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("finding the file: %w", err)
	}
	if err := createFile(path); err != nil {
		return nil, err
	}
	sqlx.BindDriver(sqliteDriver, sqlx.QUESTION)
	s := &Store{ids: newIDs()}
	// Transactions of the writer take the write lock when they begin: one that reads first and then writes would fail at once when
	// another process has written in between, without any wait (SES-05).
	s.write, err = sqlitePool(path, 1, url.Values{
		"_txlock": {"immediate"}, "_journal_mode": {"WAL"}, "_synchronous": {"NORMAL"}, "_pragma": {"journal_size_limit(67108864)"},
	})
	if err != nil {
		return nil, err
	}
	if s.read, err = sqlitePool(path, readers, url.Values{"_query_only": {"1"}}); err != nil {
		return nil, errors.Join(err, s.write.Close())
	}
	if err := s.prepareSQLite(ctx, path); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// prepareSQLite switches to WAL mode, which the first connection does, and migrates, one process at a time.
func (s *Store) prepareSQLite(ctx context.Context, path string) (err error) {
	unlock, err := lockSetup(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	return migrateSQLite(ctx, s.write.DB)
}

// createFile makes the file and its directories if they are missing. SQLite gives its journals the mode of the file.
func createFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("creating the directory: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the operator chooses the path
	if err != nil {
		return fmt.Errorf("creating the file: %w", err)
	}
	return f.Close()
}

func sqlitePool(path string, conns int, params url.Values) (*sqlx.DB, error) {
	params.Set("_busy_timeout", busyMS)
	params.Set("_foreign_keys", "1") // per connection, as SQLite wants it
	connector, err := sqlite.NewConnector(sqliteURI(path) + "?" + params.Encode())
	if err != nil {
		return nil, fmt.Errorf("reading the address: %w", err)
	}
	db := sqlx.NewDb(sql.OpenDB(connector), sqliteDriver)
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

// sqliteURI names an absolute path so that no character of it is taken for a parameter.
func sqliteURI(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // C:/...
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// lockSetup keeps other processes from setting up the same database until unlock. The lock is SQLite's own, on an empty file beside the
// database: it works on every system and goes with the process.
func lockSetup(ctx context.Context, path string) (unlock func() error, err error) {
	path += "-setup"
	if err := createFile(path); err != nil {
		return nil, err
	}
	db, err := sqlitePool(path, 1, url.Values{"_txlock": {"exclusive"}})
	if err != nil {
		return nil, err
	}
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking the database for its setup: %w", err), db.Close())
	}
	return func() error { return errors.Join(tx.Rollback(), db.Close()) }, nil
}
