package browser

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/go-rod/rod/lib/proto"
)

var (
	errDied   = errors.New("the browser has died")
	errHung   = errors.New("the browser does not answer")
	errUnused = errors.New("the browser is not needed")
)

// defaultAnswer is the time for an answer that does not depend on a page; beyond it Chromium hangs and is killed. The first answer after its start has
// twice as long.
const defaultAnswer = 30 * time.Second

// process is one Chromium with all its child processes, its profile and the connection to it. It ends with stop, or when Chromium dies; exited
// is closed when nothing is left of it.
type process struct {
	*conn

	cmd       *exec.Cmd
	profile   string
	userAgent string
	watching  sync.WaitGroup // what looks at its memory

	ctx    context.Context //nolint:containedctx // it is the lifetime of the process, with the cause of its end
	stop   context.CancelCauseFunc
	exited chan struct{}
}

// start runs Chromium and waits until it answers. The process belongs to the caller, who ends it with stop.
func start(ctx context.Context, cfg *Config) (*process, error) {
	path, err := find(cfg.Path)
	if err != nil {
		return nil, err
	}
	profile, err := os.MkdirTemp("", "hydrallm-browser-")
	if err != nil {
		return nil, fmt.Errorf("making a profile: %w", err)
	}
	p := &process{profile: profile, exited: make(chan struct{})}
	output := &tail{}
	files, err := p.run(path, cfg.Proxy.Addr, output) //nolint:contextcheck // it outlives ctx, which is for the start
	if err != nil {
		_ = os.RemoveAll(profile)
		return nil, fmt.Errorf("starting %s: %w", path, err)
	}
	p.ctx, p.stop = context.WithCancelCause(context.Background())
	go p.route()
	p.watching.Go(func() { p.limitMemory(cfg.answer) }) //nolint:contextcheck // it ends with the process
	go p.tend(files)

	ctx, cancel := context.WithTimeoutCause(ctx, 2*cfg.answer, errHung)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)() //nolint:contextcheck // a second context that ends it
	var version proto.BrowserGetVersionResult
	if err := p.root().call(ctx, proto.BrowserGetVersion{}, &version); err != nil {
		p.stop(errHung)
		<-p.exited
		return nil, fmt.Errorf("starting %s: %w%s", path, err, output)
	}
	// Sites turn browsers away that say that nobody looks at them.
	p.userAgent = strings.ReplaceAll(version.UserAgent, "Headless", "")
	return p, nil
}

// run starts the program with pipes at its descriptors 3 and 4, and returns our ends of them, which are closed with the process.
func (p *process) run(path, proxy string, output *tail) (ours [2]*os.File, err error) {
	theirIn, out, err := os.Pipe()
	if err != nil {
		return ours, err
	}
	defer func() { _ = theirIn.Close() }()
	in, theirOut, err := os.Pipe()
	if err != nil {
		return ours, errors.Join(err, out.Close())
	}
	defer func() { _ = theirOut.Close() }()

	// It is not ended by a context: the group is killed while the process still holds its number, and only then is it waited for.
	p.cmd = exec.CommandContext(context.Background(), path, arguments(p.profile, proxy, sandboxed())...) //nolint:gosec // the operator names it
	p.cmd.Env = environment(p.profile)
	p.cmd.Dir = p.profile
	p.cmd.Stdout, p.cmd.Stderr = output, output
	p.cmd.WaitDelay = time.Second
	p.cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	if err := startGroup(p.cmd); err != nil {
		return ours, errors.Join(err, in.Close(), out.Close())
	}
	p.conn = newConn(in, out)
	return [2]*os.File{in, out}, nil
}

// judge ends a process that has let the time pass in which it answers if it can.
func (p *process) judge(err error) {
	if errors.Is(err, errHung) {
		p.stop(errHung)
	}
}

// tend waits for the end of the process and clears up after it.
func (p *process) tend(files [2]*os.File) {
	select {
	case <-p.done:
		p.stop(errDied)
	case <-p.ctx.Done():
	}
	killGroup(p.cmd)
	for _, f := range files {
		_ = f.Close()
	}
	<-p.done
	p.watching.Wait()
	_ = p.cmd.Wait() // that it was killed is no news
	removeAll(p.profile)
	close(p.exited)
}

// removeAll removes a directory into which processes may still write that have been killed a moment ago.
func removeAll(dir string) {
	for range 10 {
		if os.RemoveAll(dir) == nil {
			return
		}
		<-time.After(50 * time.Millisecond)
	}
}

// environment has nothing of ours: there are secrets in it. Chromium writes below the profile alone.
func environment(profile string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TZ=UTC", "HOME=" + profile, "TMPDIR=" + profile, "XDG_CONFIG_HOME=" + profile, "XDG_CACHE_HOME=" + profile,
		"XDG_RUNTIME_DIR=" + profile, "DBUS_SESSION_BUS_ADDRESS=disabled:", "DBUS_SYSTEM_BUS_ADDRESS=disabled:",
	}
}

// tail keeps the end of what a program says, for the error that tells why it did not start.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

const maxTail = 1024 // bytes

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if more := len(t.kept) - maxTail; more > 0 {
		t.kept = append(t.kept[:0], t.kept[more:]...)
	}
	return len(p), nil
}

// String gives what was kept, as the end of a sentence.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	said := bytes.ToValidUTF8(bytes.TrimSpace(t.kept), nil)
	if len(said) == 0 {
		return ""
	}
	return ": " + string(bytes.Join(bytes.Fields(said), []byte(" ")))
}
