package ingress_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/ingress"
	"hydrallm/shared/contract"
	"hydrallm/shared/openai/rawjson"
)

const messageBody = `{"model":"m","max_tokens":9,"stream":false,"session_id":"s1","messages":[{"role":"user","content":"hi"}]}`

// the body travels as it came, and the envelope says what it is.
func TestMessages(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	seen := make(chan *reply, 1)
	g.work(func(ctx context.Context, r *reply) {
		seen <- r
		echo(ctx, r)
	})
	a := g.do(http.MethodPost, "/v1/messages?beta=true", strings.NewReader(messageBody), "anthropic-version", "2023-06-01", "anthropic-beta", "one,two", "x-stainless-lang", "js")
	require.Equal(t, http.StatusOK, a.StatusCode, a.body)
	require.Equal(t, a.Header.Get("X-Request-Id"), a.Header.Get("Request-Id"))
	r := (<-seen).work
	require.Equal(t, contract.Chat, r.Request.Operation)
	require.Equal(t, contract.SurfaceMessages, r.Request.Surface)
	require.Equal(t, contract.EndpointMessages, r.Request.Endpoint())
	require.Equal(t, "s1", r.Request.SessionID)
	require.Equal(t, messageBody, string(r.Body))
	require.Equal(t, [][2]string{{"Anthropic-Version", "2023-06-01"}, {"Anthropic-Beta", "one,two"}}, r.Request.Headers)
	require.Contains(t, g.do(http.MethodGet, "/metrics", nil).body, `hydrallm_ingress_requests_total{class="2xx",route="messages"} 1`)
}

// counting is an operation of its own, without a stream.
func TestCountTokens(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	seen := make(chan *reply, 1)
	g.work(func(ctx context.Context, r *reply) {
		seen <- r
		echo(ctx, r)
	})
	require.Equal(t, http.StatusOK, g.do(http.MethodPost, "/v1/messages/count_tokens?beta=true", strings.NewReader(messageBody)).StatusCode)
	r := (<-seen).work
	require.Equal(t, contract.CountTokens, r.Request.Operation)
	require.Equal(t, int64(1), r.Request.Traits.Tokens)
	require.False(t, r.Request.Stream)
	require.Empty(t, r.Request.SessionID)
	require.Equal(t, contract.Slip{contract.StageReceived, contract.StageEnriched}, r.Request.Slip, "the model is not configured here")
}

// every error below the path of a surface is in its form, with the id that its clients look for.
func TestErrorsOfMessages(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) { c.ClientKeys = []string{"the-key-of-a-client"} })
	g.work(echo)
	for name, tt := range map[string]struct {
		method, path, body, key string
		status                  int
		kind                    string
	}{
		"no key":            {http.MethodPost, "/v1/messages", messageBody, "", 401, "authentication_error"},
		"no such operation": {http.MethodPost, "/v1/messages/batches", "", "the-key-of-a-client", 404, "not_found_error"},
		"base twice":        {http.MethodPost, "/v1/v1/messages", "", "the-key-of-a-client", 404, "not_found_error"},
		"base without v1":   {http.MethodPost, "/messages", "", "the-key-of-a-client", 404, "not_found_error"},
		"wrong method":      {http.MethodGet, "/v1/messages", "", "the-key-of-a-client", 405, "invalid_request_error"},
		"bad path":          {http.MethodPost, "/v1/messages/../x", "", "the-key-of-a-client", 400, "invalid_request_error"},
		"no JSON":           {http.MethodPost, "/v1/messages", "{", "the-key-of-a-client", 400, "invalid_request_error"},
		"no messages":       {http.MethodPost, "/v1/messages", `{"model":"m"}`, "the-key-of-a-client", 400, "invalid_request_error"},
	} {
		a := g.do(tt.method, tt.path, strings.NewReader(tt.body), "x-api-key", tt.key)
		require.Equal(t, tt.status, a.StatusCode, name)
		require.True(t, json.Valid([]byte(a.body)), name)
		body := []byte(a.body)
		require.Equal(t, "error", rawjson.Text(rawjson.Get(body, "type")), name)
		require.Equal(t, tt.kind, rawjson.Text(rawjson.Get(rawjson.Get(body, "error"), "type")), name)
		require.NotEmpty(t, rawjson.Text(rawjson.Get(rawjson.Get(body, "error"), "message")))
		require.Equal(t, a.Header.Get("Request-Id"), rawjson.Text(rawjson.Get(body, "request_id")), name)
		require.NotEmpty(t, a.Header.Get("Request-Id"))
	}
}

// a client of Anthropic lists models in its own words.
func TestModelsOfMessages(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) {
		c.Models = []ingress.Model{{ID: "a/b"}, {ID: "c"}}
		c.ClientKeys = []string{"the-key-of-a-client"}
	})
	ask := func(path, key string, status int) string {
		t.Helper()
		a := g.do(http.MethodGet, path, nil, "anthropic-version", "2023-06-01", "x-api-key", key)
		require.NotEmpty(t, a.Header.Get("Request-Id"))
		require.Equal(t, status, a.StatusCode)
		return a.body
	}
	const key = "the-key-of-a-client"
	body := ask("/v1/models?limit=1", key, http.StatusOK)
	require.Contains(t, body, `{"data":[{"type":"model","id":"a/b",`)
	require.Contains(t, body, `"has_more":true`)
	require.Contains(t, ask("/v1/models?after_id=a%2Fb", key, http.StatusOK), `"last_id":"c"`)
	require.Contains(t, ask("/v1/models/a%2Fb", key, http.StatusOK), `"display_name":"a/b"`)
	for path, status := range map[string]int{"/v1/models/x": 404, "/v1/models?limit=0": 400, "/v1/models?limit=x": 400, "/v1/models?after_id=x": 400} {
		require.Contains(t, ask(path, key, status), `{"type":"error",`)
	}
	require.Contains(t, ask("/v1/models", "wrong", http.StatusUnauthorized), `"type":"authentication_error"`)
	require.Contains(t, g.do(http.MethodGet, "/v1/models", nil, "x-api-key", key).body, `"object":"list"`)
}
