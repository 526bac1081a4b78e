//go:build e2e

package chaos

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/faultbus"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/testkit/pgtest"
	"hydrallm/shared/testkit/processtest"
)

// processes is a stack of processes on loopback. The first dispatcher reaches NATS through proxies, which are the network that a test takes away.
type processes struct {
	nodes    []*natstest.Process
	postgres *pgtest.Server
	members  []*member
	links    []*faultbus.Proxy // of the first dispatcher
}

// member is one place for a process of a service, which may be filled again and again.
type member struct {
	service string
	binary  string
	config  string
	health  string
	until   *testing.T // to the end of which it runs
	*processtest.Process
}

// runProcesses gives a gateway a stack of processes.
func (x *distributed) runProcesses(t *testing.T) *processes {
	t.Helper()
	s := &processes{nodes: natstest.NewCluster(t, 3), postgres: pgtest.NewServer(t)}
	x.stack, x.fronts = s, []string{freeport.Addr(t), freeport.Addr(t)}
	for _, n := range s.nodes {
		n.Start(t)
	}
	bin := processtest.Services(t, "session-writer", "analyzer", "enricher", "dispatcher", "ingress")
	urls := natstest.URLs(s.nodes)
	var parted []string
	for _, n := range s.nodes {
		link := faultbus.Start(t, n.URL(), 1)
		s.links = append(s.links, link)
		parted = append(parted, link.URL())
	}
	add := func(service, nats, front string) {
		path := filepath.Join(t.TempDir(), "config.yaml")
		config := x.config("127.0.0.1", front[strings.LastIndexByte(front, ':')+1:], s.postgres.Address(), fmt.Sprintf("url: %q", nats))
		require.NoError(t, os.WriteFile(path, config, 0o600))
		s.members = append(s.members, &member{service: service, binary: filepath.Join(bin, service), config: path, health: freeport.Addr(t), until: t})
	}
	for _, service := range []string{"session-writer", "analyzer", "enricher"} {
		for range 2 {
			add(service, urls, x.fronts[0])
		}
	}
	add("dispatcher", strings.Join(parted, ","), x.fronts[0])
	add("dispatcher", urls, x.fronts[0])
	for _, addr := range x.fronts {
		add("ingress", urls, addr)
	}
	for _, m := range s.members {
		m.launch()
	}
	s.awaitReady(t)
	return s
}

// launch fills a place.
func (m *member) launch() {
	m.until.Helper()
	m.Process = processtest.Run(m.until, m.binary, []string{"CONFIG_PATH=" + m.config, "HEALTH_ADDR=" + m.health})
}

func (m *member) kill(t *testing.T) {
	t.Helper()
	m.End(t, syscall.SIGKILL)
}

func (m *member) start(t *testing.T) {
	t.Helper()
	m.launch()
	m.AwaitReady(t, m.health)
}

func (m *member) pause(t *testing.T) {
	t.Helper()
	m.Signal(t, syscall.SIGSTOP)
}

func (m *member) resume(t *testing.T) {
	t.Helper()
	m.Signal(t, syscall.SIGCONT)
}

// awaitReady waits until every process is.
func (s *processes) awaitReady(t *testing.T) {
	t.Helper()
	for _, m := range s.members {
		m.AwaitReady(t, m.health)
	}
}

func (s *processes) first(service string) part {
	for _, m := range s.members {
		if m.service == service {
			return m
		}
	}
	return nil
}

// restartWorkers replaces every process but the ingresses.
func (s *processes) restartWorkers(t *testing.T) {
	t.Helper()
	for _, m := range s.members {
		if m.service != "ingress" {
			m.End(t, syscall.SIGTERM)
			m.start(t)
		}
	}
}

func (s *processes) killDatabase(*testing.T) (start func()) {
	s.postgres.Stop()
	return s.postgres.Start
}

func (s *processes) pull(*testing.T) (join func()) {
	for _, l := range s.links {
		l.Part()
	}
	return func() {
		for _, l := range s.links {
			l.Join()
		}
	}
}

// leader gives the NATS server that leads the stream of requests.
func (s *processes) leader(t *testing.T) part {
	t.Helper()
	nc, err := nats.Connect(natstest.URLs(s.nodes))
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	var node int
	await.True(t, func() bool {
		stream, err := js.Stream(t.Context(), subject.WorkStream)
		if err != nil {
			return false
		}
		n, err := fmt.Sscanf(stream.CachedInfo().Cluster.Leader, "node%d", &node)
		return n == 1 && err == nil
	}, "the stream of requests has a leader")
	return natsNode{s.nodes[node]}
}

// natsNode is a NATS server as a part.
type natsNode struct{ *natstest.Process }

func (n natsNode) kill(*testing.T) { n.Kill() }

func (n natsNode) start(t *testing.T) {
	t.Helper()
	n.Start(t)
}

func (n natsNode) pause(t *testing.T) {
	t.Helper()
	n.Signal(t, syscall.SIGSTOP)
}

func (n natsNode) resume(t *testing.T) {
	t.Helper()
	n.Signal(t, syscall.SIGCONT)
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
