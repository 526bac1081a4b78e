//go:build e2e

package e2e

import (
	"os/exec"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/await"
)

// the cluster comes up with three NATS servers that know each service by its key, two of each service and two ingresses, scales, answers with one of the
// servers killed.
func TestComposeCluster(t *testing.T) {
	const size = 15 // three servers, PostgreSQL, two of five services, the mock
	s := newStack(t, "deploy/cluster/compose.yaml")
	made := exec.CommandContext(t.Context(), "deploy/nats/identities.sh", "deploy/nats/identities")
	made.Dir = s.dir
	out, err := made.CombinedOutput()
	require.NoError(t, err, "%s", out)
	s.run(t, buildLimit, "build", "--quiet")
	s.run(t, callLimit, "up", "--detach", "--no-build")
	s.awaitHealthy(t, size)
	s.run(t, callLimit, "up", "--detach", "--no-build", "--no-recreate", "--scale", "enricher=4", "--scale", "dispatcher=3")
	s.awaitHealthy(t, size+3)

	var fronts []*openai.Client
	for _, addr := range []string{s.addr, s.second} {
		client := openai.NewClient(option.WithBaseURL("http://"+addr+"/v1"), option.WithAPIKey("unused"), option.WithMaxRetries(0))
		fronts = append(fronts, &client)
	}
	want, _, err := stream(t.Context(), fronts[0], "demo")
	require.NoError(t, err)
	require.NotEmpty(t, want)
	s.run(t, callLimit, "kill", "nats-1")
	for _, client := range fronts { // those that were connected to it are back once a request of theirs is answered
		await.True(t, func() bool {
			_, _, err := stream(t.Context(), client, "demo")
			return err == nil
		})
		manyClients(t, client, want)
	}
}
