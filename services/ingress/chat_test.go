package ingress_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestChatRoundTrip(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	bodies := make(chan string, 1)
	g.work(func(ctx context.Context, r *reply) {
		bodies <- string(r.work.Body)
		echo(ctx, r)
	})
	for range 3 {
		a := g.chat(chatBody)
		require.Equal(t, http.StatusOK, a.StatusCode, a.body)
		require.Equal(t, answerJSON, a.body)
		require.Equal(t, "application/json", a.Header.Get("Content-Type"))
		require.Equal(t, "up", a.Header.Get("X-Gateway-Model"))
		require.Equal(t, int64(len(answerJSON)), a.ContentLength)
		require.NotEmpty(t, a.Header.Get("X-Request-Id"))
		require.NotEmpty(t, a.Header.Get("Date"))
		require.Empty(t, a.Header.Get("Server"))
		require.Equal(t, chatBody, <-bodies)

		a = g.chat(streamBody)
		require.Equal(t, http.StatusOK, a.StatusCode, a.body)
		require.Equal(t, "data: one\n\ndata: two\n\ndata: [DONE]\n\n", a.body)
		require.Equal(t, "text/event-stream", a.Header.Get("Content-Type"))
		require.Equal(t, "no-cache", a.Header.Get("Cache-Control"))
		require.Equal(t, "no", a.Header.Get("X-Accel-Buffering"))
		require.Equal(t, int64(-1), a.ContentLength)
		require.Equal(t, streamBody, <-bodies)
	}
}
