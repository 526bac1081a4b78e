// Package composetest runs the compose set of the repository on the Docker engine of the machine, for tests.
package composetest

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/machine"
)

// Set is compose.yaml with the profile "demo" under a project name of its own, with its own volumes and ports, as a fresh clone has it: without a .env, and with
// sources that do not change between two images. It goes with the test.
type Set struct {
	Dir    string // the copy of the repository
	Front  string // the address where the gateway is published
	Second string // the address of the second ingress of a cluster

	project string
	command []string // docker compose or docker-compose, with the project's options
	env     []string
}

// Limits are for an engine that hangs: a machine with much else to do takes minutes for what takes seconds.
const (
	buildLimit = 40 * time.Minute
	callLimit  = 15 * time.Minute
	readyLimit = 15 * time.Minute
)

// pollEvery is the time between two looks at the health of containers.
const pollEvery = 500 * time.Millisecond

// New makes a set of compose.yaml with files over it. Paths are those of the repository. What an interrupted run of the same project left is removed.
func New(tb testing.TB, project string, files ...string) *Set {
	tb.Helper()
	RequireEngine(tb)
	s := &Set{Dir: snapshot(tb), Front: freeport.Addr(tb), Second: freeport.Addr(tb), project: project, command: []string{"docker", "compose"}}
	if exec.CommandContext(tb.Context(), "docker", "compose", "version").Run() != nil {
		s.command = []string{"docker-compose"}
	}
	s.command = append(s.command, "--project-name", project, "--profile", "demo", "--file", "compose.yaml")
	for _, file := range files {
		s.command = append(s.command, "--file", file)
	}
	own := []string{"HYDRALLM_", "POSTGRES_", "COMPOSE_"}
	for _, variable := range os.Environ() {
		if !slices.ContainsFunc(own, func(prefix string) bool { return strings.HasPrefix(variable, prefix) }) {
			s.env = append(s.env, variable)
		}
	}
	s.Setenv("COMPOSE_HTTP_TIMEOUT", "900") // of docker-compose 1.29, in seconds: a busy engine needs more than its minute
	s.Setenv("HYDRALLM_PORT", port(tb, s.Front))
	s.Setenv("HYDRALLM_PORT_2", port(tb, s.Second))
	for _, name := range []string{"GOPROXY", "GOSUMDB", "GOFLAGS"} {
		s.Setenv(name, output(tb, ".", "go", "env", name))
	}
	s.Compose(tb, "down", "--volumes", "--remove-orphans")
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Log(s.run(tb, callLimit, "logs", "--no-color", "--tail", "80"))
		}
		s.Compose(tb, "down", "--volumes", "--remove-orphans")
	})
	return s
}

// Setenv sets a variable that the files of the set use.
func (s *Set) Setenv(name, value string) { s.env = append(s.env, name+"="+value) }

// MakeIdentities makes keys and certificates for a cluster.
func (s *Set) MakeIdentities(tb testing.TB) {
	tb.Helper()
	output(tb, s.Dir, "deploy/nats/identities.sh", "deploy/nats/identities")
}

// Build builds the images.
func (s *Set) Build(tb testing.TB) {
	tb.Helper()
	s.run(tb, buildLimit, "build", "--quiet")
}

// Compose runs a compose command and gives what it printed. It works in cleanups too, when the context of the test has ended.
func (s *Set) Compose(tb testing.TB, args ...string) string {
	tb.Helper()
	return s.run(tb, callLimit, args...)
}

func (s *Set) run(tb testing.TB, limit time.Duration, args ...string) string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), limit)
	defer cancel()
	start := time.Now()
	cmd := exec.CommandContext(ctx, s.command[0], append(slices.Clone(s.command[1:]), args...)...)
	cmd.Dir, cmd.Env = s.Dir, s.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		tb.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	tb.Logf("%s: %s", strings.Join(args, " "), time.Since(start).Round(100*time.Millisecond))
	return string(out)
}

// AwaitHealthy waits until the set has n containers and each reports good health.
func (s *Set) AwaitHealthy(tb testing.TB, n int) {
	tb.Helper()
	start := time.Now()
	for {
		states := s.Containers(tb, "{{.Names}} {{.Status}}")
		healthy := 0
		for _, state := range states {
			if strings.Contains(state, "(healthy)") {
				healthy++
			}
		}
		if healthy == n && len(states) == n {
			tb.Logf("%d containers healthy after %s", n, time.Since(start).Round(100*time.Millisecond))
			return
		}
		if time.Since(start) > readyLimit {
			tb.Fatalf("%d of %d containers are healthy:\n%s", healthy, n, strings.Join(states, "\n"))
		}
		<-time.After(pollEvery)
	}
}

// Containers gives a line for each container of the set that has all labels (NAME=VALUE), running or not, in a format of docker ps.
func (s *Set) Containers(tb testing.TB, format string, labels ...string) []string {
	tb.Helper()
	args := []string{"ps", "--all", "--format", format, "--filter", "label=com.docker.compose.project=" + s.project}
	for _, label := range labels {
		args = append(args, "--filter", "label="+label)
	}
	return strings.Split(Docker(tb, args...), "\n")
}

// Replica gives the id of a container of a service; the first one is number 1.
func (s *Set) Replica(tb testing.TB, service string, number int) string {
	tb.Helper()
	found := s.Containers(tb, "{{.ID}}", "com.docker.compose.service="+service, "com.docker.compose.container-number="+strconv.Itoa(number))
	require.Len(tb, found, 1, service)
	require.NotEmpty(tb, found[0], "there is no container %d of %s", number, service)
	return found[0]
}

// RequireEngine ends a test when no Docker engine answers.
func RequireEngine(tb testing.TB) {
	tb.Helper()
	if err := exec.CommandContext(tb.Context(), "docker", "info").Run(); err != nil {
		machine.Missing(tb, "Docker engine", err)
	}
}

// Docker runs a command of docker and gives what it printed to its standard output, without the end of the last line.
func Docker(tb testing.TB, args ...string) string {
	tb.Helper()
	return output(tb, ".", "docker", args...)
}

// output runs a program, also in cleanups.
func output(tb testing.TB, dir, program string, args ...string) string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), callLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	var stderr bytes.Buffer
	cmd.Dir, cmd.Stderr = dir, &stderr
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSuffix(string(out), "\n")
}

// snapshot copies what git knows or would take of the repository into a directory.
func snapshot(tb testing.TB) string {
	tb.Helper()
	dir := tb.TempDir()
	cmd := exec.CommandContext(tb.Context(), "sh", "-c",
		`git ls-files -z --cached --others --exclude-standard | tar --null --files-from - --create --ignore-failed-read 2>/dev/null | tar --extract --directory "$1"`,
		"snapshot", dir)
	cmd.Dir = output(tb, ".", "git", "rev-parse", "--show-toplevel")
	out, err := cmd.CombinedOutput()
	require.NoError(tb, err, "%s", out)
	require.FileExists(tb, filepath.Join(dir, "compose.yaml"))
	return dir
}

func port(tb testing.TB, addr string) string {
	tb.Helper()
	_, port, err := net.SplitHostPort(addr)
	require.NoError(tb, err)
	return port
}
