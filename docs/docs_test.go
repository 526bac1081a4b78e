package docs_test

import (
	"io/fs"
	"os"
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/docs"
)

// each document and each picture of this directory is in the program.
func TestFilesHaveAllDocuments(t *testing.T) {
	t.Parallel()
	found := 0
	require.NoError(t, fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		if ext := path.Ext(name); err != nil || d.IsDir() || ext != ".md" && ext != ".png" {
			return err
		}
		found++
		_, err = fs.Stat(docs.Files, name)
		return err
	}), "docs.go names the folders")
	require.Greater(t, found, 20)
}
