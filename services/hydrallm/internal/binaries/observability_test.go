package binaries

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/machine"
)

const observability = "../../../../deploy/observability/"

// Prometheus takes its configuration and the alerts.
func TestPrometheusTakesItsConfiguration(t *testing.T) {
	t.Parallel()
	promtool := machine.Program(t, "promtool")
	for _, args := range [][]string{{"check", "config", observability + "prometheus.yml"}, {"check", "rules", observability + "alerts.yml"}} {
		out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
}

// alerts and dashboard ask for nothing that is not measured. What is measured is what the documents list.
func TestObservedMetricsExist(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../../../docs/operations.md")
	require.NoError(t, err)
	documented := map[string]bool{}
	metric := regexp.MustCompile(`(?:hydrallm|gen_ai_client|gen_ai_server)_[a-z_]+`)
	for _, name := range metric.FindAllString(string(document), -1) {
		documented[name] = true
	}
	suffix := regexp.MustCompile(`_(?:bucket|sum|count)$`)
	found := 0
	for _, file := range []string{"alerts.yml", "grafana/hydrallm.json"} {
		text, err := os.ReadFile(observability + file)
		require.NoError(t, err)
		for _, name := range metric.FindAllString(string(text), -1) {
			require.True(t, documented[name] || documented[suffix.ReplaceAllString(name, "")], "%s: %s", file, name)
			found++
		}
	}
	require.Greater(t, found, 20)
}

// each query of the dashboard is one that Prometheus can read.
func TestQueriesOfTheDashboard(t *testing.T) {
	t.Parallel()
	promtool := machine.Program(t, "promtool")
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []rule
	for _, expr := range dashboardQueries(t) {
		rules = append(rules, rule{"dashboard:query:" + string(rune('a'+len(rules))), expr})
	}
	require.NotEmpty(t, rules)
	file, err := json.Marshal(map[string]any{"groups": []map[string]any{{"name": "dashboard", "rules": rules}}}) // JSON is YAML
	require.NoError(t, err)
	path := t.TempDir() + "/rules.yml"
	require.NoError(t, os.WriteFile(path, file, 0o600))
	out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", path).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// dashboardQueries are the queries of all panels.
func dashboardQueries(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(observability + "grafana/hydrallm.json")
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct {
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	var all []string
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			all = append(all, target.Expr)
		}
	}
	return all
}
