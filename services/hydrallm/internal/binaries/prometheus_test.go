package binaries

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/machine"
	"hydrallm/shared/testkit/processtest"
)

// prometheus is the API of a Prometheus.
type prometheus struct{ client }

// startPrometheus runs Prometheus with the alerts of the project until the end of the test. It scrapes the gateway at an address.
func startPrometheus(t *testing.T, gateway string) prometheus {
	t.Helper()
	program := machine.Program(t, "prometheus")
	alerts, err := filepath.Abs(observability + "alerts.yml")
	require.NoError(t, err)
	dir, addr := t.TempDir(), freeport.Addr(t)
	file := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
  - job_name: hydrallm
    static_configs: [{targets: [%q]}]
`, alerts, gateway), 0o600))
	w := processtest.Start(t, exec.Command(program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr))
	await.True(t, func() bool { return reachable(t, addr) || w.Ended() })
	require.False(t, w.Ended(), "prometheus ended at start:\n%s", w.Log.String())
	p := prometheus{client{base: "http://" + addr}}
	await.True(t, func() bool { return w.Ended() || p.do(t, http.MethodGet, "/-/ready", "").status == http.StatusOK })
	require.False(t, w.Ended(), "prometheus ended at start:\n%s", w.Log.String())
	return p
}

// query gives what comes of an expression now, which must be one that can be evaluated.
func (p prometheus) query(t *testing.T, expr string) []gjson.Result {
	t.Helper()
	got := p.do(t, http.MethodGet, "/api/v1/query?query="+url.QueryEscape(expr), "")
	require.Equal(t, http.StatusOK, got.status, "%s: %s", expr, got.body)
	require.Equal(t, "success", gjson.Get(got.body, "status").Str, "%s: %s", expr, got.body)
	require.Empty(t, gjson.Get(got.body, "warnings").Array(), "%s: %s", expr, got.body)
	return gjson.Get(got.body, "data.result").Array()
}

// alerts are the rules as Prometheus has them.
func (p prometheus) alerts(t *testing.T) []gjson.Result {
	t.Helper()
	return gjson.Get(p.do(t, http.MethodGet, "/api/v1/rules?type=alert", "").body, "data.groups.#.rules|@flatten").Array()
}

// a Prometheus that scrapes a gateway has something to show in each panel of the dashboard, and evaluates each alert. Those whose cause is there
// are raised, the others are not.
func TestDashboardAndAlertsOfARunningGateway(t *testing.T) {
	t.Parallel()
	upstream, addr := fakellm.Start(t), freeport.Addr(t)
	talk := fakellm.Talk("hello world")
	upstream.Handle(func(r fakellm.Request) fakellm.Answer {
		if r.Model() != "real" {
			return fakellm.Error(http.StatusUnauthorized, "no")
		}
		return talk(r)
	})
	env := alone(t, t.TempDir(), addr, upstream.URL())
	path := strings.TrimPrefix(env[0], "CONFIG_PATH=")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for old, ours := range map[string]string{
		"providers: [":                      fmt.Sprintf(`providers: [{id: pool, url: "%s/v1", keys: [key-one, key-two]}, `, upstream.URL()),
		"upstreams: [{":                     "upstreams: [{id: refused, provider: pool, model: other}, {id: pooled, provider: pool, model: real}, {",
		"models: [{name: m, upstreams: [u]": "models: [{name: pooled, upstreams: [pooled]}, {name: m, upstreams: [refused, u], pipeline: true",
	} {
		require.Contains(t, string(text), old)
		text = []byte(strings.Replace(string(text), old, ours, 1))
	}
	require.NoError(t, os.WriteFile(path, text, 0o600))
	processtest.Run(t, processtest.AllInOne(t), env).AwaitReady(t, addr)
	p := startPrometheus(t, addr)

	gateway := client{base: "http://" + addr + "/v1"}
	ask := func() {
		for _, stream := range []bool{false, true} {
			body := strings.Replace(question("m", stream), "{", `{"session_id":"s",`, 1)
			got := gateway.do(t, http.MethodPost, "/chat/completions", body)
			require.Equal(t, http.StatusOK, got.status, got.body)
		}
	}
	await.True(t, func() bool { return len(p.query(t, "up == 1")) > 0 }, "the first scrape")
	queries := dashboardQueries(t)
	require.NotEmpty(t, queries)
	for _, expr := range queries {
		await.True(t, func() bool { // rates are those of what happens between two scrapes
			ask()
			return len(p.query(t, expr)) > 0
		}, expr)
	}

	var rules []gjson.Result
	await.True(t, func() bool {
		rules = p.alerts(t)
		for _, r := range rules {
			require.NotEqual(t, "err", r.Get("health").Str, "%s: %s", r.Get("name"), r.Get("lastError"))
			if r.Get("health").Str != "ok" {
				return false
			}
		}
		return len(rules) > 0
	}, "rules that were evaluated")
	file, err := os.ReadFile(observability + "alerts.yml")
	require.NoError(t, err)
	require.Len(t, rules, strings.Count(string(file), "- alert:"))
	metrics := regexp.MustCompile(`(?:hydrallm|gen_ai)_[a-z_]+`)
	expr := map[string]string{}
	for _, r := range rules {
		expr[r.Get("name").Str] = r.Get("query").Str
		for _, metric := range metrics.FindAllString(r.Get("query").Str, -1) {
			require.NotEmpty(t, p.query(t, metric), "%s looks at what is not there", r.Get("name"))
		}
	}
	raised := func(alert string) func() bool {
		require.NotEmpty(t, expr[alert], alert)
		return func() bool { return len(p.query(t, expr[alert])) > 0 }
	}
	await.True(t, raised("NoUsableKey"), "no key of the pool can be used")
	await.True(t, raised("KeyRefused"), "the keys of the pool were refused")
	for _, quiet := range []string{"DatabaseAway", "DeadLetters", "RequestsFail"} {
		require.False(t, raised(quiet)(), quiet)
	}
}
