//go:build e2e

package clients

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/hydrallm/internal/gatewaytest"
	"hydrallm/services/hydrallm/internal/mockllm"
	"hydrallm/shared/config"
	"hydrallm/shared/process"
	"hydrallm/shared/testkit/freeport"
)

const clientKey = "sk-client-of-the-test"

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
	gatewaytest.Run(t, s, slog.New(slog.DiscardHandler))
	return "http://" + s.Server.Bind()
}
