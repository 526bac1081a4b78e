package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
)

func canceled(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx, cancel
}

// R-300, SES-05: 50 writers at once, in two processes' worth of pools, beside a reader that does not end; nobody sees a locked database.
func TestParallelWritersBesideALongReader(t *testing.T) {
	t.Parallel()
	address := sqliteAddress(t)
	stores := []*Store{openStore(t, address), openBeside(t, address)}
	_, err := stores[0].RecordUsage(t.Context(), usages(200))
	require.NoError(t, err)

	rows, err := stores[0].read.QueryxContext(t.Context(), `SELECT request_id FROM usage_metrics`)
	require.NoError(t, err)
	require.True(t, rows.Next(), "the reader holds its snapshot from here")

	const writers, batches = 50, 8
	var wg sync.WaitGroup
	errs := make(chan error, writers*batches*3)
	for w := range writers {
		wg.Go(func() {
			s := stores[w%len(stores)]
			for b := range batches {
				_, err := s.RecordUsage(t.Context(), []contract.RequestRecord{usage(fmt.Sprintf("w%d-%d", w, b)), usage("shared")})
				_, logErr := s.RecordLogs(t.Context(), []contract.Log{event(w*batches + b)})
				_, readErr := s.Stats(t.Context())
				errs <- errors.Join(err, logErr, readErr)
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	seen := 1
	for rows.Next() {
		seen++
	}
	require.NoError(t, rows.Err())
	require.NoError(t, rows.Close()) //nolint:sqlclosecheck // before the rows are counted through the same pool
	require.Equal(t, 200, seen, "the long reader saw its own snapshot")
	require.Equal(t, 200+writers*batches+1, countRows(t, stores[1], "usage_metrics"))
	require.Equal(t, int64(200+writers*batches+1), statsOf(t, stores[1]).TotalRequests)
	require.Equal(t, writers*batches, countRows(t, stores[1], "system_logs"))
}

func TestSQLiteSettingsHoldOnEveryConnection(t *testing.T) {
	t.Parallel()
	s := openStore(t, sqliteAddress(t))
	want := map[string]string{"foreign_keys": "1", "busy_timeout": busyMS, "journal_mode": "wal"}
	for range readers { // held open, so that each is another one
		conn, err := s.read.Connx(t.Context())
		require.NoError(t, err)
		defer func() { require.NoError(t, conn.Close()) }()
		for pragma, value := range want {
			var got string
			require.NoError(t, conn.GetContext(t.Context(), &got, "PRAGMA "+pragma))
			require.Equal(t, value, got, pragma)
		}
		_, err = conn.ExecContext(t.Context(), `DELETE FROM system_logs`)
		require.ErrorContains(t, err, "readonly")
	}
	want["synchronous"], want["temp_store"], want["wal_autocheckpoint"] = "1", "2", "4000"
	for pragma, value := range want {
		var got string
		require.NoError(t, s.write.GetContext(t.Context(), &got, "PRAGMA "+pragma))
		require.Equal(t, value, got, pragma)
	}
}

func TestSQLiteFilesBelongToTheOwner(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no file modes")
	}
	dir := filepath.Join(t.TempDir(), "new", "data 100%?#&")
	s := openStore(t, sqlitePrefix+filepath.Join(dir, "hydra llm.db"))
	_, err := s.RecordUsage(t.Context(), []contract.RequestRecord{usage("r1")})
	require.NoError(t, err)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	names := []string{}
	for _, f := range files {
		info, err := f.Info()
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), f.Name())
		names = append(names, f.Name())
	}
	require.Equal(t, []string{"hydra llm.db", "hydra llm.db-lock", "hydra llm.db-shm", "hydra llm.db-wal"}, names)
}

func TestSQLitePathIsRelativeToTheWorkingDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	openStore(t, "sqlite:data/hydrallm.db")
	require.FileExists(t, filepath.Join("data", "hydrallm.db"))
}

// SES-05: transactions that read and then write, in two processes' worth of pools, lose no update and are never refused.
func TestReadThenWriteTransactions(t *testing.T) {
	t.Parallel()
	address := sqliteAddress(t)
	stores := []*Store{openStore(t, address), openBeside(t, address)}
	exec(t, stores[0], `INSERT INTO system_settings (key, value, updated_at) VALUES ('n', '0', '')`)
	const writers = 50
	var wg sync.WaitGroup
	errs := make(chan error, writers)
	for w := range writers {
		wg.Go(func() {
			errs <- stores[w%len(stores)].inTx(t.Context(), func(tx *sqlx.Tx) error {
				var n int
				if err := tx.GetContext(t.Context(), &n, `SELECT CAST(value AS INTEGER) FROM system_settings`); err != nil {
					return err
				}
				_, err := tx.ExecContext(t.Context(), `UPDATE system_settings SET value = CAST(? AS TEXT)`, n+1)
				return err
			})
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	var n int
	require.NoError(t, stores[0].read.GetContext(t.Context(), &n, `SELECT CAST(value AS INTEGER) FROM system_settings`))
	require.Equal(t, writers, n)
}

func TestFailedTransactionLeavesNothing(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		cause := errors.New("no")
		err := s.inTx(t.Context(), func(tx *sqlx.Tx) error {
			_, err := tx.ExecContext(t.Context(), tx.Rebind(`INSERT INTO system_settings (key, value, updated_at) VALUES (?, ?, ?)`), "k", "1", Time{at})
			require.NoError(t, err)
			return cause
		})
		require.ErrorIs(t, err, cause)
		require.Zero(t, countRows(t, s, "system_settings"))
	})
}

// openBeside is a store as another process has it that came by the lock, on a database that is prepared.
func openBeside(t *testing.T, address string) *Store {
	t.Helper()
	s, err := New(address, "")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	s.ready.Store(true)
	return s
}

// a SQLite database belongs to one store at a time, also in one process; the next one gets it after the end of the first.
func TestSQLiteDatabaseInUse(t *testing.T) {
	t.Parallel()
	address := sqliteAddress(t)
	first := openStore(t, address)
	for range 2 {
		_, err := Open(t.Context(), address)
		require.ErrorIs(t, err, ErrInUse)
		require.True(t, Hopeless(err))
	}
	_, err := first.RecordUsage(t.Context(), usages(1))
	require.NoError(t, err)
	require.NoError(t, first.Close())
	openStore(t, address)
}
