package binaries

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/processtest"
)

// alone writes the configuration of an all-in-one gateway on addr, with its data below dir, and more if there is.
func alone(tb testing.TB, dir, addr, upstream string, more ...string) []string {
	tb.Helper()
	_, port, err := net.SplitHostPort(addr)
	require.NoError(tb, err)
	path := filepath.Join(tb.TempDir(), "config.yaml")
	require.NoError(tb, os.WriteFile(path, fmt.Appendf(nil, `
server: {host: 127.0.0.1, port: %s}
providers: [{id: p, url: "%s/v1", key: key-of-the-provider}]
upstreams: [{id: u, provider: p, model: real}]
models: [{name: m, upstreams: [u]}]
routing: {final_fallback: "", aliases: {}}
web: {enabled: false}
sessions: {database: "sqlite:%s/hydrallm.db"}
nats: {store_dir: "%s/nats"}
%s
`, port, upstream, dir, dir, strings.Join(more, "\n")), 0o600))
	return []string{"CONFIG_PATH=" + path}
}

// a signal ends the process soon and cleanly, an answer under way comes to its end, and the next start finds its data.
func TestAllInOneStopsAndStartsAgain(t *testing.T) {
	t.Parallel()
	binary := processtest.AllInOne(t)
	dir, addr := t.TempDir(), freeport.Addr(t)
	upstream := fakellm.Start(t)
	upstream.Handle(func(fakellm.Request) fakellm.Answer {
		return fakellm.Stream("a", "b", "c", "d", "e").Gap(100 * time.Millisecond)
	})
	env := alone(t, dir, addr, upstream.URL())
	for round, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		w := processtest.Run(t, binary, env)
		w.AwaitReady(t, addr)
		ctx, cancel := context.WithTimeout(t.Context(), startWait)
		answers := (&fleet{ingress: addr}).ask(ctx, 1)
		upstream.AwaitCount(t, round+1)
		begun := time.Now()
		w.End(t, sig)
		require.Equal(t, 0, w.ExitCode())
		require.Less(t, time.Since(begun), 30*time.Second, "half of what a stop may take")
		a := answers()[0]
		cancel()
		require.NoError(t, a.err)
		require.Equal(t, http.StatusOK, a.status)
		require.Contains(t, a.body, "data: [DONE]")
	}
}

// SIGHUP has the process read its file again, and nothing else comes of it.
func TestAllInOneReadsItsFileAgain(t *testing.T) {
	t.Parallel()
	binary := processtest.AllInOne(t)
	dir, addr := t.TempDir(), freeport.Addr(t)
	upstream := fakellm.Start(t)
	upstream.Handle(fakellm.Talk("hello"))
	env := alone(t, dir, addr, upstream.URL())
	path := strings.TrimPrefix(env[0], "CONFIG_PATH=")
	w := processtest.Run(t, binary, env)
	w.AwaitReady(t, addr)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(text), "{name: m,", "{name: another,", 1)), 0o600))
	listed := func(name string) func() bool {
		return func() bool {
			resp, err := http.Get("http://" + addr + "/v1/models/" + name) //nolint:noctx // it answers or the test ends
			if err != nil {
				return false
			}
			return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
		}
	}
	require.True(t, listed("m")())
	w.Signal(t, syscall.SIGHUP)
	await.True(t, listed("another"))
	require.False(t, listed("m")())
	w.End(t, syscall.SIGTERM)
	require.Equal(t, 0, w.ExitCode())
}

// keys that rest and circuits that are open for long are so after any end of the process, and the upstream hears nothing meanwhile.
func TestAllInOneRemembersRestsAndCircuits(t *testing.T) {
	t.Parallel()
	binary := processtest.AllInOne(t)
	dir, addr := t.TempDir(), freeport.Addr(t)
	limited, broken := fakellm.Start(t), fakellm.Start(t)
	limited.Handle(func(fakellm.Request) fakellm.Answer {
		return fakellm.Answer{Status: http.StatusTooManyRequests, Header: map[string]string{"Retry-After": "3000"}}
	})
	broken.Handle(func(fakellm.Request) fakellm.Answer { return fakellm.Error(http.StatusInternalServerError, "down") })
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, `
server: {host: 127.0.0.1, port: %s}
providers: [{id: limited, url: "%s/v1", keys: [key-of-the-pool]}, {id: broken, url: "%s/v1", key: key-of-the-other}]
upstreams: [{id: l, provider: limited, model: real}, {id: b, provider: broken, model: real}]
models: [{name: m, upstreams: [l]}, {name: other, upstreams: [b]}]
resilience: {breaker: {channel: {failures: 3, window: 5m, open_for: 300s}}}
routing: {final_fallback: "", aliases: {}}
web: {enabled: false}
sessions: {database: "sqlite:%s/hydrallm.db"}
nats: {store_dir: "%s/nats"}
`, port, limited.URL(), broken.URL(), dir, dir), 0o600))
	refused := func(model string) {
		t.Helper()
		resp, err := http.Post("http://"+addr+"/v1/chat/completions", "application/json", //nolint:noctx // bounded by the gateway
			strings.NewReader(fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"hi"}]}`, model)))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
	}
	w := processtest.Run(t, binary, []string{"CONFIG_PATH=" + path})
	w.AwaitReady(t, addr)
	for range 3 {
		refused("other")
	}
	refused("m")
	require.Len(t, limited.Requests(), 1)
	require.Len(t, broken.Requests(), 3)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGKILL} {
		w.End(t, sig)
		w = processtest.Run(t, binary, []string{"CONFIG_PATH=" + path})
		w.AwaitReady(t, addr)
		refused("m")
		refused("other")
		require.Len(t, limited.Requests(), 1, sig)
		require.Len(t, broken.Requests(), 3, sig)
	}
}

func TestAllInOneRefusesToStart(t *testing.T) {
	t.Parallel()
	binary := processtest.AllInOne(t)
	dir, addr := t.TempDir(), freeport.Addr(t)
	processtest.Run(t, binary, alone(t, dir, addr, "http://127.0.0.1:1")).AwaitReady(t, addr)
	tests := map[string]struct {
		dir, addr string
		args      []string
		want      string
	}{
		"port in use":                {t.TempDir(), addr, nil, "address already in use"},
		"port in use by a flag":      {t.TempDir(), freeport.Addr(t), []string{"--port", addr[len("127.0.0.1:"):]}, addr},
		"data in use":                {dir, freeport.Addr(t), nil, "used by another process"},
		"nonsense":                   {t.TempDir(), freeport.Addr(t), []string{"--dance"}, "unknown flag --dance"},
		"configuration is not valid": {t.TempDir(), "127.0.0.1:0", nil, "config.yaml:2: server.port:"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := processtest.Run(t, binary, alone(t, tt.dir, tt.addr, "http://127.0.0.1:1"), tt.args...)
			select {
			case <-w.Gone():
			case <-time.After(startWait):
				t.Fatal("it runs")
			}
			require.Positive(t, w.ExitCode())
			require.Contains(t, w.Log.String(), tt.want)
			require.NotContains(t, w.Log.String(), "key-of-the-provider")
		})
	}
}

// A gateway without a single provider says what to set and serves what it can.
func TestAllInOneWithoutProviders(t *testing.T) {
	t.Parallel()
	binary := processtest.AllInOne(t)
	addr := freeport.Addr(t)
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	w := processtest.Run(t, binary, []string{"CONFIG_PATH=" + emptyConfig(t)}, "--port", port)
	w.AwaitReady(t, addr)
	for _, want := range []string{"the file has no providers", `providers: [{id: groq, key: "${GROQ_API_KEY}"}]`, "GEMINI_API_KEY", "providers=0 upstreams=0 models=0"} {
		require.Contains(t, w.Log.String(), want)
	}
}

func emptyConfig(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "config.yaml")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil,
		"sessions: {database: \"sqlite:%s/hydrallm.db\"}\nnats: {store_dir: \"%s/nats\"}\n", dir, dir), 0o600))
	return path
}
