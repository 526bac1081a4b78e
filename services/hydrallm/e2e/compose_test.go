//go:build e2e

package e2e

import (
	"context"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/composetest"
)

const (
	question   = "What does a gateway do?"
	gatewayN   = 6            // five services, the mock
	containerN = 2 + gatewayN // and NATS and PostgreSQL
	clients    = 20
)

// A fresh clone comes up with compose, serves the official SDK, scales, keeps the books in PostgreSQL, and stops in order..
func TestCompose(t *testing.T) {
	s := composetest.New(t, "hydrallm-e2e")
	s.Build(t)
	s.Compose(t, "up", "--detach", "--no-build")
	s.AwaitHealthy(t, containerN)
	require.Equal(t, http.StatusOK, status(t, "http://"+s.Front+"/healthz"))
	require.Equal(t, http.StatusOK, status(t, "http://"+s.Front+"/readyz"))
	requireConfined(t, s)

	client := openai.NewClient(option.WithBaseURL("http://"+s.Front+"/v1"), option.WithAPIKey("unused"), option.WithMaxRetries(0))
	models, err := client.Models.List(t.Context())
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(models.Data, func(m openai.Model) bool { return m.ID == "demo" }))

	plain, err := client.Chat.Completions.New(t.Context(), ask("demo"))
	require.NoError(t, err)
	require.Len(t, plain.Choices, 1)
	want := plain.Choices[0].Message.Content
	require.NotEmpty(t, want)

	answer, chunks, err := stream(t.Context(), &client, "demo")
	require.NoError(t, err)
	require.Equal(t, want, answer, "the same question gets the same answer, streamed or not")
	require.Greater(t, chunks, 2, "the answer comes in pieces")

	// The first upstream of this model always fails.
	answer, _, err = stream(t.Context(), &client, "demo-failover")
	require.NoError(t, err)
	require.Equal(t, want, answer)

	s.Compose(t, "up", "--detach", "--no-build", "--no-recreate", "--scale", "enricher=3")
	s.AwaitHealthy(t, containerN+2)
	manyClients(t, &client, want)

	awaitUsage(t, s, clients+3)
	s.Compose(t, "stop")
	for _, state := range s.Containers(t, "{{.Names}} {{.Status}}") {
		if !strings.Contains(state, "postgres") && !strings.Contains(state, "nats") {
			require.Contains(t, state, "Exited (0)")
		}
	}
}

// manyClients streams from several clients at once.
func manyClients(t *testing.T, client *openai.Client, want string) {
	t.Helper()
	answers, errs := make([]string, clients), make([]error, clients)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() { answers[i], _, errs[i] = stream(t.Context(), client, "demo") })
	}
	wg.Wait()
	for i := range clients {
		require.NoError(t, errs[i])
		require.Equal(t, want, answers[i])
	}
}

// awaitUsage waits until the session writer has stored n usage records.
func awaitUsage(t *testing.T, s *composetest.Set, n int) {
	t.Helper()
	var got string
	await.True(t, func() bool {
		got = composetest.Docker(t, "exec", s.Replica(t, "postgres", 1), "psql", "--username", "hydrallm", "--no-align", "--tuples-only",
			"--command", "SELECT count(*) FROM usage_metrics WHERE status = 'success'")
		stored, err := strconv.Atoi(got)
		require.NoError(t, err)
		return stored >= n
	}, "all requests are recorded")
	require.Equal(t, strconv.Itoa(n), got, "each request is recorded once")
}

// requireConfined checks that the containers of the gateway can do no more than serve.
func requireConfined(t *testing.T, s *composetest.Set) {
	t.Helper()
	const format = "{{.Config.Image}}|{{.Config.User}}|{{.HostConfig.ReadonlyRootfs}}|{{.HostConfig.Privileged}}|{{.HostConfig.CapDrop}}|{{.HostConfig.CapAdd}}|{{.HostConfig.SecurityOpt}}"
	seen := 0
	for _, id := range s.Containers(t, "{{.ID}}") {
		image, rest, _ := strings.Cut(composetest.Docker(t, "inspect", "--format", format, id), "|")
		if !strings.HasPrefix(image, "hydrallm/") {
			continue
		}
		seen++
		require.Equal(t, "10001:10001|true|false|[ALL]|[]|[no-new-privileges:true]", rest, image)
		require.Error(t, exec.CommandContext(t.Context(), "docker", "exec", id, "sh", "-c", "true").Run(), "%s has a shell", image)
	}
	require.Equal(t, gatewayN, seen)
}

// status gives the status code of a GET.
func status(t *testing.T, url string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

func ask(model string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(question)}}
}

// stream asks the question and gives the whole answer and the number of chunks.
func stream(ctx context.Context, client *openai.Client, model string) (answer string, chunks int, err error) {
	s := client.Chat.Completions.NewStreaming(ctx, ask(model))
	defer s.Close() //nolint:errcheck // the answer has been read; nothing is lost with the connection
	var text strings.Builder
	for s.Next() {
		chunks++
		for _, choice := range s.Current().Choices {
			text.WriteString(choice.Delta.Content)
		}
	}
	return text.String(), chunks, s.Err()
}
