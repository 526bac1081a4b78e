package doctest_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/stretchr/testify/require"

	"hydrallm/services/hydrallm/internal/doctest"
	"hydrallm/shared/config"
)

func repository() fs.FS { return os.DirFS("../../../..") }

func pages(t *testing.T) []string {
	t.Helper()
	names, err := doctest.Pages(repository())
	require.NoError(t, err)
	require.NotEmpty(t, names)
	return names
}

// each block of the README and the documents is run, checked, tried by a test that exists, or says why it is not; those are listed.
func TestBlocksOfTheRepository(t *testing.T) {
	t.Parallel()
	tests := testNames(t)
	for _, page := range pages(t) {
		blocks, err := doctest.Read(repository(), page)
		if err != nil {
			t.Error(err)
		}
		for _, b := range blocks {
			if b.Lang == doctest.TOML {
				_, err := toml.Decode(b.Text, &map[string]any{})
				require.NoError(t, err, "%s: this is no TOML", b.Place())
			}
			switch {
			case b.How == doctest.Untested:
				t.Logf("untested: %s: %s", b.Place(), b.Value)
			case b.How == doctest.Tested:
				require.Contains(t, tests, "func "+b.Value+"(", b.Place())
			case b.Lang == doctest.JSON:
				require.True(t, json.Valid([]byte(b.Text)), "%s: this is no JSON", b.Place())
			case b.Lang == doctest.YAML && (b.How == doctest.ByLanguage || path.Base(b.Value) == "config.yaml"):
				loads(t, &b)
			}
		}
	}
}

// loads has the gateway read a configuration, with something in each variable that it names.
func loads(t *testing.T, b *doctest.Block) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(b.Text), 0o600))
	_, _, err := config.Load(config.Environment{Dir: dir, Lookup: func(name string) (string, bool) {
		if strings.Contains(b.Text, "${"+name+"}") || strings.Contains(b.Text, "${"+name+":") {
			return "value-of-the-test", true
		}
		return "", false
	}})
	require.NoError(t, err, b.Place())
}

// testNames is the text of all files of tests.
func testNames(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, top := range []string{"services", "shared", "deploy"} {
		require.NoError(t, fs.WalkDir(repository(), top, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, "_test.go") {
				return err
			}
			text, err := fs.ReadFile(repository(), name)
			all.Write(text)
			return err
		}))
	}
	return all.String()
}

var link = regexp.MustCompile(`\]\(([^)\s#]+)(?:#[^)\s]*)?\)`)

// whoever begins with the README or the index comes to each page.
func TestEveryPageIsLinked(t *testing.T) {
	t.Parallel()
	reached := map[string]bool{}
	queue := []string{"README.md", "docs/index.md"}
	for len(queue) > 0 {
		page := queue[0]
		queue = queue[1:]
		if reached[page] {
			continue
		}
		reached[page] = true
		text, err := fs.ReadFile(repository(), page)
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			target := path.Join(path.Dir(page), m[1])
			if info, err := fs.Stat(repository(), target); err == nil && info.IsDir() { // a link to a folder is one to all that is in it
				names, err := fs.Glob(repository(), target+"/*.md")
				require.NoError(t, err)
				queue = append(queue, names...)
			} else if err == nil && path.Ext(target) == ".md" {
				queue = append(queue, target)
			}
		}
	}
	for _, page := range pages(t) {
		require.True(t, reached[page], "nothing links to %s: docs/index.md has to", page)
	}
}
