// Package configtest gives configurations to tests, apart from the environment of the process.
package configtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/config"
)

// Variables looks up environment variables in vars alone, which may be nil.
func Variables(vars map[string]string) func(name string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

// Environment gives variables and a new working directory with files.
func Environment(tb testing.TB, vars, files map[string]string) config.Environment {
	tb.Helper()
	dir := tb.TempDir()
	for name, text := range files {
		require.NoError(tb, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return config.Environment{Dir: dir, Lookup: Variables(vars)}
}

// Parse reads text as a configuration file without variables. It fails the test if the text has errors; warnings do not count.
func Parse(tb testing.TB, text string) *config.Config {
	tb.Helper()
	c, _, err := config.Environment{Lookup: Variables(nil)}.Parse("config.yaml", []byte(text))
	require.NoError(tb, err)
	return c
}
