package binaries

import (
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/machine"
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
		got := client{base: "http://" + addr}.do(t, http.MethodGet, "/metrics", "")
		require.Equal(t, http.StatusOK, got.status)
		require.Contains(t, got.body, want)
		cmd := exec.CommandContext(t.Context(), promtool, "check", "metrics")
		cmd.Stdin = strings.NewReader(got.body)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Empty(t, string(out))
	}
	t.Run("one process", func(t *testing.T) {
		t.Parallel()
		upstream, addr := fakellm.Start(t), freeport.Addr(t)
		run(t, allInOne(t), alone(t, t.TempDir(), addr, upstream.URL())).awaitReady(t, addr)
		talk(t, upstream, client{base: "http://" + addr + "/v1"})
		check(t, addr, `hydrallm_upstream_attempts_total{class="success",upstream="u"}`)
	})
	t.Run("services", func(t *testing.T) {
		t.Parallel()
		f := newFleet(t)
		services := []struct{ name, metric, health string }{
			{"analyzer", "hydrallm_analyzer_requests_total", freeport.Addr(t)},
			{"dispatcher", `hydrallm_upstream_attempts_total{class="success",upstream="u"}`, freeport.Addr(t)},
			{"ingress", "hydrallm_ingress_requests_total", freeport.Addr(t)},
		}
		for _, s := range services {
			f.startAt(t, s.name, s.health).awaitReady(t, s.health)
		}
		talk(t, f.upstream, client{base: "http://" + f.ingress + "/v1"})
		for _, s := range services {
			check(t, s.health, s.metric)
		}
	})
}
