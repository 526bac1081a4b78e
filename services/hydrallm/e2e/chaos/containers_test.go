//go:build e2e

package chaos

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/composetest"
)

// containers is a stack of containers: the cluster of deploy/cluster on the Docker engine of this machine.
type containers struct {
	set *composetest.Set
	ids map[string][]string // of each service, the first one first
}

const containersProject = "hydrallm-chaos"

// replicated are the services of which deploy/cluster has two under one name.
var replicated = []string{"session-writer", "analyzer", "enricher", "dispatcher"}

// engineAddress is where containers reach this machine.
func engineAddress(t *testing.T) string {
	t.Helper()
	composetest.RequireEngine(t)
	return composetest.Docker(t, "network", "inspect", "--format", "{{(index .IPAM.Config 0).Gateway}}", "bridge")
}

// runContainers gives a gateway a stack of containers.
func (x *distributed) runContainers(t *testing.T) {
	t.Helper()
	set := composetest.New(t, containersProject, "deploy/cluster/compose.yaml")
	set.MakeIdentities(t)
	config := filepath.Join(set.Dir, "chaos.yaml")
	require.NoError(t, os.WriteFile(config, x.config("0.0.0.0", "8100", "${DATABASE_URL}",
		`url: "${NATS_URL}", ca: "${NATS_CA}", nkey_seed_file: "${NATS_NKEY_SEED}", work_storage: file`), 0o600))
	require.NoError(t, os.Chmod(config, 0o644)) // containers have a user of their own
	set.Setenv("HYDRALLM_CONFIG", config)
	set.Build(t)
	set.Compose(t, "up", "--detach", "--no-build")
	s := &containers{set: set, ids: map[string][]string{}}
	for _, service := range []string{"nats", "nats-1", "nats-2", "postgres", "ingress", "ingress-2"} {
		s.ids[service] = []string{set.Replica(t, service, 1)}
	}
	for _, service := range replicated {
		s.ids[service] = []string{set.Replica(t, service, 1), set.Replica(t, service, 2)}
	}
	x.stack, x.fronts = s, []string{set.Front, set.Second}
	s.awaitReady(t)
}

// container is one container, by its id.
type container string

func (c container) kill(t *testing.T) {
	t.Helper()
	composetest.Docker(t, "kill", "--signal", "KILL", string(c))
}

func (c container) start(t *testing.T) {
	t.Helper()
	composetest.Docker(t, "start", string(c))
	c.awaitReady(t)
}

// pause repeats what an engine on a busy machine may not be able to do at once.
func (c container) pause(t *testing.T) {
	t.Helper()
	await.True(t, func() bool { return exec.CommandContext(t.Context(), "docker", "pause", string(c)).Run() == nil }, "the container is paused")
}

func (c container) resume(t *testing.T) {
	t.Helper()
	composetest.Docker(t, "unpause", string(c))
}

// awaitReady asks what the engine asks for the health of the container, but at once.
func (c container) awaitReady(t *testing.T) {
	t.Helper()
	var check []string
	require.NoError(t, json.Unmarshal([]byte(composetest.Docker(t, "inspect", "--format", "{{json .Config.Healthcheck.Test}}", string(c))), &check))
	require.Equal(t, "CMD", check[0])
	args := append([]string{"exec", string(c)}, check[1:]...)
	await.True(t, func() bool { return exec.CommandContext(t.Context(), "docker", args...).Run() == nil }, check, "succeeds")
}

func (s *containers) awaitReady(t *testing.T) {
	t.Helper()
	for _, ids := range s.ids {
		for _, id := range ids {
			container(id).awaitReady(t)
		}
	}
}

func (s *containers) first(service string) part { return container(s.ids[service][0]) }

// leader asks a server for its figures: who may look at streams is none of the identities.
func (s *containers) leader(t *testing.T) part {
	t.Helper()
	var name string
	await.True(t, func() bool {
		all := composetest.Docker(t, "exec", s.ids["nats"][0], "wget", "-q", "-O", "-", "http://127.0.0.1:8222/jsz?accounts=true&streams=true")
		name = gjson.Get(all, `account_details.#.stream_detail|@flatten|#(name=="`+subject.WorkStream+`").cluster.leader`).Str
		return name != ""
	}, "the stream of requests has a leader")
	return s.first(name) // a server has the name of its service
}

func (s *containers) killDatabase(t *testing.T) (start func()) {
	t.Helper()
	p := s.first("postgres")
	p.kill(t)
	return func() { p.start(t) }
}

// pull takes the dispatcher out of the network that NATS is in. It keeps the one that its upstreams are in.
func (s *containers) pull(t *testing.T) (join func()) {
	t.Helper()
	const network = containersProject + "_backend"
	id := s.ids["dispatcher"][0]
	composetest.Docker(t, "network", "disconnect", network, id)
	return func() { composetest.Docker(t, "network", "connect", "--alias", "dispatcher", network, id) }
}

func (s *containers) restartWorkers(t *testing.T) {
	t.Helper()
	for _, service := range replicated {
		for _, id := range s.ids[service] {
			composetest.Docker(t, "stop", id)
			container(id).start(t)
		}
	}
}
