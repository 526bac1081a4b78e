//go:build e2e

package e2e

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/require"
)

const (
	question   = "What does a gateway do?"
	gatewayN   = 6            // five services, the mock
	containerN = 2 + gatewayN // and NATS and PostgreSQL
	clients    = 20
)

// A fresh clone comes up with compose, serves the official SDK, scales, keeps the books in PostgreSQL, and stops in order..
func TestCompose(t *testing.T) {
	s := newStack(t)
	s.run(t, buildLimit, "build", "--quiet")
	s.run(t, callLimit, "up", "--detach", "--no-build")
	s.awaitHealthy(t, containerN)
	require.Equal(t, http.StatusOK, s.status(t, "/healthz"))
	require.Equal(t, http.StatusOK, s.status(t, "/readyz"))
	requireConfined(t)

	client := openai.NewClient(option.WithBaseURL(s.url("/v1")), option.WithAPIKey("unused"), option.WithMaxRetries(0))
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

	s.run(t, callLimit, "up", "--detach", "--no-build", "--no-recreate", "--scale", "enricher=3")
	s.awaitHealthy(t, containerN+2)
	manyClients(t, &client, want)

	s.awaitUsage(t, clients+3)
	s.run(t, callLimit, "stop")
	for _, state := range containers(t, "{{.Names}} {{.Status}}") {
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
func (s *stack) awaitUsage(t *testing.T, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), readyLimit)
	defer cancel()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		out := s.output(t, callLimit, "exec", "-T", "postgres", "psql", "--username", "hydrallm", "--no-align", "--tuples-only",
			"--command", "SELECT count(*) FROM usage_metrics WHERE status = 'success'")
		got, err := strconv.Atoi(strings.TrimSpace(out))
		require.NoError(t, err)
		if got >= n {
			require.Equal(t, n, got, "each request is recorded once")
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%d of %d requests are recorded", got, n)
		case <-ticker.C:
		}
	}
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
