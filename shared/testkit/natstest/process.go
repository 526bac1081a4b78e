package natstest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/output"
)

// Process is a nats-server with JetStream in a process of its own, which a test may stop, kill and start again: it keeps its ports and its
// directory.
type Process struct {
	binary, config string
	addr           string

	cmd  *exec.Cmd
	gone chan struct{} // closed when the process of cmd has ended; nil before the first start
	log  output.Buffer
}

// processWait bounds the waits for a server to listen and to end; a machine with much to do needs a while.
const processWait = await.Limit

// NewProcess makes a server that the test has to Start. It ends with the test.
func NewProcess(tb testing.TB) *Process {
	tb.Helper()
	return newProcess(tb, "single", freeport.Port(tb), "")
}

// NewCluster makes n servers that form a cluster once the test has started them. They tell clients of no other address than those that the test gives them, so
// that a proxy in between stays there.
func NewCluster(tb testing.TB, n int) []*Process {
	tb.Helper()
	routes := make([]int, n)
	var urls []string
	for i := range routes {
		routes[i] = freeport.Port(tb)
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", routes[i]))
	}
	var nodes []*Process
	for i, route := range routes {
		cluster := fmt.Sprintf("cluster { name: test, no_advertise: true, listen: \"127.0.0.1:%d\", routes: [%s] }\n", route, strings.Join(urls, ", "))
		nodes = append(nodes, newProcess(tb, "node"+strconv.Itoa(i), freeport.Port(tb), cluster))
	}
	return nodes
}

// URLs are the addresses of several servers, as a client takes them.
func URLs(nodes []*Process) string {
	var urls []string
	for _, p := range nodes {
		urls = append(urls, p.URL())
	}
	return strings.Join(urls, ",")
}

func newProcess(tb testing.TB, name string, port int, more string) *Process {
	tb.Helper()
	dir := tb.TempDir()
	p := &Process{binary: binary(tb), config: filepath.Join(dir, "nats.conf"), addr: fmt.Sprintf("127.0.0.1:%d", port)}
	text := fmt.Sprintf("server_name: %s\nlisten: %q\nmax_payload: 8MB\nmax_pending: 512MB\nwrite_deadline: \"1m\"\njetstream { store_dir: %q, max_memory_store: 4GB, max_file_store: 16GB }\n%s",
		name, p.addr, filepath.Join(dir, "data"), more)
	if err := os.WriteFile(p.config, []byte(text), 0o600); err != nil {
		tb.Fatalf("writing the configuration of a NATS server: %v", err)
	}
	tb.Cleanup(func() {
		p.end(syscall.SIGKILL)
		if tb.Failed() {
			tb.Logf("log of NATS server %s:\n%s", name, p.log.String())
		}
	})
	return p
}

// URL is the address of the server.
func (p *Process) URL() string { return "nats://" + p.addr }

// Start runs the server and returns when it listens. It may be called again after Stop or Kill.
func (p *Process) Start(tb testing.TB) {
	tb.Helper()
	p.cmd = exec.Command(p.binary, "-c", p.config)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if err := p.cmd.Start(); err != nil {
		tb.Fatalf("starting a NATS server: %v", err)
	}
	cmd, gone := p.cmd, make(chan struct{})
	p.gone = gone
	go func() {
		defer close(gone)
		_ = cmd.Wait() // it is ended by a signal
	}()
	for begun := time.Now(); time.Since(begun) < processWait; {
		if conn, err := net.Dial("tcp", p.addr); err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-gone:
			tb.Fatalf("a NATS server ended at its start:\n%s", p.log.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	tb.Fatalf("a NATS server does not listen:\n%s", p.log.String())
}

// Stop ends the server as an operator would and returns when its process is gone.
func (p *Process) Stop() { p.end(syscall.SIGTERM) }

// Kill ends the server as a crash would and returns when its process is gone.
func (p *Process) Kill() { p.end(syscall.SIGKILL) }

func (p *Process) end(sig syscall.Signal) {
	if p.gone == nil {
		return
	}
	_ = p.cmd.Process.Signal(sig) // it may have ended already
	<-p.gone
}

// Signal sends a signal such as SIGSTOP, after which the server is there but does nothing.
func (p *Process) Signal(tb testing.TB, sig syscall.Signal) {
	tb.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		tb.Fatalf("sending %s to a NATS server: %v", sig, err)
	}
}

// binary builds the server once for all tests of a package, in the version of the module.
func binary(tb testing.TB) string {
	tb.Helper()
	path, err := built()
	if err != nil {
		tb.Fatalf("building the NATS server: %v", err)
	}
	return path
}

var built = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(os.TempDir(), "hydrallm-natstest")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "nats-server-"+strconv.Itoa(os.Getpid()))
	out, err := exec.Command("go", "build", "-o", path, "github.com/nats-io/nats-server/v2").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})
