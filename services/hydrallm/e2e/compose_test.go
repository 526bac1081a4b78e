//go:build e2e

package e2e

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/freeport"
)

const (
	project     = "hydrallm-e2e"
	profile     = "demo"
	buildLimit  = 15 * time.Minute
	callLimit   = 3 * time.Minute
	readyLimit  = 2 * time.Minute
	pollEvery   = 500 * time.Millisecond
	projectName = "com.docker.compose.project=" + project
)

// stack is the compose set under its own project name, with its own volumes and port.
type stack struct {
	command []string // docker compose or docker-compose, with the project's options
	dir     string
	env     []string
	addr    string // where the gateway is published
	second  string // where the second ingress of a cluster is
}

// newStack makes a stack of compose.yaml with files over it.
func newStack(t *testing.T, over ...string) *stack {
	t.Helper()
	s := &stack{dir: snapshot(t), command: []string{"docker", "compose"}, addr: freeport.Addr(t), second: freeport.Addr(t)}
	if exec.CommandContext(t.Context(), "docker", "compose", "version").Run() != nil {
		s.command = []string{"docker-compose"}
	}
	s.command = append(s.command, "--project-name", project, "--profile", profile, "--file", "compose.yaml")
	for _, file := range over {
		s.command = append(s.command, "--file", file)
	}
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "HYDRALLM_") && !strings.HasPrefix(variable, "POSTGRES_") && !strings.HasPrefix(variable, "COMPOSE_") {
			s.env = append(s.env, variable)
		}
	}
	for name, addr := range map[string]string{"HYDRALLM_PORT": s.addr, "HYDRALLM_PORT_2": s.second} {
		_, port, err := net.SplitHostPort(addr)
		require.NoError(t, err)
		s.env = append(s.env, name+"="+port)
	}
	s.env = append(s.env, "GOPROXY="+goEnv(t, "GOPROXY"), "GOSUMDB="+goEnv(t, "GOSUMDB"), "GOFLAGS="+goEnv(t, "GOFLAGS"))
	s.run(t, callLimit, "down", "--volumes", "--remove-orphans") // what an interrupted run left
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.output(t, callLimit, "logs", "--no-color", "--tail", "80"))
		}
		s.run(t, callLimit, "down", "--volumes", "--remove-orphans")
	})
	return s
}

// snapshot copies what git knows or would take into a directory, so that the set starts as from a fresh clone: without a .env, and with
// sources that do not change between two images.
func snapshot(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "sh", "-c",
		`git ls-files -z --cached --others --exclude-standard | tar --null --files-from - --create --ignore-failed-read 2>/dev/null | tar --extract --directory "$1"`,
		"snapshot", dir)
	cmd.Dir = "../../.."
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return dir
}

// output runs a compose command and gives what it printed. It works in cleanups too, when the context of the test has ended.
func (s *stack) output(t *testing.T, limit time.Duration, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.command[0], append(s.command[1:], args...)...)
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// run runs a compose command and logs how long it took.
func (s *stack) run(t *testing.T, limit time.Duration, args ...string) {
	t.Helper()
	start := time.Now()
	s.output(t, limit, args...)
	t.Logf("%s: %s", strings.Join(args, " "), time.Since(start).Round(100*time.Millisecond))
}

// awaitHealthy waits until the project has n containers and each reports good health.
func (s *stack) awaitHealthy(t *testing.T, n int) {
	t.Helper()
	start := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), readyLimit)
	defer cancel()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		states := containers(t, "{{.Names}} {{.Status}}")
		healthy := 0
		for _, state := range states {
			if strings.Contains(state, "(healthy)") {
				healthy++
			}
		}
		if healthy == n && len(states) == n {
			t.Logf("%d containers healthy after %s", n, time.Since(start).Round(100*time.Millisecond))
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%d of %d containers are healthy:\n%s", healthy, n, strings.Join(states, "\n"))
		case <-ticker.C:
		}
	}
}

// containers gives one formatted line for each container of the project, running or not.
func containers(t *testing.T, format string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "docker", "ps", "--all", "--filter", "label="+projectName, "--format", format).Output()
	require.NoError(t, err)
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// requireConfined checks that the containers of the gateway can do no more than serve.
func requireConfined(t *testing.T) {
	t.Helper()
	const format = "{{.Config.Image}}|{{.Config.User}}|{{.HostConfig.ReadonlyRootfs}}|{{.HostConfig.Privileged}}|{{.HostConfig.CapDrop}}|{{.HostConfig.CapAdd}}|{{.HostConfig.SecurityOpt}}"
	seen := 0
	for _, id := range containers(t, "{{.ID}}") {
		out, err := exec.CommandContext(t.Context(), "docker", "inspect", "--format", format, id).Output()
		require.NoError(t, err)
		image, rest, _ := strings.Cut(strings.TrimSpace(string(out)), "|")
		if !strings.HasPrefix(image, "hydrallm/") {
			continue
		}
		seen++
		require.Equal(t, "10001:10001|true|false|[ALL]|[]|[no-new-privileges:true]", rest, image)
		require.Error(t, exec.CommandContext(t.Context(), "docker", "exec", id, "sh", "-c", "true").Run(), "%s has a shell", image)
	}
	require.Equal(t, gatewayN, seen)
}

func (s *stack) url(path string) string { return "http://" + s.addr + path }

// status gives the status code of a GET.
func (s *stack) status(t *testing.T, path string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url(path), http.NoBody)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}
