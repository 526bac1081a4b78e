package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/jmoiron/sqlx"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const sqliteDriver = "sqlite" // the name under which sqlx knows the bind type

// busyMS is how long a connection waits for another process that holds the lock it needs.
const busyMS = "30000"

// writerPragmas: what undoes a statement that fails half-way is kept in memory, not in a file beside the database, where each statement would write its pages a
// second time. Four times as many pages as usual go into the log before they are copied into the database: most of them are written again until then.
var writerPragmas = []string{"temp_store(memory)", "wal_autocheckpoint(4000)", "journal_size_limit(67108864)"}

func newSQLite(path string) (_ *Store, err error) {
	if path == "" || strings.HasPrefix(path, ":memory:") {
		return nil, errors.New("the address of the SQLite database names no file")
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("finding the file of the database: %w", err)
	}
	sqlx.BindDriver(sqliteDriver, sqlx.QUESTION)
	s := &Store{ids: newIDs(), ready: new(atomic.Bool), lock: &sqliteLock{path: path + "-lock"}, prepared: new(prepared)}
	// Transactions of the writer take the write lock when they begin: one that reads first and then writes would fail at once when
	// another process has written in between, without any wait (SES-05).
	writer, err := sqliteConnector(path, busyMS, url.Values{
		"_txlock": {"immediate"}, "_journal_mode": {"WAL"}, "_synchronous": {"NORMAL"}, "_pragma": writerPragmas,
	})
	if err != nil {
		return nil, err
	}
	reader, err := sqliteConnector(path, busyMS, url.Values{"_query_only": {"1"}})
	if err != nil {
		return nil, err
	}
	s.write, s.read = sqlitePool(gate{writer, s.ready}, 1), sqlitePool(gate{reader, s.ready}, readers)
	s.migrateTo = func(ctx context.Context, to int64) (err error) {
		if err := createFile(path); err != nil {
			return err
		}
		if err := s.lock.take(ctx); err != nil {
			return err
		}
		db := sqlitePool(writer, 1) // the first connection switches to WAL mode
		defer func() { err = errors.Join(err, db.Close()) }()
		if err := reach(ctx, db); err != nil {
			return err
		}
		return migrateSQLite(ctx, db.DB, to)
	}
	return s, nil
}

// createFile makes a file and its directories if they are missing. SQLite gives its journals the mode of the database. A file that is there is not opened: its
// closing would end the locks that this process has on it.
func createFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("creating the directory: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the operator chooses the path
	if errors.Is(err, fs.ErrExist) {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return &fs.PathError{Op: "open", Path: path, Err: syscall.EISDIR}
		}
		return nil
	} else if err != nil {
		return fmt.Errorf("creating the file: %w", err)
	}
	return f.Close()
}

func sqliteConnector(path, busy string, params url.Values) (driver.Connector, error) {
	params.Set("_busy_timeout", busy)
	params.Set("_foreign_keys", "1") // per connection, as SQLite wants it
	connector, err := sqlite.NewConnector(sqliteURI(path) + "?" + params.Encode())
	if err != nil {
		return nil, fmt.Errorf("reading the address of the database: %w", err)
	}
	return connector, nil
}

func sqlitePool(connector driver.Connector, conns int) *sqlx.DB {
	db := sqlx.NewDb(sql.OpenDB(connector), sqliteDriver)
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db
}

// sqliteURI names an absolute path so that no character of it is taken for a parameter.
func sqliteURI(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // C:/...
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// ErrInUse says that another process has the database.
var ErrInUse = errors.New("another session-writer uses this SQLite database: start one only, or use PostgreSQL")

// sqliteLock keeps other processes from the database. The lock is SQLite's own, on an empty file beside it: it works on every system and goes with
// the process.
type sqliteLock struct {
	path string
	db   *sqlx.DB // nil = not taken
	tx   *sqlx.Tx
}

// lockMS is how long a process waits for one that is ending.
const lockMS = "3000"

func (l *sqliteLock) take(ctx context.Context) error {
	if l.db != nil {
		return nil
	}
	if err := createFile(l.path); err != nil {
		return err
	}
	connector, err := sqliteConnector(l.path, lockMS, url.Values{"_txlock": {"exclusive"}, "_journal_mode": {"MEMORY"}})
	if err != nil {
		return err
	}
	db := sqlitePool(connector, 1)
	tx, err := db.BeginTxx(context.WithoutCancel(ctx), nil) // it lasts until release
	if e, ok := errors.AsType[*sqlite.Error](err); ok && e.Code()&0xff == sqlite3.SQLITE_BUSY {
		err = ErrInUse
	}
	if err != nil {
		return errors.Join(err, db.Close())
	}
	l.db, l.tx = db, tx
	return nil
}

func (l *sqliteLock) release() error {
	if l.db == nil {
		return nil
	}
	err := errors.Join(l.tx.Rollback(), l.db.Close())
	l.db, l.tx = nil, nil
	return err
}
