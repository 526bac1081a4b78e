package sessionwriter

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/machine"
)

// a project is its git repository, whatever its path is called and wherever in it the gateway is started; outside of one there is none.
func TestProject(t *testing.T) {
	t.Parallel()
	git := machine.Program(t, "git")
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	top := filepath.Join(root, "한국어 \u00e9 repository")
	below := filepath.Join(top, "a", "b")
	require.NoError(t, os.MkdirAll(below, 0o700))
	out, err := exec.CommandContext(t.Context(), git, "init", "--quiet", top).CombinedOutput()
	require.NoError(t, err, "%s", out)
	sum := sha256.Sum256([]byte(top))
	want := hex.EncodeToString(sum[:])[:12]
	require.Equal(t, want, projectOf(t.Context(), top))
	require.Equal(t, want, projectOf(t.Context(), below))
	require.Empty(t, projectOf(t.Context(), root))
	require.Empty(t, projectOf(t.Context(), filepath.Join(root, "nowhere")))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.Empty(t, projectOf(ended, top))
}
