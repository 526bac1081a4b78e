package telemetry_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/telemetry"
)

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	tr := &http.Transport{DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: tr}).Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

// state is what a service says of itself.
type state struct {
	ready   atomic.Bool
	without atomic.Value
}

func (s *state) Ready() bool { return s.ready.Load() }

func (s *state) Degraded() string {
	text, _ := s.without.Load().(string)
	return text
}

func TestHealthServer(t *testing.T) {
	t.Parallel()
	var service state
	h := telemetry.NewHealthServer("127.0.0.1:0", telemetry.NewRegistry("1.2.3"), &service, slog.New(slog.DiscardHandler))
	require.NoError(t, h.Stop(t.Context()), "a server that never started can be stopped")
	require.NoError(t, h.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, h.Stop(context.Background())) })
	root := "http://" + h.Addr().String()

	status, body := get(t, root+"/healthz")
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, `{"status":"ok"}`, body)

	status, _ = get(t, root+"/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	service.ready.Store(true)
	status, body = get(t, root+"/readyz")
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, `{"status":"ready"}`, body)
	service.without.Store("no \"database\"")
	status, body = get(t, root+"/readyz")
	require.Equal(t, http.StatusOK, status, "it works")
	require.JSONEq(t, `{"status":"degraded","reason":"no \"database\""}`, body)

	status, body = get(t, root+"/metrics")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "go_goroutines")
	require.Contains(t, body, "process_start_time_seconds")
	require.Contains(t, body, `hydrallm_build_info{goversion="`+runtime.Version()+`",version="1.2.3"} 1`)

	status, _ = get(t, root+"/other")
	require.Equal(t, http.StatusNotFound, status)
}

func TestHealthServerAddressInUse(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, taken.Close()) })
	h := telemetry.NewHealthServer(taken.Addr().String(), telemetry.NewRegistry("1.2.3"), &state{}, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, h.Start(t.Context()), taken.Addr().String())
	require.NoError(t, h.Stop(t.Context()))
}
