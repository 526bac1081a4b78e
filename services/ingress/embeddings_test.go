package ingress_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/ingress"
	"hydrallm/shared/contract"
	"hydrallm/shared/testkit/await"
)

const (
	embedBody   = `{"model":"e","input":["a","b"],"encoding_format":"base64","dimensions":2.0e2,"session_id":"s"}`
	embedAnswer = `{"object":"list","data":[],"model":"e"}`
)

func (g *gateway) embed(body string, header ...string) answer {
	g.t.Helper()
	return g.do(http.MethodPost, "/v1/embeddings", strings.NewReader(body), header...)
}

// embedding answers embeddings requests.
func embedding(ctx context.Context, r *reply) {
	_ = r.head("application/json")
	_ = r.Data(ctx, []byte(embedAnswer))
	_ = r.end()
}

// the body travels as it came, and the envelope says what it is.
func TestEmbeddings(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	seen := make(chan *reply, 1)
	g.work(func(ctx context.Context, r *reply) {
		seen <- r
		embedding(ctx, r)
	})
	for _, path := range []string{"/v1/embeddings", "/v1/embeddings/", "/v1/embeddings?x=1"} {
		a := g.do(http.MethodPost, path, strings.NewReader(embedBody))
		require.Equal(t, http.StatusOK, a.StatusCode, a.body)
		require.Equal(t, embedAnswer, a.body)
		require.NotEmpty(t, a.Header.Get("X-Request-Id"))
		r := (<-seen).work
		require.Equal(t, contract.Embeddings, r.Request.Operation)
		require.Equal(t, "e", r.Request.Model)
		require.Empty(t, r.Request.SessionID, "vectors belong to no session")
		require.False(t, r.Request.Stream)
		require.Equal(t, embedBody, string(r.Body))
		require.Equal(t, testWait, r.Request.StartBy.Sub(r.Request.ReceivedAt).Round(testWait/100))
	}
	text := g.do(http.MethodGet, "/metrics", nil).body
	require.Contains(t, text, `hydrallm_ingress_requests_total{class="2xx",route="embeddings"} 3`)
	require.Contains(t, text, `hydrallm_ingress_requests_total{class="2xx",route="chat"} 0`)
}

// As many inputs as there may be reach the worker in one piece, and their vectors the client.
func TestEmbeddingsOfManyInputs(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	bodies := make(chan string, 1)
	big := strings.Repeat("x", 128<<10)
	g.work(func(ctx context.Context, r *reply) {
		bodies <- string(r.work.Body)
		_ = r.head("application/json")
		for range 16 {
			_ = r.send(ctx, big)
		}
		_ = r.end()
	})
	text := `"` + strings.Repeat("word ", 100) + `"`
	body := `{"model":"e","input":[` + strings.Repeat(text+",", 2047) + text + `]}`
	a := g.embed(body)
	require.Equal(t, http.StatusOK, a.StatusCode)
	require.Len(t, a.body, 2<<20)
	require.Equal(t, body, <-bodies)

	message, _ := requireError(t, g.embed(`{"model":"e","input":[`+strings.Repeat(`"a",`, 2048)+`"a"]}`), http.StatusBadRequest)
	require.Contains(t, message, "2048")
}

// none of these reaches the pipeline.
func TestBadEmbeddings(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) { c.MaxBody = testLimit }) // no worker: what is accepted would never be answered
	tests := map[string]struct {
		body, code, param string
		status            int
	}{
		"empty":           {"", "invalid_json", "", 400},
		"broken":          {"{broken", "invalid_json", "", 400},
		"no model":        {`{"input":"a"}`, "missing_required_parameter", `"model"`, 400},
		"long model":      {`{"input":"a","model":"` + strings.Repeat("m", 600) + `"}`, "invalid_value", `"model"`, 400},
		"no input":        {`{"model":"e"}`, "missing_required_parameter", `"input"`, 400},
		"empty input":     {`{"model":"e","input":[""]}`, "invalid_value", `"input"`, 400},
		"wrong format":    {`{"model":"e","input":"a","encoding_format":"hex"}`, "invalid_value", `"encoding_format"`, 400},
		"duplicate input": {`{"model":"e","input":"a","input":"b"}`, "duplicate_parameter", `"input"`, 400},
		"too large":       {`{"model":"e","input":"` + strings.Repeat("a", testLimit) + `"}`, "request_too_large", "null", 413},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, body := range []io.Reader{strings.NewReader(tt.body), io.MultiReader(strings.NewReader(tt.body))} {
				a := g.do(http.MethodPost, "/v1/embeddings", body)
				_, code := requireError(t, a, tt.status)
				require.Equal(t, tt.code, code)
				if tt.param != "" && tt.param != "null" {
					require.Contains(t, a.body, `"param":`+tt.param)
				}
			}
		})
	}
}

// The rules of the chat route hold here, too: keys, methods, CORS, encodings, ids.
func TestEmbeddingsRoute(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) { c.ClientKeys, c.CORSOrigins = []string{clientKey}, []string{origin} })
	g.work(embedding)
	key := []string{"Authorization", "Bearer " + clientKey, "Origin", origin}
	requireError(t, g.embed("{broken"), http.StatusUnauthorized)
	a := g.embed(embedBody, append(key, "X-Request-Id", "mine")...)
	require.Equal(t, http.StatusOK, a.StatusCode, a.body)
	require.Equal(t, "mine", a.Header.Get("X-Request-Id"))
	require.Equal(t, origin, a.Header.Get("Access-Control-Allow-Origin"))
	requireError(t, g.embed(embedBody, append(key, "Content-Encoding", "br")...), http.StatusUnsupportedMediaType)

	a = g.do(http.MethodGet, "/v1/embeddings", nil, key...)
	requireError(t, a, http.StatusMethodNotAllowed)
	require.Equal(t, "POST", a.Header.Get("Allow"))
	a = g.do(http.MethodOptions, "/v1/embeddings", nil, "Origin", origin, "Access-Control-Request-Method", "POST")
	require.Equal(t, http.StatusNoContent, a.StatusCode)
	require.Equal(t, "POST, OPTIONS", a.Header.Get("Allow"))
	require.Equal(t, origin, a.Header.Get("Access-Control-Allow-Origin"))
	requireError(t, g.do(http.MethodPost, "/v1/embeddings/x", strings.NewReader(embedBody), key...), http.StatusNotFound)
}

// whoever waits for vectors and leaves stops the work for them.
func TestEmbeddingsClientLeaves(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	begun, cancelled := make(chan struct{}), make(chan struct{})
	g.work(func(_ context.Context, r *reply) {
		close(begun)
		<-r.gone
		close(cancelled)
	})
	conn := dial(t, g.addr)
	_, err := fmt.Fprintf(conn, "POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(embedBody), embedBody)
	require.NoError(t, err)
	await.Value(t, begun)
	require.NoError(t, conn.Close())
	await.Value(t, cancelled)
	await.True(t, func() bool {
		return strings.Contains(g.do(http.MethodGet, "/metrics", nil).body, `unfinished_total{reason="gone"} 1`)
	})
}

// A worker that nobody is gives the same answer as for chat.
func TestEmbeddingsWithoutAWorker(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) { c.QueueTimeout = 100 * time.Millisecond })
	a := g.embed(embedBody)
	_, code := requireError(t, a, http.StatusServiceUnavailable)
	require.Equal(t, "queue_timeout", code)
	require.NotEmpty(t, a.Header.Get("Retry-After"))
}
