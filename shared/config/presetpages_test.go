package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// each well-known provider has a page, with its address and the variable of its keys, and no page is of anything else.
func TestPresetsHavePages(t *testing.T) {
	t.Parallel()
	const dir = "../../docs/providers"
	index := mustRead(t, filepath.Join(dir, "index.md"))
	pages, err := filepath.Glob(filepath.Join(dir, "*.md"))
	require.NoError(t, err)
	require.Len(t, pages, len(presets)+1)
	for _, id := range presetIDs() {
		p := presets[id]
		page := mustRead(t, filepath.Join(dir, id+".md"))
		require.Contains(t, page, "`"+p.urls[p.dialect]+"`", id)
		require.Contains(t, index, "]("+id+".md)")
		if p.pooled {
			for _, name := range append([]string{p.env + "_API_KEY"}, p.keys...) {
				require.Contains(t, page, "`"+name+"`", id)
			}
		}
		require.True(t, strings.Contains(page, "## Limits") && strings.Contains(page, "## What the gateway does for it"), id)
	}
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}
