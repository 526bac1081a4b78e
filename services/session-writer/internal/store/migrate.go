package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"math"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations
var migrations embed.FS

// Another process may hold the migration lock for its own migration; 5 minutes are enough for any.
const (
	lockPollSeconds = 1
	lockPolls       = 300
)

// ErrNewer says that a newer version of the program has changed the schema. Whoever wrote to it in the old way would lose data.
var ErrNewer = errors.New("the database has a newer schema")

// migrateSQLite must run under the setup lock.
func migrateSQLite(ctx context.Context, db *sql.DB, to int64) error {
	return migrate(ctx, db, to, goose.DialectSQLite3, "migrations/sqlite")
}

// latest stands for the schema of the program.
const latest = math.MaxInt64

func migratePostgres(ctx context.Context, db *sql.DB, to int64) error {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(lockPollSeconds, lockPolls))
	if err != nil {
		return fmt.Errorf("preparing the migration lock: %w", err)
	}
	return migrate(ctx, db, to, goose.DialectPostgres, "migrations/postgres", goose.WithSessionLocker(locker))
}

// migrate brings a database to a schema, unless it has a later one. 0 only looks at what is there.
func migrate(ctx context.Context, db *sql.DB, to int64, dialect goose.Dialect, dir string, opts ...goose.ProviderOption) error {
	files, err := fs.Sub(migrations, dir)
	if err != nil {
		return fmt.Errorf("reading migrations: %w", err)
	}
	provider, err := goose.NewProvider(dialect, db, files, append(opts, goose.WithDisableGlobalRegistry(true))...)
	if err != nil {
		return fmt.Errorf("reading migrations: %w", err)
	}
	if to > 0 {
		if _, err := provider.UpTo(ctx, to); err != nil {
			return fmt.Errorf("migrating: %w", err)
		}
	}
	current, known, err := provider.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("reading the version of the schema: %w", err)
	}
	if to != latest {
		current = max(current, to)
	}
	if current > known { // nothing was migrated then
		return fmt.Errorf("%w: it is %d, and this version knows schemas up to %d. Start the version that wrote it, or restore a backup", ErrNewer, current, known)
	}
	return nil
}
