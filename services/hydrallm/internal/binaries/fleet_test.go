package binaries

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/leaktest"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/testkit/processtest"
)

func TestMain(m *testing.M) {
	if signal.Ignored(syscall.SIGHUP) { // as under nohup: the processes of the tests would ignore it, too, but not what is caught here
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	leaktest.Main(m, processtest.Remove)
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
	f.bin = processtest.Services(t, "ingress", "analyzer", "dispatcher", "session-writer")
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

// start runs a service and waits until it is ready.
func (f *fleet) start(t *testing.T, service string) *processtest.Process {
	t.Helper()
	health := freeport.Addr(t)
	w := f.startAt(t, service, health)
	w.AwaitReady(t, health)
	return w
}

// startAt runs a service that says at an address how it is.
func (f *fleet) startAt(t *testing.T, service, health string) *processtest.Process {
	t.Helper()
	return processtest.Run(t, filepath.Join(f.bin, service), []string{"CONFIG_PATH=" + f.config, "HEALTH_ADDR=" + health})
}

// reachable says whether something listens on an address.
func reachable(t *testing.T, addr string) bool {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	return err == nil && conn.Close() == nil
}
