package processtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// built are the binaries that the tests of a package share.
var built struct {
	sync.Mutex

	dir  string
	done map[string]bool // by package
}

// Build makes the binaries of some packages and gives their directory, which Remove ends.
func Build(tb testing.TB, packages ...string) string {
	tb.Helper()
	built.Lock()
	defer built.Unlock()
	if built.dir == "" {
		dir, err := os.MkdirTemp("", "hydrallm-binaries-") //nolint:usetesting // it outlives the test
		require.NoError(tb, err)
		built.dir, built.done = dir, map[string]bool{}
	}
	packages = slices.DeleteFunc(packages, func(p string) bool { return built.done[p] })
	if len(packages) == 0 {
		return built.dir
	}
	args := append([]string{"build", "-o", built.dir + string(filepath.Separator)}, packages...)
	out, err := exec.CommandContext(tb.Context(), "go", args...).CombinedOutput()
	require.NoError(tb, err, "%s", out)
	for _, p := range packages {
		built.done[p] = true
	}
	return built.dir
}

// Services makes the binaries of some services and gives their directory.
func Services(tb testing.TB, names ...string) string {
	tb.Helper()
	packages := make([]string, len(names))
	for i, name := range names {
		packages[i] = "hydrallm/services/" + name + "/cmd/" + name
	}
	return Build(tb, packages...)
}

// AllInOne gives the binary of the whole gateway.
func AllInOne(tb testing.TB) string {
	tb.Helper()
	return filepath.Join(Services(tb, "hydrallm"), "hydrallm")
}

// Remove removes what Build made. A package that builds calls it in its TestMain.
func Remove() error {
	if built.dir == "" {
		return nil
	}
	return os.RemoveAll(built.dir)
}
