package processtest

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/output"
)

// Process is a program that runs, or has run. It ends with the test at the latest; the log of a failed test has what it wrote.
type Process struct {
	Log output.Buffer // what it writes, to either of its outputs

	name string
	cmd  *exec.Cmd
	gone chan struct{}
}

// Run starts a program, with more in its environment than the test has.
func Run(tb testing.TB, path string, env []string, args ...string) *Process {
	tb.Helper()
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), env...)
	return Start(tb, cmd)
}

// RunAlone starts a program in a directory, with nothing in its environment but what is given.
func RunAlone(tb testing.TB, dir, path string, env ...string) *Process {
	tb.Helper()
	cmd := exec.Command(path)
	cmd.Dir, cmd.Env = dir, append([]string{"HOME=" + dir}, env...)
	return Start(tb, cmd)
}

// Start starts a command whose outputs are free.
func Start(tb testing.TB, cmd *exec.Cmd) *Process {
	tb.Helper()
	p := &Process{name: filepath.Base(cmd.Path), cmd: cmd, gone: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.Log, &p.Log
	require.NoError(tb, cmd.Start())
	go func() {
		defer close(p.gone)
		_ = cmd.Wait() // how it ended is in the process state
	}()
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("log of %s:\n%s", p.name, p.Log.String())
		}
		p.End(tb, syscall.SIGTERM)
	})
	return p
}

// AwaitReady waits until the process says on addr that it is ready.
func (p *Process) AwaitReady(tb testing.TB, addr string) {
	tb.Helper()
	await.True(tb, func() bool { return ready(tb.Context(), addr) || p.Ended() }, p.name, "is ready")
	require.False(tb, p.Ended(), "%s ended at start:\n%s", p.name, p.Log.String())
}

func ready(ctx context.Context, addr string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/readyz", http.NoBody)
	if err != nil {
		return false
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: await.Limit}).Do(req)
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
}

// PID is the id of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Gone is closed when the process has ended.
func (p *Process) Gone() <-chan struct{} { return p.gone }

// Ended says whether the process has.
func (p *Process) Ended() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// ExitCode is that of a process that has ended; -1 if a signal ended it.
func (p *Process) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// Signal sends a signal.
func (p *Process) Signal(tb testing.TB, sig syscall.Signal) {
	tb.Helper()
	require.NoError(tb, p.cmd.Process.Signal(sig))
}

// End sends a signal and waits for the end of the process.
func (p *Process) End(tb testing.TB, sig syscall.Signal) {
	tb.Helper()
	if p.Ended() {
		return
	}
	_ = p.cmd.Process.Signal(sig) // it may end by itself at this moment
	select {
	case <-p.gone:
	case <-time.After(await.Limit):
		_ = p.cmd.Process.Kill()
		<-p.gone
		tb.Errorf("%s did not end by itself:\n%s", p.name, p.Log.String())
	}
}
