//go:build e2e

package clients

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/install"
	"hydrallm/shared/testkit/machine"
)

var npm, pip = install.NPM("node"), install.PIP("python")

// runLimit is for the scenarios of all clients of a language, or for one program.
const runLimit = 10 * time.Minute

// scratch gives a directory. Programs may leave a process behind that still writes into it, so that nothing depends on its removal.
func scratch(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hydrallm-clients-") //nolint:usetesting // that of the test must be removable
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// run runs a program in a directory, with nothing of the environment but what it needs, and gives what it printed.
func run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + scratch(t)}, env...)
	cmd.WaitDelay = time.Second
	began := time.Now()
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: %s", name, out)
	t.Logf("%s: %s", filepath.Base(name), time.Since(began).Round(100*time.Millisecond))
	return strings.TrimSpace(string(out))
}

// oldestNode is the major version that the clients of npm want at least, as their packages say (engines).
const oldestNode = 20

// nodeForClients gives a Node that is new enough, or ends a test that can't have it.
func nodeForClients(t *testing.T) string {
	t.Helper()
	node := machine.Program(t, "node")
	version := run(t, ".", nil, node, "--version")
	var major int
	_, err := fmt.Sscanf(version, "v%d.", &major)
	require.NoError(t, err, version)
	if major < oldestNode {
		machine.Missing(t, "Node", fmt.Errorf("the clients want version %d or newer, this is %s", oldestNode, version))
	}
	return node
}

// SDKs, frameworks and coding agents work as they are installed, with another base address and key.
func TestClients(t *testing.T) {
	url := startGateway(t)
	env := []string{"GATEWAY_URL=" + url, "GATEWAY_KEY=" + clientKey}

	var installing sync.WaitGroup // both at once
	defer installing.Wait()
	installing.Go(pip.Prepare)

	t.Run("documents", func(t *testing.T) { runDocuments(t, url) })

	t.Run("npm", func(t *testing.T) {
		node := nodeForClients(t)
		dir := scratch(t)
		require.NoError(t, os.Symlink(filepath.Join(npm.Dir(t), "node_modules"), filepath.Join(dir, "node_modules")))
		const file = "clients.test.mjs"
		text, err := os.ReadFile(filepath.Join("node", file))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), text, 0o600))
		t.Log(run(t, dir, env, node, "--test", "--test-reporter", "spec", file))
	})

	t.Run("pip", func(t *testing.T) {
		path := "PYTHONPATH=" + pip.Dir(t)
		file, err := filepath.Abs("python/clients.py")
		require.NoError(t, err)
		out := run(t, scratch(t), append(env, path, "PYTHONDONTWRITEBYTECODE=1"), machine.Program(t, "python3"), file)
		require.Equal(t, 6, strings.Count(out, "ok "), out)
	})

	t.Run("Claude Code", func(t *testing.T) {
		program := filepath.Join(npm.Dir(t), "node_modules/@anthropic-ai/claude-code/cli-wrapper.cjs")
		dir := scratch(t)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("the lamp is green"), 0o600))
		out := run(t, dir, []string{
			"ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_AUTH_TOKEN=" + clientKey, "ANTHROPIC_MODEL=demo", "ANTHROPIC_SMALL_FAST_MODEL=demo",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1",
		}, nodeForClients(t), program, "-p", "--permission-mode", "acceptEdits",
			`call Read {"file_path": "`+dir+`/a.txt"}`+"\n"+`then call Write {"file_path": "`+dir+`/b.txt", "content": "copied"}`+"\nthen say All done.")
		require.Equal(t, "All done.", out)
		text, err := os.ReadFile(filepath.Join(dir, "b.txt"))
		require.NoError(t, err)
		require.Equal(t, "copied", string(text))
	})

	t.Run("Codex", func(t *testing.T) {
		program := filepath.Join(npm.Dir(t), "node_modules/@openai/codex/bin/codex.js")
		dir, home := scratch(t), scratch(t)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("the lamp is green"), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(home, "config.toml"), []byte(`
model = "demo"
model_provider = "gateway"
[model_providers.gateway]
name = "gateway"
base_url = "`+url+`/v1"
env_key = "GATEWAY_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
`), 0o600))
		out := run(t, dir, append(env, "CODEX_HOME="+home), nodeForClients(t), program, "exec", "--skip-git-repo-check", "--sandbox", "danger-full-access",
			"call exec_command {\"cmd\": \"cp a.txt b.txt && cat b.txt\"}\nthen say All done.")
		require.True(t, strings.HasSuffix(out, "All done."), out)
		text, err := os.ReadFile(filepath.Join(dir, "b.txt"))
		require.NoError(t, err)
		require.Equal(t, "the lamp is green", string(text))
	})
}
