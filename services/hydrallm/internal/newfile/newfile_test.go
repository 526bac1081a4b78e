package newfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/hydrallm/internal/newfile"
)

// a file takes the place of another one only when that is wanted, and nothing else is left behind.
func TestWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "config.yaml")
	require.NoError(t, newfile.Write(path, []byte("one"), 0o640, false))
	require.ErrorIs(t, newfile.Write(path, []byte("two"), 0o640, false), newfile.ErrExists)
	content(t, path, "one")
	require.NoError(t, newfile.Write(path, []byte("three"), 0o600, true))
	content(t, path, "three")
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.ErrorIs(t, newfile.Free(path), newfile.ErrExists)
	require.NoError(t, newfile.Free(filepath.Join(dir, "other")))

	link := filepath.Join(dir, "link") // leads nowhere, and is there
	require.NoError(t, os.Symlink(filepath.Join(dir, "nowhere"), link))
	require.ErrorIs(t, newfile.Write(link, []byte("four"), 0o600, false), newfile.ErrExists)

	require.Error(t, newfile.Write(filepath.Join(dir, "none", "config.yaml"), nil, 0o600, false))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 2)
}

func content(t *testing.T, path, want string) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(data))
}

// of several that make one file the first one has it, and nothing is left of the others, nor of one that is given up.
func TestCreate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "backup")
	var files []*newfile.File
	for range 3 {
		f, err := newfile.Create(path, 0o600, false)
		require.NoError(t, err)
		files = append(files, f)
	}
	for i, f := range files {
		_, err := f.Write([]byte{'0' + byte(i)})
		require.NoError(t, err)
	}
	require.NoError(t, files[2].Discard())
	require.NoError(t, files[1].Commit())
	require.ErrorIs(t, files[0].Commit(), newfile.ErrExists)
	content(t, path, "1")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)
}
