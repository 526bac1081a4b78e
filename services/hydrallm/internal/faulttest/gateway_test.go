package faulttest

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/hydrallm/internal/gatewaytest"
	"hydrallm/shared/config"
	"hydrallm/shared/config/configtest"
	"hydrallm/shared/process"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
)

// faultRun is a gateway with its upstreams.
type faultRun struct {
	seed      uint64
	upstreams map[string]*fakellm.Server
	url       string
	log       watch
	stop      func() error

	client  *http.Client
	lag     time.Duration // the worst that was measured
	mu      sync.Mutex
	played  map[string]int // faults by name
	results map[int]result // by number of the question
}

var names = []string{"a", "b", "c"}

func start(t *testing.T, seed uint64, listen bool) *faultRun {
	t.Helper()
	x := &faultRun{seed: seed, upstreams: map[string]*fakellm.Server{}, played: map[string]int{}, results: map[int]result{}}
	for _, name := range names {
		x.upstreams[name] = fakellm.Start(t)
		x.upstreams[name].Handle(func(r fakellm.Request) fakellm.Answer { return x.play(name, r) })
	}
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	x.client = &http.Client{Transport: transport}
	t.Cleanup(transport.CloseIdleConnections)
	s := x.settings(t, listen)
	x.url = "http://" + s.Server.Bind()
	x.stop = gatewaytest.Run(t, s, slog.New(slog.NewTextHandler(&x.log, nil)))
	return x
}

// play answers one upstream call.
func (x *faultRun) play(upstream string, r fakellm.Request) fakellm.Answer {
	n, err := numberOf(r.Body)
	if err != nil {
		return fakellm.Error(http.StatusTeapot, err.Error())
	}
	name, answer := answerOf(x.seed, upstream, r.Key(), newQuestion(x.seed, n))
	x.mu.Lock()
	defer x.mu.Unlock()
	x.played[name]++
	return answer
}

// settings has limits that are short, so that a run ends soon, and upstreams that are full or open now and then.
func (x *faultRun) settings(t *testing.T, listen bool) process.Settings {
	t.Helper()
	dir, store := t.TempDir(), ""
	if listen {
		store = fmt.Sprintf(`listen: "127.0.0.1:%d", `, freeport.Port(t))
	}
	text := fmt.Sprintf(`
server: {host: 127.0.0.1, port: %d, drain_timeout: 1m, admin_key: %s}
providers:
  - {id: pa, url: "%[3]s/v1", key: %[6]s-a, max_concurrency: 20}
  - {id: pb, url: "%[4]s/v1", key: %[6]s-b, max_concurrency: 20, think_tags: split}
  - {id: pc, url: "%[5]s/v1", key: %[6]s-c, max_concurrency: 12, session_header: X-Session}
upstreams:
  - {id: a, provider: pa, model: real-a}
  - {id: b, provider: pb, model: real-b}
  - {id: c, provider: pc, model: real-c}
models: [{name: m, upstreams: [a, b, c]}]
resilience:
  headers_timeout: 600ms
  stream_gate_timeout: 300ms
  idle_timeout: 600ms
  request_timeout: 1500ms
  request_deadline: 4s
  breaker: {channel: {consecutive: 12, open_for: 50ms, half_open: true}}
routing: {final_fallback: "", aliases: {}}
sessions: {database: "sqlite:%[7]s/hydrallm.db"}
nats: {%[8]sstore_dir: "%[7]s/nats"}
`, freeport.Port(t), adminKey, x.upstreams["a"].URL(), x.upstreams["b"].URL(), x.upstreams["c"].URL(), providerKey, dir, store)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(text), 0o600))
	s, err := process.LoadFrom(config.Environment{Dir: dir, Lookup: configtest.Variables(nil)}, process.Overrides{})
	require.NoError(t, err)
	require.Empty(t, s.Warnings)
	return s
}

// watch keeps the lines of a log that must not be there.
type watch struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (w *watch) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if bytes.Contains(p, []byte("level=ERROR")) || bytes.Contains(p, []byte(providerKey)) {
		w.buf.Write(p[:min(len(p), 4<<10)])
	}
	return len(p), nil
}

func (w *watch) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}

// admin asks the admin API.
func (x *faultRun) admin(t *testing.T, what string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, x.url+"/v1/admin/"+what, http.NoBody)
	require.NoError(t, err)
	req.Header.Set("X-Admin-Key", adminKey)
	resp, err := x.client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close() //nolint:errcheck // only read
	var text bytes.Buffer
	_, err = text.ReadFrom(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode, text.String())
	return text.String()
}
