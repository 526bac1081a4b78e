package doctest_test

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// How codes of errors are written in the source.
var (
	codeOf   = regexp.MustCompile(`\bCode:\s+"([a-z_]+)"|\b[cC]ode(?:[A-Z]\w*)?\s*=\s*"([a-z_]+)"|\.Code, .* = (?:[^"\n]*, )?"([a-z_]+)", |\br\.fail\("([a-z_]+)", `)
	kindOf   = regexp.MustCompile(`(?m)^\s+\w+\s+Kind = "([a-z_]+)"`)
	codeRow  = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|")
	kindFile = "shared/fault/fault.go"
)

// each code that a client can get has its line in the troubleshooting, and no line is of a code that there is not.
func TestCodesAreExplained(t *testing.T) {
	t.Parallel()
	codes := map[string]bool{}
	kinds, err := fs.ReadFile(repository(), kindFile)
	require.NoError(t, err)
	for _, m := range kindOf.FindAllStringSubmatch(string(kinds), -1) {
		codes[m[1]] = true
	}
	require.Greater(t, len(codes), 15)
	for _, top := range []string{"services/ingress", "services/dispatcher", "services/session-writer", "services/analyzer", "services/enricher", "shared/openai", "shared/surface"} {
		require.NoError(t, fs.WalkDir(repository(), top, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			text, err := fs.ReadFile(repository(), name)
			for _, m := range codeOf.FindAllStringSubmatch(string(text), -1) {
				codes[strings.Join(m[1:], "")] = true
			}
			return err
		}))
	}
	page, err := fs.ReadFile(repository(), "docs/troubleshooting.md")
	require.NoError(t, err)
	explained := map[string]bool{}
	for _, m := range codeRow.FindAllStringSubmatch(string(page), -1) {
		require.False(t, explained[m[1]], "%s is explained twice", m[1])
		explained[m[1]] = true
	}
	require.Equal(t, codes, explained)
}
