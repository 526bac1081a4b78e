package binaries

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/leaktest"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/testkit/output"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const startWait = 30 * time.Second

// fleet is a NATS server, a fake upstream and the processes that a test starts.
type fleet struct {
	bin      string
	config   string
	ingress  string // its address
	upstream *fakellm.Server
}

// newFleet builds the binaries and writes the configuration they share: model "m" on one upstream.
func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{ingress: freeport.Addr(t), upstream: fakellm.Start(t)}
	f.bin = build(t, "hydrallm/services/ingress/cmd/ingress", "hydrallm/services/analyzer/cmd/analyzer", "hydrallm/services/dispatcher/cmd/dispatcher")
	_, port, err := net.SplitHostPort(f.ingress)
	require.NoError(t, err)
	text := fmt.Sprintf(`
server: {host: 127.0.0.1, port: %s, drain_timeout: 5s}
providers: [{id: p, url: "%s/v1", key: key-of-the-provider}]
upstreams: [{id: u, provider: p, model: real}]
models: [{name: m, upstreams: [u]}]
routing: {final_fallback: "", aliases: {}}
web: {enabled: false}
nats: {url: "%s"}
`, port, f.upstream.URL(), natstest.StartListening(t).ClientURL())
	f.config = filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(f.config, []byte(text), 0o600))
	return f
}

// build makes the binaries of some packages and gives their directory.
func build(t *testing.T, packages ...string) string {
	t.Helper()
	dir := t.TempDir()
	args := append([]string{"build", "-o", dir + string(filepath.Separator)}, packages...)
	out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return dir
}

// start runs a service and waits until it is ready.
func (f *fleet) start(t *testing.T, service string) *worker {
	t.Helper()
	health := freeport.Addr(t)
	w := run(t, filepath.Join(f.bin, service), []string{"CONFIG_PATH=" + f.config, "HEALTH_ADDR=" + health})
	w.awaitReady(t, health)
	return w
}

// run starts a process that ends with the test at the latest.
func run(t *testing.T, path string, env []string, args ...string) *worker {
	t.Helper()
	w := &worker{name: filepath.Base(path), cmd: exec.Command(path, args...), gone: make(chan struct{})}
	w.cmd.Env = append(os.Environ(), env...)
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
	require.Eventually(t, func() bool { return ready(t.Context(), addr) || w.ended() }, startWait, 20*time.Millisecond)
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
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}).Do(req)
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
}
