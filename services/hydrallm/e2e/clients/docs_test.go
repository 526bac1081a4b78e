//go:build e2e

package clients

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/hydrallm/internal/doctest"
	"hydrallm/shared/testkit/machine"
)

// runDocuments runs what the documents show in Python and JavaScript, with the clients that are installed: the blocks of a page are one program.
func runDocuments(t *testing.T, url string) {
	t.Helper()
	root := os.DirFS("../../../..")
	names, err := doctest.Pages(root)
	require.NoError(t, err)
	for _, name := range names {
		blocks, err := doctest.Read(root, name)
		require.NoError(t, err)
		programs := map[string]string{}
		for _, b := range blocks {
			if b.How == doctest.ByLanguage {
				programs[b.Lang] += b.Text
			}
		}
		ours := strings.NewReplacer("http://127.0.0.1:8100", url, "http://127.0.0.1:8000", url, `"KEY"`, `"`+clientKey+`"`, `"unused"`, `"`+clientKey+`"`)
		if text := programs[doctest.Python]; text != "" {
			t.Run(name+" in Python", func(t *testing.T) {
				file := filepath.Join(scratch(t), "page.py")
				require.NoError(t, os.WriteFile(file, []byte(ours.Replace(text)), 0o600))
				t.Log(run(t, filepath.Dir(file), []string{"PYTHONPATH=" + pip.Dir(t), "PYTHONDONTWRITEBYTECODE=1"}, machine.Program(t, "python3"), file))
			})
		}
		if text := programs[doctest.JavaScript]; text != "" {
			t.Run(name+" in JavaScript", func(t *testing.T) {
				dir := scratch(t)
				require.NoError(t, os.Symlink(filepath.Join(npm.Dir(t), "node_modules"), filepath.Join(dir, "node_modules")))
				require.NoError(t, os.WriteFile(filepath.Join(dir, "page.mjs"), []byte(ours.Replace(text)), 0o600))
				t.Log(run(t, dir, nil, nodeForClients(t), "page.mjs"))
			})
		}
	}
}
