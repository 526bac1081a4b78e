//go:build e2e

package chaos

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/faultbus"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/testkit/pgtest"
	"hydrallm/shared/testkit/processtest"
)

// distributed is the set of separate services as one would run it for high availability: three NATS servers with three copies of everything, PostgreSQL, two
// processes of each service. The first dispatcher reaches NATS
// through proxies, which are the network that a test takes away.
type distributed struct {
	t        *testing.T // to the end of which the processes run
	bin      string     // directory of the binaries
	upstream *fakellm.Server
	nodes    []*natstest.Process
	database *pgtest.Server
	pages    *httptest.Server // of the web
	fronts   []string         // addresses of the ingresses
	members  []*member
	links    []*faultbus.Proxy // of the first dispatcher
}

// member is one place for a process of a service, which may be filled again and again.
type member struct {
	service string
	config  string
	health  string
	*processtest.Process
}

// pageTime is how long a page of the web takes.
const pageTime = 100 * time.Millisecond

func newDistributed(t *testing.T) *distributed {
	t.Helper()
	x := &distributed{t: t, nodes: natstest.NewCluster(t, 3), database: pgtest.NewServer(t), fronts: []string{freeport.Addr(t), freeport.Addr(t)}}
	for _, n := range x.nodes {
		n.Start(t)
	}
	x.upstream = fakellm.Start(t)
	x.pages = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		<-time.After(pageTime)
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, "<html><title>A page</title><body><main><p>%s</p></main></body></html>", strings.Repeat("The page says that all is well. ", 40))
	}))
	t.Cleanup(x.pages.Close)
	x.bin = processtest.Services(t, "session-writer", "analyzer", "enricher", "dispatcher", "ingress")
	urls := natstest.URLs(x.nodes)
	var parted []string
	for _, n := range x.nodes {
		link := faultbus.Start(t, n.URL(), 1)
		x.links = append(x.links, link)
		parted = append(parted, link.URL())
	}
	for _, service := range []string{"session-writer", "analyzer", "enricher"} {
		for range 2 {
			x.add(t, service, urls, x.fronts[0])
		}
	}
	x.add(t, "dispatcher", strings.Join(parted, ","), x.fronts[0])
	x.add(t, "dispatcher", urls, x.fronts[0])
	for _, addr := range x.fronts {
		x.add(t, "ingress", urls, addr)
	}
	for _, m := range x.members {
		x.launch(m)
	}
	x.awaitReady(t)
	return x
}

// slots is how many calls the providers take at the same time: more than there are clients, so that nobody is refused, whatever a dead dispatcher holds.
const slots = 500

// adminKey opens the admin routes.
const adminKey = "key-of-the-admin"

// add writes the configuration of a process.
func (x *distributed) add(t *testing.T, service, nats, front string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, `
server: {host: 127.0.0.1, port: %s, queue_timeout: 90s, drain_timeout: 60s, admin_key: %s}
providers:
  - {id: p, url: "%s/v1", key: key-of-the-provider, max_concurrency: %d}
  - {id: groq, url: "%s/v1", keys: [key-one, key-two], default_models: {free: fast}}
upstreams: [{id: u, provider: p, model: real}, {id: vectors, provider: p, model: embedding}]
models: [{name: m, upstreams: [u]}, {name: v, upstreams: [vectors]}]
routing: {final_fallback: "", aliases: {}}
web: {enabled: false, browser: never, cache_ttl: 0s, allow_hosts: [127.0.0.1]}
sessions: {database: %q, compressor: "off"}
nats: {url: %q, replicas: 3}
`, front[strings.LastIndexByte(front, ':')+1:], adminKey, x.upstream.URL(), slots, x.upstream.URL(), x.database.Address(), nats), 0o600))
	x.members = append(x.members, &member{service: service, config: path, health: freeport.Addr(t)})
}

// launch fills a place.
func (x *distributed) launch(m *member) {
	x.t.Helper()
	m.Process = processtest.Run(x.t, filepath.Join(x.bin, m.service), []string{"CONFIG_PATH=" + m.config, "HEALTH_ADDR=" + m.health})
}

// awaitReady waits until every process is.
func (x *distributed) awaitReady(t *testing.T) {
	t.Helper()
	for _, m := range x.members {
		m.AwaitReady(t, m.health)
	}
}

// all gives the places of a service.
func (x *distributed) all(service string) (list []*member) {
	for _, m := range x.members {
		if m.service == service {
			list = append(list, m)
		}
	}
	return list
}

// replace ends a process and fills its place.
func (x *distributed) replace(t *testing.T, m *member, sig syscall.Signal) {
	t.Helper()
	m.End(t, sig)
	x.launch(m)
	m.AwaitReady(t, m.health)
}

// checkIdle waits until no slot is taken, at any dispatcher.
func (x *distributed) checkIdle(t *testing.T) {
	t.Helper()
	await.True(t, func() bool { return x.upstream.Active() == 0 }, "no upstream call is under way")
	for _, front := range x.fronts {
		await.True(t, func() bool {
			state, ok := x.admin(t, front, "/status")
			taken := int64(0)
			for _, slot := range gjson.Get(state, "slots").Array() {
				taken += slot.Get("active").Int()
			}
			return ok && gjson.Get(state, "slots.#").Int() > 0 && taken == 0
		}, "all slots are free")
	}
}

// admin gets an admin route.
func (x *distributed) admin(t *testing.T, front, path string) (body string, ok bool) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+front+"/v1/admin"+path, http.NoBody)
	require.NoError(t, err)
	req.Header.Set("X-Admin-Key", adminKey)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return string(text), resp.StatusCode == http.StatusOK
}

// leader gives the NATS server that leads the stream of requests.
func (x *distributed) leader(t *testing.T) *natstest.Process {
	t.Helper()
	nc, err := nats.Connect(natstest.URLs(x.nodes))
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	var node int
	await.True(t, func() bool {
		s, err := js.Stream(t.Context(), subject.WorkStream)
		if err != nil {
			return false
		}
		n, err := fmt.Sscanf(s.CachedInfo().Cluster.Leader, "node%d", &node)
		return n == 1 && err == nil
	}, "the stream of requests has a leader")
	return x.nodes[node]
}

// get gets a page.
func get(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode, url)
	return string(text)
}
