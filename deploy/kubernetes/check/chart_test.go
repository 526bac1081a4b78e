package check_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/common"
	chartutil "helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

const chartDir = root + "deploy/helm/hydrallm"

// template renders the chart with values over its own, as `helm template` does.
func template(t *testing.T, values string) (map[string]string, error) {
	t.Helper()
	chart, err := loader.LoadDir(chartDir)
	require.NoError(t, err)
	var over map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(values), &over))
	all, err := chartutil.ToRenderValues(chart, over, common.ReleaseOptions{Name: "test", Namespace: "hydrallm", IsInstall: true}, common.DefaultCapabilities)
	require.NoError(t, err)
	return engine.Render(chart, all)
}

var separator = regexp.MustCompile(`(?m)^---$`)

// render reads what the chart makes, as strictly as what kustomize makes.
func render(t *testing.T, values string) manifests {
	t.Helper()
	files, err := template(t, values)
	require.NoError(t, err)
	var m manifests
	for name, text := range files {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		for _, object := range separator.Split(text, -1) {
			if strings.TrimSpace(object) != "" {
				m.add(t, []byte(object))
			}
		}
	}
	return m
}

// Helm's own checks find nothing.
func TestChartLint(t *testing.T) {
	t.Parallel()
	for _, values := range []map[string]any{nil, {"mode": "all-in-one"}} {
		for _, m := range lint.RunAll(chartDir, values, "hydrallm").Messages {
			require.Less(t, m.Severity, support.WarningSev, "%s: %v", m.Path, m.Err)
		}
	}
}

// one process with its data, its service and an Ingress in front of it, as confined as five services.
func TestChartAllInOne(t *testing.T) {
	t.Parallel()
	health, err := os.ReadFile(root + "shared/telemetry/health.go")
	require.NoError(t, err)
	m := render(t, `
mode: all-in-one
image: {registry: registry.example/, tag: "1.2.3"}
secrets: {database: ""}
ingress: {enabled: true, className: nginx, host: llm.example, tlsSecret: llm-tls}
config: {server: {drain_timeout: 30s}}
`)
	require.Len(t, m.workloads, 1)
	w := m.workloads[0]
	require.Equal(t, "registry.example/hydrallm/hydrallm:1.2.3", w.pod.Spec.Containers[0].Image)
	require.Equal(t, int32(1), *w.replicas)
	w.confined(t, string(health))
	m.complete(t, w)
	m.served(t)
	m.restricted(t)
	require.Len(t, m.configs, 1)
	text := m.configs[0].Data["config.yaml"]
	require.Contains(t, text, "drain_timeout: 30s", "what the values say wins")
	require.Contains(t, text, "stop_pause: 10s")
	require.NotContains(t, text, "NATS_URL", "the server is within the process")
	require.NotContains(t, text, "DATABASE_URL")
	require.Len(t, m.ingresses, 1)
	i := m.ingresses[0].Spec
	require.Equal(t, []string{"llm.example"}, i.TLS[0].Hosts)
	require.Equal(t, m.services[0].Name, i.Rules[0].HTTP.Paths[0].Backend.Service.Name)
}

// NATS of one's own, without identities, and the figures of each service.
func TestChartExternalNATS(t *testing.T) {
	t.Parallel()
	m := render(t, `
nats: {embedded: false, url: "nats://nats.example:4222"}
secrets: {natsIdentity: ""}
services: {enricher: {replicas: 5}}
`)
	require.Len(t, m.workloads, len(gateway))
	for _, w := range m.workloads {
		require.Equal(t, map[bool]int32{true: 5, false: 2}[w.name == "enricher"], *w.replicas, w.name)
		require.Len(t, w.pod.Spec.Volumes, 2, "no identity")
	}
	require.NotContains(t, m.configs[0].Data["config.yaml"], "nkey")
	m.restricted(t)
}

// values that make no sense are refused with what is wrong.
func TestChartRefuses(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]string{
		"mode: five":                           "mode is services or all-in-one",
		"nats: {embedded: false}":              "nats.url is needed",
		"secrets: {database: \"\"}":            "secrets.database is needed",
		"secrets: {natsIdentity: \"\"}":        "secrets.natsIdentity is needed",
		"ingress: {enabled: true, host: \"\"}": "ingress.host is needed",
	} {
		_, err := template(t, values)
		require.ErrorContains(t, err, want, values)
	}
}
