package store

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"
)

// Store is a database. It is safe for concurrent use.
type Store struct {
	write   *sqlx.DB
	read    *sqlx.DB // the same as write on PostgreSQL
	ids     *ids
	project string       // of new sessions
	ready   *atomic.Bool // the gate of all connections

	prepared *prepared // nil on PostgreSQL

	migrateTo func(ctx context.Context, schema int64) error
	lock      *sqliteLock // nil on PostgreSQL
}

const (
	sqlitePrefix = "sqlite:"
	readers      = 4  // connections that read a SQLite database at the same time
	pgConns      = 16 // to PostgreSQL: more than a server of two cores has work for at once, since a transaction of a turn waits between its statements
)

// New makes a store for the database at address: "sqlite:" and a path, relative to the working directory, or a postgres:// URL. Until Prepare has
// succeeded each use of it fails with ErrNotReady. New sessions belong to a project, "" for the default one. No error of a store shows the password of the address. The caller must Close it.
func New(address, project string) (*Store, error) {
	s, err := newStore(address)
	if err == nil {
		s.project = cmp.Or(project, defaultProject)
	}
	return s, err
}

func newStore(address string) (*Store, error) {
	switch {
	case strings.HasPrefix(address, sqlitePrefix):
		return newSQLite(strings.TrimPrefix(address, sqlitePrefix))
	case strings.HasPrefix(address, "postgres://"), strings.HasPrefix(address, "postgresql://"):
		return newPostgres(address)
	}
	return nil, errors.New("database address is neither sqlite:PATH nor a postgres:// address")
}

// Open is New and Prepare, for the default project.
func Open(ctx context.Context, address string) (*Store, error) {
	s, err := New(address, "")
	if err != nil {
		return nil, err
	}
	if err := s.Prepare(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Prepare brings the schema of the database up to date and lets it be used from then on. It may be called again after it has failed, see Hopeless. A SQLite
// database, whose directories and file are created for the owner only, belongs to one store at a time, from here until Close; of PostgreSQL several
// processes may use one.
func (s *Store) Prepare(ctx context.Context) error {
	if err := s.migrateTo(ctx, latest); err != nil {
		return fmt.Errorf("preparing the database: %w", err)
	}
	s.ready.Store(true)
	return nil
}

// reachLimit bounds the first connection to a database.
const reachLimit = 5 * time.Second

// reach says whether there is a database, without which nothing can be migrated. Migrating itself may take long.
func reach(ctx context.Context, db *sqlx.DB) error {
	ctx, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	return db.PingContext(ctx)
}

// ErrNotReady says that the database was not prepared yet.
var ErrNotReady = errors.New("the database is not there yet")

// gate gives no connections before it is open, so that nobody writes to a schema that is not the one of this program.
type gate struct {
	driver.Connector

	open *atomic.Bool
}

// Connect implements driver.Connector.
func (g gate) Connect(ctx context.Context) (driver.Conn, error) {
	if !g.open.Load() {
		return nil, ErrNotReady
	}
	return g.Connector.Connect(ctx)
}

// Close waits for the statements under way and closes the database.
func (s *Store) Close() error {
	err := s.write.Close()
	if s.read != s.write {
		err = errors.Join(err, s.read.Close())
	}
	if s.lock != nil {
		err = errors.Join(err, s.lock.release())
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
