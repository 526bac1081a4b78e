package binaries

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/machine"
	"hydrallm/shared/testkit/processtest"
)

// what Prometheus reads after some traffic is what its own tool finds nothing to say about, of the whole gateway and of each service.
func TestMetricsForPrometheus(t *testing.T) {
	t.Parallel()
	promtool := machine.Program(t, "promtool")
	talk := func(t *testing.T, upstream *fakellm.Server, c client) {
		t.Helper()
		upstream.Queue(fakellm.Error(http.StatusTooManyRequests, "slow down"), fakellm.Error(http.StatusUnauthorized, "no"))
		upstream.Handle(fakellm.Talk("hello world"))
		for _, model := range []string{"m", "m", "m", "p/real", "nothing"} {
			c.ask(t, model)
		}
		require.Equal(t, http.StatusOK, c.do(t, http.MethodPost, "/chat/completions", question("m", true)).status)
	}
	check := func(t *testing.T, addr, want string) {
		t.Helper()
		var got reply
		await.True(t, func() bool { // a stage may count a request after it has gone on
			got = client{base: "http://" + addr}.do(t, http.MethodGet, "/metrics", "")
			return strings.Contains(got.body, want)
		}, want)
		require.Equal(t, http.StatusOK, got.status)
		cmd := exec.CommandContext(t.Context(), promtool, "check", "metrics")
		cmd.Stdin = strings.NewReader(got.body)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Empty(t, string(out))
	}
	t.Run("one process", func(t *testing.T) {
		t.Parallel()
		upstream, addr := fakellm.Start(t), freeport.Addr(t)
		processtest.Run(t, processtest.AllInOne(t), alone(t, t.TempDir(), addr, upstream.URL())).AwaitReady(t, addr)
		talk(t, upstream, client{base: "http://" + addr + "/v1"})
		check(t, addr, `hydrallm_upstream_attempts_total{class="success",upstream="u"}`)
	})
	t.Run("services", func(t *testing.T) {
		t.Parallel()
		f := newFleet(t)
		processtest.Services(t, "enricher")
		f.readPages(t)
		services := []struct{ name, metric, health string }{
			{"analyzer", "hydrallm_analyzer_requests_total", freeport.Addr(t)},
			{"dispatcher", `hydrallm_upstream_attempts_total{class="success",upstream="u"}`, freeport.Addr(t)},
			{"enricher", `hydrallm_enricher_requests_total{end="injected"} 1`, freeport.Addr(t)},
			{"session-writer", "hydrallm_session_writer_requests_total", freeport.Addr(t)},
			{"ingress", "hydrallm_ingress_requests_total", freeport.Addr(t)},
		}
		for _, s := range services {
			f.startAt(t, s.name, s.health).AwaitReady(t, s.health)
		}
		c := client{base: "http://" + f.ingress + "/v1"}
		talk(t, f.upstream, c)
		about := strings.Replace(question("m", false), "hi", "what does "+f.upstream.URL()+"/page say", 1)
		require.Equal(t, http.StatusOK, c.do(t, http.MethodPost, "/chat/completions", about).status)
		for _, s := range services {
			check(t, s.health, s.metric)
		}
	})
}

// readPages changes the configuration so that the requests for "m" pass the enricher, which may read the page of the fake upstream.
func (f *fleet) readPages(t *testing.T) {
	t.Helper()
	f.upstream.Page("/page", "<html><body><article><h1>A page</h1><p>This is a text about the lamp that is long enough to be an article.</p></article></body></html>")
	text, err := os.ReadFile(f.config)
	require.NoError(t, err)
	for old, ours := range map[string]string{
		"{name: m, upstreams: [u]}": "{name: m, upstreams: [u], pipeline: true}",
		"web: {enabled: false}": fmt.Sprintf("web: {browser: never, search: [searxng], searxng_url: %q, allow_hosts: [127.0.0.1], intent: {embedding_url: %[1]q}}",
			f.upstream.URL()),
	} {
		require.Contains(t, string(text), old)
		text = []byte(strings.Replace(string(text), old, ours, 1))
	}
	require.NoError(t, os.WriteFile(f.config, text, 0o600))
}
