//go:build unix

package toolinstall_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/ingress/internal/toolinstall"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// machine is a machine whose programs are scripts that note how they are called.
type machine struct {
	t   *testing.T
	dir string
}

func newMachine(t *testing.T) machine {
	t.Helper()
	return machine{t, t.TempDir()}
}

// program makes one. The script finds its notes in $NOTES; all it sees of the environment is what an installer passes.
func (m machine) program(name, script string) {
	m.t.Helper()
	text := "#!/bin/sh\nPATH=/usr/bin:/bin\nNOTES=" + m.dir + "/notes\necho \"" + name + " $*\" >>$NOTES\nenv >>" + m.dir + "/env\n" + script + "\n"
	require.NoError(m.t, os.WriteFile(filepath.Join(m.dir, name), []byte(text), 0o700))
}

func (m machine) read(name string) string {
	m.t.Helper()
	text, err := os.ReadFile(filepath.Join(m.dir, name))
	if err != nil {
		require.ErrorIs(m.t, err, os.ErrNotExist)
	}
	return string(text)
}

func (m machine) installer() *toolinstall.Installer {
	return toolinstall.New([]string{
		"PATH=" + m.dir, "HOME=" + m.dir, "GROQ_API_KEY=a-secret", "ADMIN_API_KEY=a-secret", "npm_config_registry=http://r/", "npm_config__authToken=a-secret",
	}, "http://127.0.0.1:8100")
}

const integrity = `if [ "$1" = view ]; then case "$2" in
opencode-ai@1.18.33) echo sha512-58P1ffLRXiAY4QeoABqUjqf6DEzm1ihpovvn9Ad+oOLbLiwK/rf88wruT9IATJ7AtNjmi8iA7pC8tN4o5y799Q==;;
openclaw@2026.9.6) echo sha512-Ie0kyQSCVfFqixsgVg39vevUDq01Ch5u3+7Yu5Y3qARczmdAe+lzp8bVnO9925rHiW/+CFp70zfORCyPmCH31g==;;
esac; exit; fi
`

// what is installed is the pinned version, without a key in sight of its scripts, and only the end of the output is shown.
func TestInstall(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.program("npm", integrity+`head -c 5000 /dev/zero | tr '\0' x; echo done`)
	output, err := m.installer().Install(t.Context(), toolinstall.OpenCode)
	require.NoError(t, err)
	require.Len(t, []rune(output), 800)
	require.True(t, strings.HasSuffix(output, "xdone\n"))
	require.Equal(t, "npm view opencode-ai@1.18.33 dist.integrity\nnpm install --global --no-audit --no-fund opencode-ai@1.18.33\n", m.read("notes"))
	require.NotContains(t, m.read("env"), "a-secret")
	require.Contains(t, m.read("env"), "npm_config_registry=http://r/")
}

// nothing is installed that is not on the list, has another checksum, or while something else is being installed.
func TestWhatIsNotInstalled(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	for _, name := range []string{"", "rm-rf", "opencode;id", "../opencode", "OPENCODE", "npm"} {
		_, err := m.installer().Install(t.Context(), name)
		require.ErrorIs(t, err, toolinstall.ErrUnknown, name)
		_, ok := toolinstall.Instructions(name)
		require.False(t, ok)
	}
	_, err := m.installer().Install(t.Context(), toolinstall.OpenClaw)
	require.ErrorContains(t, err, "npm", "there is none")

	m.program("npm", "echo sha512-of-something-else")
	_, err = m.installer().Install(t.Context(), toolinstall.OpenCode)
	require.ErrorContains(t, err, "not installed")
	require.NotContains(t, m.read("notes"), "install")

	m.program("npm", integrity+"echo no room; exit 3")
	output, err := m.installer().Install(t.Context(), toolinstall.OpenCode)
	require.Error(t, err)
	require.Equal(t, "no room\n", output)

	m.program("npm", integrity+"touch "+m.dir+"/busy; while [ ! -e "+m.dir+"/go ]; do sleep 0.01; done")
	i, done := m.installer(), make(chan error, 1)
	go func() {
		_, err := i.Install(t.Context(), toolinstall.OpenCode)
		done <- err
	}()
	await.True(t, func() bool {
		_, err := os.Stat(filepath.Join(m.dir, "busy"))
		return err == nil
	})
	_, err = i.Install(t.Context(), toolinstall.OpenClaw)
	require.ErrorIs(t, err, toolinstall.ErrBusy)
	require.NoError(t, os.WriteFile(filepath.Join(m.dir, "go"), nil, 0o600))
	require.NoError(t, await.Value(t, done))
}

// OpenClaw is installed if it is not there, and told of the gateway.
func TestOpenClawForTheGateway(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.program("npm", integrity+`printf '#!/bin/sh\necho "openclaw $*" >>`+m.dir+`/notes\n' >`+m.dir+`/openclaw; chmod 700 `+m.dir+`/openclaw`)
	_, err := m.installer().Install(t.Context(), toolinstall.OpenClawAuto)
	require.NoError(t, err)
	notes := strings.Split(strings.TrimSpace(m.read("notes")), "\n")
	require.Len(t, notes, 5)
	require.Equal(t, "npm install --global --no-audit --no-fund openclaw@2026.9.6", notes[1])
	for _, part := range []string{"config set models.providers.openai", `"baseUrl":"http://127.0.0.1:8100/v1"`, `"id":"mllm/auto"`, `"contextWindow":131072`, `"maxTokens":8192`} {
		require.Contains(t, notes[2], part)
	}
	require.Equal(t, "openclaw gateway restart", notes[3])
	require.Equal(t, "openclaw agents add mllm-auto --model openai/mllm/auto --non-interactive", notes[4])

	_, err = m.installer().Install(t.Context(), toolinstall.OpenClawAuto)
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(m.read("notes"), "npm "), "it is there")
	m.program("openclaw", "echo broken; exit 1")
	output, err := m.installer().Install(t.Context(), toolinstall.OpenClawAuto)
	require.ErrorContains(t, err, "openclaw config set")
	require.Equal(t, "broken\n", output)
}

// what is there is found, and run for its version only if that is wanted.
func TestStatus(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.program("opencode", "echo 1.2.3; echo more")
	got := m.installer().Status(t.Context(), false)
	require.Equal(t, map[string]toolinstall.State{"opencode": {Installed: true, Path: filepath.Join(m.dir, "opencode")}, "openclaw": {}}, got)
	require.Empty(t, m.read("notes"))
	await.True(t, func() bool { return m.installer().Status(t.Context(), true)["opencode"].Version == "1.2.3" }) // it has five seconds
	m.program("opencode", "exit 1")
	require.Empty(t, m.installer().Status(t.Context(), true)["opencode"].Version)
}
