//go:build unix

package program_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/agent/program"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/leaktest"
)

// The test binary plays the programs: the variable says which.
const role = "PROGRAM_TEST_ROLE"

func TestMain(m *testing.M) {
	if play(os.Getenv(role)) {
		return
	}
	leaktest.Main(m)
}

// play is a program; it says whether there is one of that name.
func play(name string) bool {
	switch name {
	case "":
		return false
	case "echo":
		_, _ = io.Copy(os.Stdout, os.Stdin)
		fmt.Fprint(os.Stderr, "a complaint")
	case "environment":
		fmt.Print(strings.Join(os.Environ(), "\n")) //nolint:forbidigo // a program prints
	case "fail":
		fmt.Print("half an answer") //nolint:forbidigo // a program prints
		os.Exit(3)
	case "garbage":
		_, _ = os.Stdout.Write([]byte("a\xff\xfeb\xc3"))
	case "flood":
		for chunk := strings.Repeat("x", 1<<16); ; {
			if _, err := os.Stdout.WriteString(chunk); err != nil {
				os.Exit(1)
			}
		}
	case "deaf":
		_ = os.Stdin.Close()
		fmt.Print("not interested") //nolint:forbidigo // a program prints
	case "hang", "leave":
		child := exec.Command(os.Args[0]) //nolint:gosec // the test binary itself
		child.Env = []string{role + "=child", "PIDS=" + os.Getenv("PIDS")}
		child.Stdout = os.Stdout // keeps the output open
		if err := child.Start(); err != nil {
			panic(err)
		}
		note("parent", os.Getpid())
		if name == "hang" {
			<-time.After(lifetime)
		}
		awaitFile(filepath.Join(os.Getenv("PIDS"), "child"))
		fmt.Print("done") //nolint:forbidigo // a program prints
	case "child":
		note("child", os.Getpid())
		time.Sleep(lifetime) //nolint:forbidigo // it is there to be killed
	}
	return true
}

// lifetime is how long a process stays that nobody kills: longer than a test waits for its end.
const lifetime = 10 * await.Limit

// note leaves a process id where the test finds it.
func note(name string, pid int) {
	path := filepath.Join(os.Getenv("PIDS"), name)
	if err := os.WriteFile(path+".new", []byte(strconv.Itoa(pid)), 0o600); err != nil {
		panic(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		panic(err)
	}
}

// awaitFile polls: another process gives no event to wait for.
func awaitFile(path string) []byte {
	for range 6000 {
		if data, err := os.ReadFile(path); err == nil {
			return data
		}
		<-time.After(10 * time.Millisecond)
	}
	panic("no " + path)
}

func command(t *testing.T, name string) program.Command {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return program.Command{Program: self, Dir: t.TempDir(), Env: []string{role + "=" + name}, MaxOutput: 1 << 20}
}

func TestPrograms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, input, text string
		status            int
	}{
		{"echo", "--help; rm -rf $HOME `id` \"é\"\n", "--help; rm -rf $HOME `id` \"é\"\n", 0}, // no shell, no option
		{"echo", strings.Repeat("long ", 100_000), strings.Repeat("long ", 100_000), 0},       // more than a pipe holds
		{"fail", "", "half an answer", 3},
		{"garbage", "", "a\ufffdb\ufffd", 0},
		{"deaf", strings.Repeat("unread ", 100_000), "not interested", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd := command(t, c.name)
			cmd.Input = []byte(c.input)
			out, err := program.Run(t.Context(), cmd)
			require.NoError(t, err)
			require.Equal(t, c.text, string(out.Text))
			require.Equal(t, c.status, out.Status)
		})
	}
}

func TestTooMuchOutputEndsTheProgram(t *testing.T) {
	t.Parallel()
	_, err := program.Run(t.Context(), command(t, "flood"))
	require.ErrorIs(t, err, program.ErrTooMuch)
}

// a limit of time ends the program and everything that it started.
func TestEndOfTheContextKillsTheGroup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := command(t, "hang")
	cmd.Env = append(cmd.Env, "PIDS="+dir)
	cause := errors.New("time is up")
	ctx, cancel := context.WithCancelCause(t.Context())
	pids := make(chan []byte, 2)
	go func() {
		pids <- awaitFile(filepath.Join(dir, "parent"))
		pids <- awaitFile(filepath.Join(dir, "child"))
		cancel(cause)
	}()
	_, err := program.Run(ctx, cmd)
	require.ErrorIs(t, err, cause)
	for range 2 {
		requireGone(t, <-pids)
	}
}

func TestWhatAProgramLeavesBehindIsKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := command(t, "leave")
	cmd.Env = append(cmd.Env, "PIDS="+dir)
	out, err := program.Run(t.Context(), cmd)
	require.NoError(t, err)
	require.Equal(t, "done", string(out.Text))
	requireGone(t, awaitFile(filepath.Join(dir, "child")))
}

// requireGone waits until a killed process is no more, or is one that its new parent has not taken notice of yet.
func requireGone(t *testing.T, pid []byte) {
	t.Helper()
	n, err := strconv.Atoi(string(pid))
	require.NoError(t, err)
	await.True(t, func() bool {
		stat, err := os.ReadFile(filepath.Join("/proc", string(pid), "stat"))
		if err == nil {
			_, state, _ := strings.Cut(string(stat), ") ")
			return strings.HasPrefix(state, "Z")
		}
		return errors.Is(syscall.Kill(n, 0), syscall.ESRCH)
	})
}

func TestMissingProgram(t *testing.T) {
	t.Parallel()
	cmd := command(t, "echo")
	cmd.Program = "no-such-program-anywhere"
	_, err := program.Run(t.Context(), cmd)
	require.ErrorIs(t, err, program.ErrMissing)
}

func TestProgramsSeeOnlyTheirEnvironment(t *testing.T) {
	t.Parallel()
	cmd := command(t, "environment")
	cmd.Env = append(cmd.Env, program.Environment([]string{
		"PATH=/bin", "HOME=/h", "lc_all=C", "XDG_DATA_HOME=/d", "OPENCODE_CONFIG=c", "GEMINI_KEYS=secret", "PATHOLOGY=no",
	}, "OPENCODE_")...)
	out, err := program.Run(t.Context(), cmd)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{role + "=environment", "PATH=/bin", "HOME=/h", "lc_all=C", "XDG_DATA_HOME=/d", "OPENCODE_CONFIG=c"},
		strings.Split(string(out.Text), "\n"))
}
