//go:build unix

package binaries

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/processtest"
)

// manager does what systemd does for a service with a socket of its own and Type=notify.
type manager struct {
	binary string
	env    []string
	socket *os.File
	notify *net.UnixConn
}

func newManager(t *testing.T, env func(addr string) []string) (m *manager, addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	socket, err := ln.(*net.TCPListener).File() //nolint:forcetypeassert // TCP
	require.NoError(t, err)
	require.NoError(t, ln.Close())
	t.Cleanup(func() { _ = socket.Close() })
	dir, err := os.MkdirTemp("", "notify") //nolint:usetesting // the path of a socket has to be short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = notify.Close() })
	addr = ln.Addr().String()
	return &manager{binary: processtest.AllInOne(t), socket: socket, notify: notify, env: append(env(addr), "NOTIFY_SOCKET="+path, "LISTEN_FDS=1", "LISTEN_FDNAMES=http")}, addr
}

// start runs the process. The shell knows the id that it keeps.
func (m *manager) start(t *testing.T) *processtest.Process {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ exec "$0"`, m.binary)
	cmd.Env, cmd.ExtraFiles = append(os.Environ(), m.env...), []*os.File{m.socket}
	return processtest.Start(t, cmd)
}

// told gives what the process says next of itself.
func (m *manager) told(t *testing.T) string {
	t.Helper()
	said := make(chan string, 1)
	go func() {
		buf := make([]byte, 1024)
		n, _ := m.notify.Read(buf) // closed at the end of the test
		said <- string(buf[:n])
	}()
	return await.Value(t, said)
}

// with a socket that somebody else holds, nobody is refused while the process is restarted, and no request fails: new connections wait in the kernel
// until the next process takes them, and what the old one has comes to its end. A stop may end only what runs longer than server.drain_timeout.
func TestRestartsUnderLoad(t *testing.T) {
	t.Parallel()
	upstream := fakellm.Start(t)
	upstream.Handle(fakellm.Talk("hello"))
	m, addr := newManager(t, func(addr string) []string { return alone(t, t.TempDir(), addr, upstream.URL()) })
	w := m.start(t)
	require.Equal(t, "READY=1", m.told(t))
	w.Signal(t, syscall.SIGHUP)
	require.True(t, strings.HasPrefix(m.told(t), "RELOADING=1\nMONOTONIC_USEC="))
	require.Equal(t, "READY=1", m.told(t))

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var load sync.WaitGroup
	var served atomic.Int64
	failures := make(chan error, 100)
	for i := range 4 {
		stream := i%2 == 0
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		load.Go(func() {
			for ctx.Err() == nil {
				if err := askWhole(client, addr, stream); err != nil {
					failures <- err
					return
				}
				served.Add(1)
			}
		})
	}
	progress := func() {
		t.Helper()
		from := served.Load()
		await.True(t, func() bool { return served.Load() > from+8 || len(failures) > 0 })
	}
	for range 3 {
		progress()
		w.Signal(t, syscall.SIGTERM)
		require.Equal(t, "STOPPING=1", m.told(t))
		await.Value(t, w.Gone())
		require.Equal(t, 0, w.ExitCode())
		require.True(t, reachable(t, addr), "nobody is refused while nothing runs")
		w = m.start(t)
		require.Equal(t, "READY=1", m.told(t))
	}
	progress()
	stop()
	load.Wait()
	close(failures)
	for err := range failures {
		t.Error(err)
	}
	require.Contains(t, w.Log.String(), "sockets=1")
	w.End(t, syscall.SIGTERM)
	require.Equal(t, 0, w.ExitCode())
}

// askWhole asks for one answer, which has to be whole.
func askWhole(client *http.Client, addr string, stream bool) error {
	body := fmt.Sprintf(`{"model":"m","stream":%t,"messages":[{"role":"user","content":"hi"}]}`, stream)
	resp, err := client.Post("http://"+addr+"/v1/chat/completions", "application/json", strings.NewReader(body)) //nolint:noctx // bounded by the gateway
	if err != nil {
		return err
	}
	text, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK || !strings.Contains(string(text), "hello") || stream != strings.Contains(string(text), "data: [DONE]") {
		return fmt.Errorf("status %d: %s", resp.StatusCode, text)
	}
	return nil
}
