//go:build e2e

package clients

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/hydrallm/internal/gateway"
	"hydrallm/services/hydrallm/internal/mockllm"
	"hydrallm/shared/config"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/process"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/freeport"
)

const clientKey = "sk-client-of-the-test"

// up is told when everything before it has started.
type up chan struct{}

func (u up) Start(context.Context) error { close(u); return nil }
func (up) Stop(context.Context) error    { return nil }

// startGateway runs the whole gateway before the mock upstream and gives its address: model "demo", whose first upstream always fails, and
// "vectors", which the demo calls "demo-embedding".
func startGateway(t *testing.T) string {
	t.Helper()
	mock := mockllm.New(mockllm.Config{Listen: "127.0.0.1:0"})
	require.NoError(t, mock.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, mock.Stop(context.Background())) })
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.yaml"), fmt.Appendf(nil, `
server: {host: 127.0.0.1, port: %d, client_keys: [%s]}
providers:
  - {id: mock, url: "http://%s/v1", key: key-of-the-mock}
upstreams:
  - {id: fails, provider: mock, model: unavailable}
  - {id: answers, provider: mock, model: mock}
  - {id: vectors, provider: mock, model: mock-embedding}
models:
  - {name: demo, upstreams: [fails, answers]}
  - {name: vectors, upstreams: [vectors]}
  - {name: demo-embedding, upstreams: [vectors]}
routing: {final_fallback: "", aliases: {}}
sessions: {database: "sqlite:%[4]s/hydrallm.db"}
nats: {store_dir: "%[4]s/nats"}
`, freeport.Port(t), clientKey, mock.Addr(), dir), 0o600))
	s, err := process.LoadFrom(config.Environment{Dir: dir, Lookup: func(string) (string, bool) { return "", false }}, process.Overrides{})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	started, ended := make(up), make(chan error, 1)
	go func() {
		ended <- gateway.Run(ctx, s, slog.New(slog.DiscardHandler), lifecycle.Named{Name: "the test", Service: started})
	}()
	t.Cleanup(func() {
		stop()
		require.NoError(t, await.Value(t, ended))
	})
	select {
	case <-started:
	case err := <-ended:
		ended <- err
		require.NoError(t, err)
	case <-time.After(await.Limit):
		t.Fatal("the gateway does not start")
	}
	return "http://" + s.Server.Bind()
}
