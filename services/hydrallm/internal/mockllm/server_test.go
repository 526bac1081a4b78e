package mockllm_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/hydrallm/internal/mockllm"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/testkit/goldentest"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var _ lifecycle.Service = (*mockllm.Server)(nil)

func start(t *testing.T, delay time.Duration) *mockllm.Server {
	t.Helper()
	s := mockllm.New(mockllm.Config{Listen: "127.0.0.1:0", Delay: delay})
	require.NoError(t, s.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, s.Stop(context.Background())) })
	return s
}

func call(t *testing.T, s *mockllm.Server, method, path, body string) (status int, kind, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.Addr().String()+path, strings.NewReader(body))
	require.NoError(t, err)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, resp.Header.Get("Content-Type"), string(data)
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		method, path, body string
		status             int
		kind               string
	}{
		"plain":        {http.MethodPost, "/v1/chat/completions", `{"model":"mock","messages":[{"role":"system","content":"be kind"},{"role":"user","content":"hi there"}]}`, 200, "application/json"},
		"parts":        {http.MethodPost, "/v1/chat/completions", `{"model":"mock","messages":[{"role":"user","content":[{"type":"text","text":"one"},{"type":"image_url"},{"type":"text","text":"two"}]}]}`, 200, "application/json"},
		"stream":       {http.MethodPost, "/v1/chat/completions", `{"model":"mock","stream":true,"messages":[{"role":"user","content":"hi"}]}`, 200, "text/event-stream"},
		"stream usage": {http.MethodPost, "/v1/chat/completions", `{"model":"mock","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`, 200, "text/event-stream"},
		"models":       {http.MethodGet, "/v1/models", "", 200, "application/json"},
		"unavailable":  {http.MethodPost, "/v1/chat/completions", `{"model":"unavailable","messages":[{"role":"user","content":"hi"}]}`, 503, "application/json"},
		"no model":     {http.MethodPost, "/v1/chat/completions", `{"model":"gpt","messages":[{"role":"user","content":"hi"}]}`, 404, "application/json"},
		"no messages":  {http.MethodPost, "/v1/chat/completions", `{"model":"mock"}`, 400, "application/json"},
		"not JSON":     {http.MethodPost, "/v1/chat/completions", `{`, 400, "application/json"},
		"other route":  {http.MethodGet, "/v2", "", 404, "application/json"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, 0)
			status, kind, answer := call(t, s, tt.method, tt.path, tt.body)
			require.Equal(t, tt.status, status)
			require.Equal(t, tt.kind, kind)
			goldentest.Compare(t, strings.ReplaceAll(name, " ", "-")+".txt", []byte(answer))
			_, _, again := call(t, s, tt.method, tt.path, tt.body)
			require.Equal(t, answer, again, "the same question gets the same answer")
		})
	}
}

// The words come one by one, each when it is due.
func TestStreamTakesItsTime(t *testing.T) {
	t.Parallel()
	s := start(t, 5*time.Millisecond)
	begun := time.Now()
	_, _, answer := call(t, s, http.MethodPost, "/v1/chat/completions", `{"model":"mock","stream":true,"messages":[{"role":"user","content":"hi"}]}`)
	words := strings.Count(answer, "data: ") - 3 // role, finish, [DONE]
	require.GreaterOrEqual(t, time.Since(begun), time.Duration(words)*5*time.Millisecond)
}

func TestStopCutsOffWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	s := mockllm.New(mockllm.Config{Listen: "127.0.0.1:0", Delay: time.Hour})
	require.NoError(t, s.Stop(t.Context()), "a server that never started can be stopped")
	require.NoError(t, s.Start(t.Context()))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Addr().String()+"/v1/chat/completions",
		strings.NewReader(`{"model":"mock","stream":true,"messages":[{"role":"user","content":"hi"}]}`))
	require.NoError(t, err)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.NoError(t, s.Stop(ctx))
	_, err = io.ReadAll(resp.Body)
	require.Error(t, err)
}
