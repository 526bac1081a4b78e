package ingress_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"
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

// the client's trace goes on in the pipeline.
func TestTraceGoesOn(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	traces := make(chan string, 1)
	g.work(func(ctx context.Context, r *reply) {
		traces <- trace.SpanContextFromContext(ctx).TraceID().String()
		echo(ctx, r)
	})
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	g.chat(chatBody, "Traceparent", "00-"+id+"-00f067aa0ba902b7-01")
	require.Equal(t, id, <-traces)
	g.chat(chatBody, "Traceparent", "00-broken")
	require.NotEqual(t, id, <-traces)
}

// The envelope says all that later stages need to know without reading the body.
func TestEnvelope(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	seen := make(chan *reply, 1)
	g.work(func(ctx context.Context, r *reply) {
		seen <- r
		echo(ctx, r)
	})
	g.chat(`{"session_id":"s","model":"\u006d/x:y","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`)
	r := (<-seen).work.Request
	require.Equal(t, "m/x:y", r.Model)
	require.Equal(t, "s", r.SessionID)
	require.True(t, r.Stream)
	require.True(t, r.IncludeUsage)
	require.Equal(t, "ingress-test", r.Ingress)
	require.Equal(t, testWait, r.StartBy.Sub(r.ReceivedAt).Round(testWait/100))
	g.chat(chatBody)
	r = (<-seen).work.Request
	require.False(t, r.Stream)
	require.False(t, r.IncludeUsage)
	require.Empty(t, r.SessionID)
}
