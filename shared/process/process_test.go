package process_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/config"
	"hydrallm/shared/config/configtest"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/process"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/leaktest"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/testkit/output"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// environment gives a working directory with a config.yaml of the given text.
func environment(t *testing.T, yaml string, vars map[string]string) config.Environment {
	t.Helper()
	if yaml == "" {
		return configtest.Environment(t, vars, nil)
	}
	return configtest.Environment(t, vars, map[string]string{"config.yaml": yaml})
}

// probe is a service that notes whether it runs.
type probe struct {
	parts   process.Parts
	start   error
	stopped chan struct{}
}

func (p *probe) Start(context.Context) error { return p.start }

func (p *probe) Stop(context.Context) error {
	if p.parts.Bus.Ready() { // the connection outlives the service
		close(p.stopped)
	}
	return nil
}

func status(t *testing.T, url string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return 0
	}
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

func TestRunServesUntilToldToStop(t *testing.T) {
	t.Parallel()
	server := natstest.StartListening(t)
	addr := freeport.Addr(t)
	env := environment(t, fmt.Sprintf("nats: {url: %q}\nserver: {colour: red}\n", server.ClientURL()), map[string]string{"HEALTH_ADDR": addr})
	p := &probe{stopped: make(chan struct{})}
	s := process.Service{Name: "probe", HealthAddr: "127.0.0.1:1", Build: func(parts process.Parts) (lifecycle.Service, error) {
		p.parts = parts
		return p, parts.Metrics.Register(prometheus.NewGauge(prometheus.GaugeOpts{Name: "probe_up"}))
	}}
	ctx, cancel := context.WithCancel(t.Context())
	var out, errOut output.Buffer
	code := make(chan int, 1)
	go func() { code <- s.Run(ctx, env, &out, &errOut) }()
	await.True(t, func() bool { return status(t, "http://"+addr+"/readyz") == http.StatusOK })
	cancel()
	require.Equal(t, 0, <-code, errOut.String())
	<-p.stopped
	require.True(t, strings.HasPrefix(p.parts.ID, "probe-"))
	require.NotContains(t, p.parts.ID, ".")
	require.NotEqual(t, p.parts.ID, process.NewID("probe"))
	require.Contains(t, out.String(), "[llm-proxy] config: warning: ")
	require.Contains(t, out.String(), "colour")
	require.Empty(t, errOut.String())
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	server := natstest.StartListening(t)
	nats := fmt.Sprintf("nats: {url: %q}\n", server.ClientURL())
	errBuild, errStart := errors.New("no building"), errors.New("no starting")
	tests := map[string]struct {
		yaml  string
		vars  map[string]string
		build func(process.Parts) (lifecycle.Service, error)
		want  []string
	}{
		"every fault of the file, with its line": {
			yaml: "server:\n  port: 0x\nlog: {level: loud}\n",
			want: []string{"config.yaml:2: server.port:", "config.yaml:3: log.level:"},
		},
		"missing file":   {vars: map[string]string{"CONFIG_PATH": "none.yaml"}, want: []string{"none.yaml"}},
		"no NATS server": {yaml: "server: {}\n", want: []string{"probe: probe needs a NATS server"}},
		"bad traces":     {yaml: nats + "telemetry: {otlp_endpoint: nowhere}\n", want: []string{"nowhere"}},
		"building fails": {yaml: nats, build: func(process.Parts) (lifecycle.Service, error) { return nil, errBuild }, want: []string{"no building"}},
		"starting fails": {
			yaml:  nats,
			build: func(p process.Parts) (lifecycle.Service, error) { return &probe{parts: p, start: errStart}, nil },
			want:  []string{"starting probe: no starting"},
		},
		"health address taken": {yaml: nats, vars: map[string]string{"HEALTH_ADDR": server.Addr().String()}, want: []string{server.Addr().String()}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errOut output.Buffer
			s := process.Service{Name: "probe", HealthAddr: "127.0.0.1:0", Build: tt.build}
			require.Equal(t, 1, s.Run(t.Context(), environment(t, tt.yaml, tt.vars), &out, &errOut))
			for _, text := range tt.want {
				require.Contains(t, errOut.String(), text)
			}
		})
	}
}

// the command line wins over file and environment.
func TestOverrides(t *testing.T) {
	t.Parallel()
	env := environment(t, "server: {port: 1234, debug: false}\n", map[string]string{"DEBUG": "false"})
	s, err := process.LoadFrom(env, process.Overrides{})
	require.NoError(t, err)
	require.Equal(t, 1234, s.Server.Port)
	require.Equal(t, "info", s.LogConfig().Level)

	s, err = process.LoadFrom(env, process.Overrides{Debug: true, Port: 4321})
	require.NoError(t, err)
	require.Equal(t, 4321, s.Server.Port)
	require.True(t, s.Server.Debug)
	require.Equal(t, "debug", s.LogConfig().Level, "R-373")
}

// what was configured is logged at start, without secrets.
func TestReport(t *testing.T) {
	t.Parallel()
	s, err := process.LoadFrom(environment(t, `
providers: [{id: p, url: "http://127.0.0.1:1/v1", key: secret-secret-secret}]
upstreams: [{id: u, provider: p, model: x}]
models: [{name: m, upstreams: [u, nowhere]}]
`, nil), process.Overrides{})
	require.NoError(t, err)
	var out output.Buffer
	require.NoError(t, process.Observed(t.Context(), s, "test", &out, func(log *slog.Logger) error {
		s.Report(t.Context(), log)
		return nil
	}))
	require.Contains(t, out.String(), "[llm-proxy] config: providers=1 upstreams=1 models=1 ")
	require.Contains(t, out.String(), "[llm-proxy] upstream: request_timeout=300000ms\n")
	require.Regexp(t, `\[llm-proxy\] config: warning: .*config.yaml:4: .*nowhere`, out.String())
	require.NotContains(t, out.String(), "secret")
}

func TestReportOfNothing(t *testing.T) {
	t.Parallel()
	s, err := process.LoadFrom(environment(t, "", nil), process.Overrides{})
	require.NoError(t, err)
	var out output.Buffer
	require.NoError(t, process.Observed(t.Context(), s, "test", &out, func(log *slog.Logger) error {
		s.Report(t.Context(), log)
		return nil
	}))
	require.Contains(t, out.String(), "GEMINI_API_KEY", "it says what to set")
}

func TestFailReportsTheFirstError(t *testing.T) {
	t.Parallel()
	fail := make(chan error, 1)
	report := process.Fail(fail)
	first := errors.New("first")
	report(first)
	report(errors.New("second"))
	require.Equal(t, first, <-fail)
}
