// Package machine finds what tests need of the machine it runs on. A test that cannot have it is skipped with one line that says so, or fails if
// HYDRALLM_REQUIRE_SERVICES=1 is set.
package machine

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// RequireEnv is the variable that makes it an error when something is missing.
const RequireEnv = "HYDRALLM_REQUIRE_SERVICES"

// systemDirs are where daemons are, which the PATH of most users lacks.
var systemDirs = []string{"/usr/local/sbin", "/usr/sbin"}

// Program gives the path of a program, and does not return when there is none.
func Program(tb testing.TB, name string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	for _, dir := range systemDirs {
		if path, dirErr := exec.LookPath(filepath.Join(dir, name)); dirErr == nil {
			return path
		}
	}
	Missing(tb, name, err)
	return ""
}

// Missing ends a test that cannot have what it needs.
func Missing(tb testing.TB, what string, err error) {
	tb.Helper()
	if os.Getenv(RequireEnv) == "1" {
		tb.Fatalf("no %s for tests: %v", what, err)
	}
	tb.Skipf("no %s for tests: %v", what, err)
}
