package openclaw

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/answer/answertest"
	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/testkit/fixtures"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) {
	if playProgram() {
		return
	}
	leaktest.Main(m)
}

// seen is a request as the gateway saw it.
type seen struct {
	path, body string
	header     http.Header
}

// gateway answers every request in the same way and tells what it was asked.
func gateway(t *testing.T, status int, contentType string, body []byte) (url string, requests chan seen) {
	t.Helper()
	requests = make(chan seen, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, _ := io.ReadAll(r.Body)
		requests <- seen{r.Method + " " + r.URL.Path, string(got), r.Header}
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = w.Write(body)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1", requests
}

func fixture(t *testing.T, file string) (url string, requests chan seen) {
	t.Helper()
	f := fixtures.Get(file)
	return gateway(t, f.Status, f.Header.Get("Content-Type"), f.Body)
}

func newAgent(t *testing.T, cfg Config) *Agent {
	t.Helper()
	client := upstream.New(upstream.Config{})
	t.Cleanup(client.Close)
	return New(cfg, client)
}

func request(url, model string) upstream.Call {
	return upstream.Call{
		URL: url, Key: "secret", Header: http.Header{"X-Own": {"1"}}, HeadersTimeout: 20 * time.Second, RequestTimeout: 20 * time.Second,
		Body: []byte(`{"model":"` + model + `","user":"u1","temperature":0.50,"messages":[{"role":"user","content":"Which lamp?"}]}`),
	}
}

func readAll(t *testing.T, resp *dialect.Response) string {
	t.Helper()
	defer resp.Close()
	text, err := answertest.Body(resp)
	require.NoError(t, err)
	return text
}

func TestModelsAreAgents(t *testing.T) {
	t.Parallel()
	url, requests := fixture(t, "openclaw/stream-text.sse")
	a := newAgent(t, Config{})
	for model, want := range map[string]struct{ name, header, cli string }{
		"":                  {name: "openclaw/default"},
		"auto":              {name: "openclaw/default"},
		"openclaw":          {name: "openclaw/default"},
		"openclaw/default":  {name: "openclaw/default"},
		"openclaw/research": {name: "openclaw/research"},
		"openclaw:research": {name: "openclaw/research"},
		"agent:research":    {name: "openclaw/research"},
		"research":          {name: "openclaw/research"},
		"vendor/org/xi-1":   {name: "openclaw/default", header: "vendor/org/xi-1"},
	} {
		call := request(url, model)
		sent := string(call.Body)
		resp, err := a.Chat(t.Context(), call)
		require.NoError(t, err)
		require.Equal(t, string(fixtures.Get("openclaw/stream-text.sse").Body), readAll(t, resp))
		got := <-requests
		require.Equal(t, "POST /v1/chat/completions", got.path)
		// Without "user", by which OpenClaw would go on with an older session; all else as it came.
		require.Equal(t, `{"model":"`+want.name+`","temperature":0.50,"messages":[{"role":"user","content":"Which lamp?"}]}`, got.body, model)
		require.Equal(t, want.header, got.header.Get(modelHeader))
		require.Equal(t, "Bearer secret", got.header.Get("Authorization"))
		require.Equal(t, "1", got.header.Get("X-Own"))
		require.Equal(t, sent, string(call.Body), "the body of the call is not changed")
	}
	call := request(url, "vendor/xi-1")
	call.Header.Set(modelHeader, "mine")
	resp, err := a.Chat(t.Context(), call)
	require.NoError(t, err)
	resp.Close()
	require.Equal(t, "mine", (<-requests).header.Get(modelHeader))
}

func TestEmbeddings(t *testing.T) {
	t.Parallel()
	url, requests := gateway(t, 200, "application/json", []byte(`{}`))
	a := newAgent(t, Config{})
	for model, want := range map[string][2]string{
		"":               {"openclaw/default", ""},
		"bge-m3":         {"openclaw/default", "bge-m3"},
		"vendor/emb-1":   {"openclaw/default", "vendor/emb-1"},
		"openclaw/other": {"openclaw/other", ""},
	} {
		call := request(url, model)
		call.Body = []byte(`{"model":"` + model + `","input":["a"]}`)
		resp, err := dialect.Plain(a.Embed(t.Context(), call))
		require.NoError(t, err)
		readAll(t, resp)
		got := <-requests
		require.Equal(t, "POST /v1/embeddings", got.path)
		require.Equal(t, want, [2]string{gjson.Get(got.body, "model").Str, got.header.Get(modelHeader)}, model)
	}
}

// Facts 3.16: errors pass as they come, and mean what they mean.
func TestErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		body   []byte
		want   classify.Class
		sent   int
	}{
		"scope":        {403, fixtures.Get("openclaw/error-403.json").Body, classify.Forbidden, 403},
		"tries":        {429, fixtures.Get("openclaw/error-429-auth.json").Body, classify.Auth, 429}, // of the token, not of the model
		"token":        {401, []byte(`{"error":{"message":"Unauthorized","type":"unauthorized"}}`), classify.Auth, 401},
		"no tool":      {502, []byte(`{"error":{"message":"no tool was called","type":"api_error"}}`), classify.Upstream, 502},
		"temperature":  {400, []byte(`{"error":{"message":"temperature is out of range","type":"invalid_request_error"}}`), classify.Client, 400},
		"no agent":     {400, []byte(`{"error":{"message":"Unknown agent 'x'.","type":"invalid_request_error"}}`), classify.Model, 404},
		"switched off": {404, []byte("Not Found"), classify.Model, 404},
		"starting":     {503, []byte("Plugin runtime is starting"), classify.Upstream, 503},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, _ := gateway(t, c.status, "application/json", c.body)
			resp, err := newAgent(t, Config{}).Chat(t.Context(), request(url, ""))
			require.NoError(t, err)
			require.Equal(t, c.sent, resp.Status)
			text := readAll(t, resp)
			require.Equal(t, string(c.body), text)
			require.Equal(t, c.want, classify.Of(classify.Answer{Status: resp.Status, Header: resp.Header, Body: []byte(text)}).Class)
		})
	}
}

func TestErrorInsideAStream(t *testing.T) {
	t.Parallel()
	url, _ := fixture(t, "openclaw/stream-error.sse")
	resp, err := newAgent(t, Config{}).Chat(t.Context(), request(url, ""))
	require.NoError(t, err)
	require.Equal(t, string(fixtures.Get("openclaw/stream-error.sse").Body), readAll(t, resp))
}

func TestHealth(t *testing.T) {
	t.Parallel()
	a := newAgent(t, Config{})
	url, requests := fixture(t, "openclaw/models-list.json")
	require.NoError(t, a.Health(t.Context(), request(url, ""))) // B-41
	got := <-requests
	require.Equal(t, "GET /v1/models", got.path)
	require.Equal(t, "Bearer secret", got.header.Get("Authorization"))
	off, _ := gateway(t, 404, "text/plain", []byte("Not Found"))
	require.ErrorIs(t, a.Health(t.Context(), request(off, "")), errUnhealthy)
	page, _ := gateway(t, 200, "text/html", []byte("<html>"))
	require.ErrorIs(t, a.Health(t.Context(), request(page, "")), errUnhealthy)
	require.Error(t, a.Health(t.Context(), request(nowhere(t), "")))
}

// nowhere is an address where nobody listens.
func nowhere(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return "http://" + l.Addr().String() + "/v1"
}
