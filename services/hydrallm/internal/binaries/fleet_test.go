package binaries

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/leaktest"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/testkit/output"
)

func TestMain(m *testing.M) {
	if signal.Ignored(syscall.SIGHUP) { // as under nohup: the processes of the tests would ignore it, too, but not what is caught here
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	leaktest.Main(m, removeBuilt)
}

const startWait = await.Limit

// fleet is a NATS server, a fake upstream and the processes that a test starts.
type fleet struct {
	bin      string
	config   string
	ingress  string // its address
	upstream *fakellm.Server
	nats     bus.InProcess
}

// adminKey opens the admin routes of a fleet.
const adminKey = "key-of-the-admin"

// newFleet builds the binaries and writes the configuration they share: model "m" on one upstream, "two" on that and another one, which are both
// the same server.
func newFleet(t *testing.T) *fleet {
	t.Helper()
	nats := natstest.StartListening(t)
	f := &fleet{ingress: freeport.Addr(t), upstream: fakellm.Start(t), nats: nats}
	f.bin = build(t, "hydrallm/services/ingress/cmd/ingress", "hydrallm/services/analyzer/cmd/analyzer", "hydrallm/services/dispatcher/cmd/dispatcher",
		"hydrallm/services/session-writer/cmd/session-writer")
	_, port, err := net.SplitHostPort(f.ingress)
	require.NoError(t, err)
	text := fmt.Sprintf(`
server: {host: 127.0.0.1, port: %s, drain_timeout: 5s, admin_key: %s}
providers: [{id: p, url: "%s/v1", key: key-of-the-provider}]
upstreams: [{id: u, provider: p, model: real, price: {input: 1, output: 2}}, {id: v, provider: p, model: second}]
models: [{name: m, upstreams: [u]}, {name: two, upstreams: [u, v]}]
sessions: {database: "sqlite:%s/hydrallm.db"}
routing: {final_fallback: "", aliases: {}}
web: {enabled: false}
nats: {url: "%s"}
`, port, adminKey, f.upstream.URL(), t.TempDir(), nats.ClientURL())
	f.config = filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(f.config, []byte(text), 0o600))
	return f
}

// built are the binaries that the tests share.
var built struct {
	sync.Mutex

	dir  string
	done map[string]bool // by package
}

// build makes the binaries of some packages and gives their directory.
func build(t *testing.T, packages ...string) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if built.dir == "" {
		dir, err := os.MkdirTemp("", "hydrallm-binaries-") //nolint:usetesting // it outlives the test
		require.NoError(t, err)
		built.dir, built.done = dir, map[string]bool{}
	}
	packages = slices.DeleteFunc(packages, func(p string) bool { return built.done[p] })
	if len(packages) == 0 {
		return built.dir
	}
	args := append([]string{"build", "-o", built.dir + string(filepath.Separator)}, packages...)
	out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, p := range packages {
		built.done[p] = true
	}
	return built.dir
}

// removeBuilt ends the sharing.
func removeBuilt() error {
	if built.dir == "" {
		return nil
	}
	return os.RemoveAll(built.dir)
}

// allInOne gives the binary of the whole gateway.
func allInOne(t *testing.T) string {
	t.Helper()
	return filepath.Join(build(t, "hydrallm/services/hydrallm/cmd/hydrallm"), "hydrallm")
}

// start runs a service and waits until it is ready.
func (f *fleet) start(t *testing.T, service string) *worker {
	t.Helper()
	health := freeport.Addr(t)
	w := f.startAt(t, service, health)
	w.awaitReady(t, health)
	return w
}

// startAt runs a service that says at an address how it is.
func (f *fleet) startAt(t *testing.T, service, health string) *worker {
	t.Helper()
	return run(t, filepath.Join(f.bin, service), []string{"CONFIG_PATH=" + f.config, "HEALTH_ADDR=" + health})
}

// run starts a process, with more in its environment than the test has, that ends with the test at the latest.
func run(t *testing.T, path string, env []string, args ...string) *worker {
	t.Helper()
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), env...)
	return launch(t, cmd)
}

// runAlone starts a process in a directory, with nothing in its environment but what is given.
func runAlone(t *testing.T, dir, path string, env ...string) *worker {
	t.Helper()
	cmd := exec.Command(path)
	cmd.Dir, cmd.Env = dir, append([]string{"HOME=" + dir}, env...)
	return launch(t, cmd)
}

func launch(t *testing.T, cmd *exec.Cmd) *worker {
	t.Helper()
	w := &worker{name: filepath.Base(cmd.Path), cmd: cmd, gone: make(chan struct{})}
	w.cmd.Stdout, w.cmd.Stderr = &w.log, &w.log
	require.NoError(t, w.cmd.Start())
	go func() {
		defer close(w.gone)
		_ = w.cmd.Wait() // how it ended is in the process state
	}()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of %s:\n%s", w.name, w.log.String())
		}
		w.end(t, syscall.SIGTERM)
	})
	return w
}

// awaitReady waits until the process says on addr that it is ready.
func (w *worker) awaitReady(t *testing.T, addr string) {
	t.Helper()
	await.True(t, func() bool { return ready(t.Context(), addr) || w.ended() })
	require.False(t, w.ended(), "%s ended at start:\n%s", w.name, w.log.String())
}

// worker is one process.
type worker struct {
	name string
	cmd  *exec.Cmd
	log  output.Buffer
	gone chan struct{}
}

func (w *worker) ended() bool {
	select {
	case <-w.gone:
		return true
	default:
		return false
	}
}

// end sends a signal and waits for the end of the process.
func (w *worker) end(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if w.ended() {
		return
	}
	_ = w.cmd.Process.Signal(sig) // it may end by itself at this moment
	select {
	case <-w.gone:
	case <-time.After(startWait):
		_ = w.cmd.Process.Kill()
		<-w.gone
		t.Errorf("%s did not end by itself:\n%s", w.name, w.log.String())
	}
}

func ready(ctx context.Context, addr string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/readyz", http.NoBody)
	if err != nil {
		return false
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: startWait}).Do(req)
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
}

// reachable says whether something listens on an address.
func reachable(t *testing.T, addr string) bool {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	return err == nil && conn.Close() == nil
}
