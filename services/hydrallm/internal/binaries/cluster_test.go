package binaries

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus"
	"hydrallm/shared/config"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/topology"
)

// the files of the cluster go with compose.yaml, with docker-compose 1.29 too, and whatever may be scaled has neither a name nor a port of its own.
func TestComposeTakesTheCluster(t *testing.T) {
	t.Parallel()
	files := []string{"-f", "deploy/cluster/compose.yaml", "--profile", "demo", "--profile", "observability"}
	services := strings.Fields(composeSet(t, files, "config", "--services"))
	require.Subset(t, services, []string{"nats", "nats-1", "nats-2", "ingress", "ingress-2", "analyzer", "enricher", "dispatcher", "session-writer"})
	for _, set := range [][]string{nil, files} {
		whole := composeSet(t, set, "config")
		require.NotContains(t, whole, "container_name")
		for _, name := range []string{"analyzer", "enricher", "dispatcher", "session-writer"} {
			require.NotContains(t, section(t, whole, name), "ports:", name)
		}
	}
	whole := composeSet(t, files, "config")
	for _, key := range []string{"environment", "healthcheck"} { // one configuration needs the same variables everywhere, and the image is the same
		part := regexp.MustCompile(`(?s)    ` + key + `:\n(.*?)\n    \S`)
		first, second := part.FindStringSubmatch(section(t, whole, "ingress")), part.FindStringSubmatch(section(t, whole, "ingress-2"))
		require.NotNil(t, first, key)
		require.Equal(t, first[1], second[1], key)
	}
}

// section is what a configuration says of a service.
func section(t *testing.T, whole, service string) string {
	t.Helper()
	m := regexp.MustCompile(`(?ms)^  ` + service + `:\n(?:    .*?\n)+?(?:  \S|\S)`).FindString(whole)
	require.NotEmpty(t, m, service)
	return m
}

// three servers with the configuration of the cluster find each other over TLS, and keep three copies of what a service makes that they know by its key. Their
// limits are those of the single server.
func TestClusterConfiguration(t *testing.T) {
	dir := identities(t)
	text, err := os.ReadFile(repository + "deploy/nats/cluster.conf")
	require.NoError(t, err)
	rights, err := os.ReadFile(repository + "deploy/nats/permissions.conf")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "permissions.conf"), rights, 0o600))
	var routes []string
	ports := []int{freeport.Port(t), freeport.Port(t), freeport.Port(t)}
	for _, port := range ports {
		routes = append(routes, fmt.Sprintf("tls://127.0.0.1:%d", port))
	}
	t.Setenv("NATS_ROUTES", "["+strings.Join(routes, ", ")+"]")
	single, err := server.ProcessConfigFile(repository + "deploy/nats/nats.conf")
	require.NoError(t, err)
	var urls []string
	for i, port := range ports {
		t.Setenv("NATS_NODE", fmt.Sprint("node-", i))
		path := filepath.Join(dir, fmt.Sprintf("node-%d.conf", i))
		changed := strings.NewReplacer("/etc/nats/", dir+"/", "store_dir: /data", fmt.Sprintf("store_dir: %q", t.TempDir()), `"0.0.0.0:4222"`, `"127.0.0.1:-1"`,
			`"0.0.0.0:8222"`, `"127.0.0.1:-1"`, `"0.0.0.0:6222"`, fmt.Sprintf(`"127.0.0.1:%d"`, port)).Replace(string(text))
		require.NoError(t, os.WriteFile(path, []byte(changed), 0o600))
		opts, err := server.ProcessConfigFile(path)
		require.NoError(t, err)
		require.Equal(t, []any{single.MaxPayload, single.MaxPending, single.WriteDeadline, single.JetStreamMaxMemory, single.JetStreamMaxStore},
			[]any{opts.MaxPayload, opts.MaxPending, opts.WriteDeadline, opts.JetStreamMaxMemory, opts.JetStreamMaxStore})
		urls = append(urls, "tls://"+natstest.StartConfigured(t, path).Addr().String())
	}
	const service = topology.SessionWriter
	b, err := bus.Connect(t.Context(), bus.Config{
		URL: strings.Join(urls, ","), Name: service, Topology: topology.Config{Service: service, Replicas: 3, WorkOnDisk: true},
		Identity: bus.Identity{NkeySeed: filepath.Join(dir, service+".nk"), CA: filepath.Join(dir, "ca.pem")}, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	await.True(t, b.Ready)
	require.NoError(t, b.Close(t.Context()))
}

// the configurations that clusters begin with are valid, and mean what the page says.
func TestConfigurationsOfClusters(t *testing.T) {
	t.Parallel()
	values := map[string]string{"NATS_URL": "tls://a:4222,tls://b:4222", "DATABASE_URL": "postgres://u:p@h/d", "NATS_CA": "/ca.pem", "NATS_NKEY_SEED": "/service.nk"}
	env := config.Environment{Dir: "/", Lookup: func(name string) (string, bool) {
		value, ok := values[name]
		return cmp.Or(value, "sk-of-"+strings.ToLower(name)), ok || strings.HasSuffix(name, "_KEY")
	}}
	for _, file := range []string{"deploy/cluster/config.yaml", "deploy/kubernetes/base/config.yaml"} {
		text, err := os.ReadFile(repository + file)
		require.NoError(t, err)
		c, _, err := env.Parse("/"+file, text)
		require.NoError(t, err, file)
		require.Equal(t, config.NATS{
			URL: values["NATS_URL"], NkeySeed: "/service.nk", CA: "/ca.pem", StoreDir: c.NATS.StoreDir, Replicas: 3, WorkOnDisk: true,
		}, c.NATS, file)
	}
}
