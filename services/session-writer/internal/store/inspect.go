package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/lib/pq"
	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
)

// Schema is how far the schema of a database is.
type Schema struct {
	Exists  bool  // there is a database; one of SQLite is made at the first start
	Version int64 // 0 = nothing was ever made in it
	Known   int64 // the newest version that this program knows
	Bytes   int64 // that it takes
}

// ErrUnsettled says that a SQLite database was left in the middle of something, so that it can't be read without writing to it.
var ErrUnsettled = errors.New("the database was not closed properly; the next start repairs that")

// Inspect reads the state of a database, of which it changes nothing: no file is made, no lock is kept, and whoever uses it at the time does not notice.
// No error shows the password of the address.
func Inspect(ctx context.Context, address string) (Schema, error) {
	if path, ok := strings.CutPrefix(address, sqlitePrefix); ok {
		return inspectSQLite(ctx, path)
	}
	return inspectPostgres(ctx, address)
}

func inspectSQLite(ctx context.Context, path string) (s Schema, err error) {
	if s.Known, err = newest("migrations/sqlite"); err != nil {
		return s, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return s, fmt.Errorf("finding the file of the database: %w", err)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, nil
	case err != nil:
		return s, err
	case !info.Mode().IsRegular():
		return s, errors.New("the database is no file")
	}
	s.Exists, s.Bytes = true, info.Size()
	if s.Bytes == 0 {
		return s, nil
	}
	how, err := unwritten(path)
	if err != nil {
		return s, err
	}
	for _, more := range []string{"-wal", "-shm"} {
		if info, err := os.Stat(path + more); err == nil {
			s.Bytes += info.Size()
		}
	}
	connector, err := sqlite.NewConnector(sqliteURI(path) + "?" + how.Encode())
	if err != nil {
		return s, fmt.Errorf("reading the address of the database: %w", err)
	}
	db := sql.OpenDB(connector)
	defer db.Close() //nolint:errcheck // it was only read
	s.Version, err = version(ctx, db, "SELECT count(*) FROM sqlite_master WHERE name = 'goose_db_version'")
	return s, err
}

// unwritten gives parameters with which SQLite writes neither to a database nor beside it. With a journal, somebody may be writing: then its index is read
// too. Without one nobody has the database open, since this program only knows that kind of journal.
func unwritten(path string) (url.Values, error) {
	there := func(more string) bool {
		_, err := os.Stat(path + more)
		return err == nil
	}
	switch {
	case !there("-wal"):
		return url.Values{"immutable": {"1"}, "mode": {"ro"}}, nil
	case !there("-shm"):
		return nil, ErrUnsettled
	}
	return url.Values{"mode": {"ro"}, "readonly_shm": {"1"}, "_busy_timeout": {"2000"}}, nil
}

func inspectPostgres(ctx context.Context, address string) (s Schema, err error) {
	if s.Known, err = newest("migrations/postgres"); err != nil {
		return s, err
	}
	u, err := url.Parse(address)
	if err != nil {
		return s, errors.New("the address of the database is not a valid URL") // the reason would quote it, and with it the password
	}
	connector, err := pq.NewConnector(address)
	if err != nil {
		return s, scrub(err, u)
	}
	db := sql.OpenDB(connector)
	defer db.Close() //nolint:errcheck // it was only read
	if err := db.PingContext(ctx); err != nil {
		return s, scrub(err, u)
	}
	s.Exists = true
	if err := db.QueryRowContext(ctx, "SELECT pg_database_size(current_database())").Scan(&s.Bytes); err != nil {
		return s, scrub(err, u)
	}
	if s.Version, err = version(ctx, db, "SELECT count(*) FROM pg_class WHERE oid = to_regclass('goose_db_version')"); err != nil {
		return s, scrub(err, u)
	}
	return s, nil
}

// version reads that of the schema. migrated is a question for whether there is a record of versions.
func version(ctx context.Context, db *sql.DB, migrated string) (v int64, err error) {
	var n int
	if err := db.QueryRowContext(ctx, migrated).Scan(&n); err != nil {
		return 0, fmt.Errorf("reading the schema: %w", err)
	}
	if n == 0 {
		return 0, nil
	}
	var last sql.NullInt64
	if err := db.QueryRowContext(ctx, "SELECT max(version_id) FROM goose_db_version WHERE is_applied").Scan(&last); err != nil {
		return 0, fmt.Errorf("reading the version of the schema: %w", err)
	}
	return last.Int64, nil
}

// newest is the highest version of the migrations in a directory.
func newest(dir string) (v int64, err error) {
	files, err := fs.ReadDir(migrations, dir)
	if err != nil {
		return 0, fmt.Errorf("reading migrations: %w", err)
	}
	for _, f := range files {
		n, err := goose.NumericComponent(f.Name())
		if err != nil {
			return 0, fmt.Errorf("reading migrations: %w", err)
		}
		v = max(v, n)
	}
	return v, nil
}
