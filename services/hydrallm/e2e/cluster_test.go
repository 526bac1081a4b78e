//go:build e2e

package e2e

import (
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/composetest"
)

// the cluster comes up with three NATS servers that know each service by its key, two of each service and two ingresses, scales, answers with one of the
// servers killed.
func TestComposeCluster(t *testing.T) {
	const size = 15 // three servers, PostgreSQL, two of five services, the mock
	s := composetest.New(t, "hydrallm-e2e", "deploy/cluster/compose.yaml")
	s.MakeIdentities(t)
	s.Build(t)
	s.Compose(t, "up", "--detach", "--no-build")
	s.AwaitHealthy(t, size)
	s.Compose(t, "up", "--detach", "--no-build", "--no-recreate", "--scale", "enricher=4", "--scale", "dispatcher=3")
	s.AwaitHealthy(t, size+3)

	var fronts []*openai.Client
	for _, addr := range []string{s.Front, s.Second} {
		client := openai.NewClient(option.WithBaseURL("http://"+addr+"/v1"), option.WithAPIKey("unused"), option.WithMaxRetries(0))
		fronts = append(fronts, &client)
	}
	want, _, err := stream(t.Context(), fronts[0], "demo")
	require.NoError(t, err)
	require.NotEmpty(t, want)
	s.Compose(t, "kill", "nats-1")
	for _, client := range fronts { // those that were connected to it are back once a request of theirs is answered
		await.True(t, func() bool {
			_, _, err := stream(t.Context(), client, "demo")
			return err == nil
		})
		manyClients(t, client, want)
	}
}
