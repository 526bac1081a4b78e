package gateway_test

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"hydrallm/services/hydrallm/internal/gateway"
	"hydrallm/services/hydrallm/internal/gatewaytest"
	"hydrallm/shared/config"
	"hydrallm/shared/config/configtest"
	"hydrallm/shared/process"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/pgtest"
)

// fasthttp keeps the date of its answers in a goroutine for the life of the process.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"), goleak.Cleanup(func(code int) {
		if err := pgtest.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
		os.Exit(code)
	}))
}

const testWait = await.Limit

// settings writes a configuration with two upstreams: model "m" on the first, "ab" on both.
func settings(t *testing.T, port int, a, b string) process.Settings {
	t.Helper()
	return configured(t, port, fmt.Sprintf(`
providers:
  - {id: pa, url: "%s/v1", key: key-of-provider-a}
  - {id: pb, url: "%s/v1", key: key-of-provider-b}
upstreams:
  - {id: a, provider: pa, model: real-a}
  - {id: b, provider: pb, model: real-b}
models:
  - {name: m, upstreams: [a]}
  - {name: ab, upstreams: [a, b]}
routing: {final_fallback: "", aliases: {}}
`, a, b))
}

const adminKey = "0123456789abcdef-of-the-admin"

// configured reads a configuration of providers, upstreams, models and routing. What it stores is in a directory of its own.
func configured(t *testing.T, port int, text string) process.Settings {
	t.Helper()
	dir := t.TempDir()
	text += fmt.Sprintf(`
server: {host: 127.0.0.1, port: %d, drain_timeout: 1m, admin_key: %s}
sessions: {database: "sqlite:%s/hydrallm.db"}
nats: {store_dir: "%s/nats"}
`, port, adminKey, dir, dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(text), 0o600))
	s, err := process.LoadFrom(config.Environment{Dir: dir, Lookup: configtest.Variables(nil)}, process.Overrides{})
	require.NoError(t, err)
	require.Empty(t, s.Warnings)
	return s
}

// running is a gateway that serves.
type running struct {
	url  string // its root
	stop func() error
}

// serve runs a gateway until the end of the test, if it is not stopped before.
func serve(t *testing.T, s process.Settings) running {
	t.Helper()
	return serveTo(t, s, slog.New(slog.DiscardHandler))
}

// serveTo is serve with a log.
func serveTo(t *testing.T, s process.Settings, log *slog.Logger) running {
	t.Helper()
	return running{"http://" + s.Server.Bind(), gatewaytest.Run(t, s, log)}
}

// bundle is a running gateway with two fake upstreams.
type bundle struct {
	running
	a, b *fakellm.Server
}

func start(t *testing.T) *bundle {
	t.Helper()
	return startOn(t, "")
}

// startOn is start with a NATS server elsewhere.
func startOn(t *testing.T, nats string) *bundle {
	t.Helper()
	x := &bundle{a: fakellm.Start(t), b: fakellm.Start(t)}
	s := settings(t, freeport.Port(t), x.a.URL(), x.b.URL())
	s.NATS.URL = nats
	x.running = serve(t, s)
	return x
}

func TestStartsAndStops(t *testing.T) {
	t.Parallel()
	x := start(t)
	require.NoError(t, x.stop())
}

// A gateway that can't start leaves nothing running and says why.
func TestStartErrors(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, taken.Close()) })
	port := taken.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // a TCP listener has one
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	tests := map[string]struct {
		damage func(*config.Config)
		want   string
	}{
		"port is taken":     {func(c *config.Config) { c.Server.Port = port }, taken.Addr().String()},
		"store is no place": {func(c *config.Config) { c.NATS.StoreDir = file }, file},
		"no database":       {func(c *config.Config) { c.Sessions.Database = config.Secret("sqlite:" + file + "/x.db") }, "session-writer"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := settings(t, freeport.Port(t), "http://127.0.0.1:1", "http://127.0.0.1:1")
			tt.damage(s.Config)
			require.ErrorContains(t, gateway.Run(t.Context(), s, slog.New(slog.DiscardHandler)), tt.want)
		})
	}
}
