package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
)

// contents reads a directory, so that a change of any file shows.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), "-shm") { // what readers in this process share with the writer: where they read, and no data
			all[e.Name()] = ""
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		all[e.Name()] = string(data)
	}
	return all
}

// copyTo makes what a process leaves that is killed.
func copyTo(t *testing.T, from, to, except string) string {
	t.Helper()
	entries, err := os.ReadDir(from)
	require.NoError(t, err)
	for _, e := range entries {
		if e.Name() == except {
			continue
		}
		data, err := os.ReadFile(filepath.Join(from, e.Name()))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(to, e.Name()), data, 0o600))
	}
	return sqlitePrefix + filepath.Join(to, "inspected.db")
}

// a look at a SQLite database writes nothing, whatever state the database is in.
func TestInspectSQLite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "inspected.db")
	look := func(address string) (Schema, error) {
		t.Helper()
		at := filepath.Dir(strings.TrimPrefix(address, sqlitePrefix))
		before := contents(t, at)
		s, err := Inspect(t.Context(), address)
		require.Equal(t, before, contents(t, at), "nothing was written")
		return s, err
	}
	address := sqlitePrefix + path
	s, err := look(address)
	require.NoError(t, err)
	require.False(t, s.Exists)
	known := s.Known
	require.Positive(t, known)

	require.NoError(t, os.WriteFile(path, nil, 0o600))
	s, err = look(address)
	require.NoError(t, err)
	require.Equal(t, Schema{Exists: true, Known: known}, s)
	require.NoError(t, os.Remove(path))

	used, err := Open(t.Context(), address)
	require.NoError(t, err)
	_, err = used.RecordUsage(t.Context(), []contract.RequestRecord{usage("r")})
	require.NoError(t, err)
	s, err = look(address) // while a gateway uses it
	require.NoError(t, err)
	require.Equal(t, known, s.Version)
	require.Positive(t, s.Bytes)

	s, err = look(copyTo(t, dir, t.TempDir(), ""))
	require.NoError(t, err)
	require.Equal(t, known, s.Version)
	_, err = look(copyTo(t, dir, t.TempDir(), "inspected.db-shm"))
	require.ErrorIs(t, err, ErrUnsettled)

	require.NoError(t, used.Close())
	s, err = look(address)
	require.NoError(t, err)
	require.Equal(t, known, s.Version)

	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("no database ", 1000)), 0o600))
	_, err = look(address)
	require.Error(t, err)
	_, err = Inspect(t.Context(), sqlitePrefix+dir)
	require.Error(t, err)
}

// a database that was used knows the newest schema.
func TestInspect(t *testing.T) {
	t.Parallel()
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			address := b.address(t)
			openStore(t, address)
			s, err := Inspect(t.Context(), address)
			require.NoError(t, err)
			require.True(t, s.Exists)
			require.Equal(t, s.Known, s.Version)
			require.Positive(t, s.Bytes)
		})
	}
}

// an address of PostgreSQL shows no password in an error.
func TestInspectPostgres(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"postgres://me:a-secret@127.0.0.1:1/db", "postgres://me:a-secret@127.0.0.1:x/db"} {
		_, err := Inspect(t.Context(), address)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "a-secret")
	}
}
