package pgtest

import (
	"database/sql"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/machine"
)

func TestMain(m *testing.M) { Main(m) }

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("postgres", dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func TestDatabasesAreSeparateAndGoWithTheTest(t *testing.T) { //nolint:tparallel // the end of its part is what the rest looks at
	t.Parallel()
	var used string
	t.Run("use", func(t *testing.T) {
		first, second := open(t, New(t)), open(t, New(t))
		_, err := first.ExecContext(t.Context(), "CREATE TABLE here (id INT)")
		require.NoError(t, err)
		_, err = second.ExecContext(t.Context(), "SELECT * FROM here")
		require.ErrorContains(t, err, "does not exist")
		require.NoError(t, first.QueryRowContext(t.Context(), "SELECT current_database()").Scan(&used))
	})
	var left int
	rest := open(t, New(t))
	require.NoError(t, rest.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_database WHERE datname = $1", used).Scan(&left))
	require.Zero(t, left)
}

func TestPasswordIsChecked(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(New(t))
	require.NoError(t, err)
	u.User = url.UserPassword(u.User.Username(), "wrong")
	require.ErrorContains(t, open(t, u.String()).PingContext(t.Context()), "password authentication failed")
}

func TestStoppedServerLeavesNothingBehind(t *testing.T) {
	t.Setenv("TMPDIR", sharedTemp(t))
	bin, err := localBinaries()
	if err != nil {
		machine.Missing(t, "PostgreSQL binaries", err)
	}
	srv, err := startLocal(bin)
	require.NoError(t, err)
	require.NoError(t, srv.ready())
	require.NoError(t, srv.stop())
	_, err = net.Dial("tcp", srv.admin.Host)
	require.Error(t, err)
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// sharedTemp is a directory that another user can enter, which t.TempDir is not.
func sharedTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pgtest-tmp") //nolint:usetesting // see above
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o777))
	return dir
}

func TestServerIsNamedByTheEnvironment(t *testing.T) {
	t.Parallel()
	srv, err := named("postgres://u:secret-word@127.0.0.1:1/postgres?sslmode=disable&connect_timeout=2")
	require.Nil(t, srv)
	require.ErrorContains(t, err, AddressEnv)
	require.NotContains(t, err.Error(), "secret-word")

	_, err = named("postgres://u:secret-word@host:port:port/%zz")
	require.ErrorContains(t, err, "not a postgres:// address")
	require.NotContains(t, err.Error(), "secret-word")
}

func TestServerIsStoppedAndStarted(t *testing.T) {
	t.Parallel()
	s := NewServer(t)
	db := open(t, s.Address())
	_, err := db.ExecContext(t.Context(), "CREATE TABLE here (id INT)")
	require.NoError(t, err)
	for i := range 2 {
		s.Stop()
		require.Error(t, db.PingContext(t.Context()))
		s.Start()
		_, err = db.ExecContext(t.Context(), "INSERT INTO here VALUES (1)")
		require.NoError(t, err)
		var n int
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM here").Scan(&n))
		require.Equal(t, i+1, n)
	}
}
