package process_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"

	"hydrallm/shared/lifecycle"
	"hydrallm/shared/process"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/testkit/output"
	"hydrallm/shared/topology"
)

// written is what a process with these settings logs of an information and of a detail.
func written(t *testing.T, s process.Settings) string {
	t.Helper()
	var out output.Buffer
	require.NoError(t, process.Observed(t.Context(), s, "test", &out, func(log *slog.Logger) error {
		log.Info("an information")
		log.Debug("a detail")
		return nil
	}))
	return out.String()
}

// log.* and what the environment says of it.
func TestSettingsOfLogs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		yaml         string
		vars         map[string]string
		info, detail bool
	}{
		"by default":             {"log: {}", nil, true, false},
		"log.level":              {"log: {level: warn}", nil, false, false},
		"log.level, all":         {"log: {level: debug}", nil, true, true},
		"LOG_LEVEL":              {"", map[string]string{"LOG_LEVEL": "DEBUG"}, true, true},
		"LOG_LEVEL, less":        {"", map[string]string{"LOG_LEVEL": "ERROR"}, false, false},
		"DEBUG":                  {"", map[string]string{"DEBUG": "true", "LOG_LEVEL": "ERROR"}, true, true},
		"server.debug":           {"server: {debug: true}\nlog: {level: error}", nil, true, true},
		"LOG_LEVEL beside files": {"log: {level: error}", map[string]string{"LOG_LEVEL": "DEBUG"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := process.LoadFrom(environment(t, tc.yaml, tc.vars), process.Overrides{})
			require.NoError(t, err)
			text := written(t, s)
			require.Equal(t, tc.info, strings.Contains(text, "an information"))
			require.Equal(t, tc.detail, strings.Contains(text, "a detail"))
		})
	}
	t.Run("log.format and log.file", func(t *testing.T) {
		t.Parallel()
		s, err := process.LoadFrom(environment(t, `log: {format: json, file: "data/gateway.log"}`, nil), process.Overrides{})
		require.NoError(t, err)
		require.True(t, strings.HasSuffix(s.LogConfig().File, "/data/gateway.log"), s.LogConfig().File)
		s.Log.File = "" // what is written there is the same (package telemetry)
		require.Contains(t, written(t, s), `"msg":"an information"`)
	})
}

// nats.*: what the streams are made like, and with which credentials.
func TestSettingsOfNATS(t *testing.T) {
	t.Parallel()
	server := natstest.StartListening(t)
	for name, tc := range map[string]struct{ yaml, want string }{
		"credentials": {`credentials: "/nowhere/of.creds"`, "/nowhere/of.creds"},
		"replicas":    {"replicas: 3", "replicas"}, // more than there are servers
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errOut output.Buffer
			s := process.Service{Name: "probe", HealthAddr: "127.0.0.1:0", Build: func(process.Parts) (lifecycle.Service, error) { return &probe{}, nil }}
			env := environment(t, fmt.Sprintf("nats: {url: %q, %s}\n", server.ClientURL(), tc.yaml), nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			code := make(chan int, 1)
			go func() { code <- s.Run(ctx, env, &out, &errOut) }()
			await.True(t, func() bool { return strings.Contains(out.String()+errOut.String(), tc.want) })
			cancel() // the server may yet become what is wanted, so that it goes on trying
			await.Value(t, code)
		})
	}
	for yaml, want := range map[string]topology.Config{
		"":                                   {Replicas: 1, WebCacheTTL: 24 * time.Hour},
		"nats: {work_storage: file}":         {Replicas: 1, WebCacheTTL: 24 * time.Hour, WorkOnDisk: true},
		"nats: {work_storage: memory}":       {Replicas: 1, WebCacheTTL: 24 * time.Hour},
		"nats: {url: nats://h, replicas: 5}": {Replicas: 5, WebCacheTTL: 24 * time.Hour},
		"web: {cache_ttl: 0}":                {Replicas: 1},
		"web: {cache_ttl: 72h}":              {Replicas: 1, WebCacheTTL: 72 * time.Hour},
	} {
		s, err := process.LoadFrom(environment(t, yaml, nil), process.Overrides{})
		require.NoError(t, err)
		want.Service = "probe"
		require.Equal(t, want, s.Connection("probe").Topology, yaml)
	}
}

// stuck is a service that stops only when it must.
type stuck struct{}

func (stuck) Start(context.Context) error { return nil }

func (stuck) Stop(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// server.drain_timeout: how long a stop may take.
func TestSettingOfTheDrain(t *testing.T) {
	t.Parallel()
	server := natstest.StartListening(t)
	addr := freeport.Addr(t)
	env := environment(t, fmt.Sprintf("nats: {url: %q}\nserver: {drain_timeout: 200ms}\n", server.ClientURL()), map[string]string{"HEALTH_ADDR": addr})
	s := process.Service{Name: "probe", Build: func(process.Parts) (lifecycle.Service, error) { return stuck{}, nil }}
	ctx, cancel := context.WithCancel(t.Context())
	var out, errOut output.Buffer
	code := make(chan int, 1)
	go func() { code <- s.Run(ctx, env, &out, &errOut) }()
	await.True(t, func() bool { return status(t, "http://"+addr+"/readyz") == http.StatusOK })
	begun := time.Now()
	cancel()
	<-code
	require.GreaterOrEqual(t, time.Since(begun), 200*time.Millisecond)
	require.Less(t, time.Since(begun), 30*time.Second, "half of what a stop may take")
}

// telemetry.*: where traces go and under which name. Not parallel: the tracer provider belongs to the process.
func TestSettingsOfTraces(t *testing.T) { //nolint:paralleltest // see above
	bodies := make(chan string, 8)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		bodies <- string(body)
	}))
	defer collector.Close()
	s, err := process.LoadFrom(environment(t, fmt.Sprintf("telemetry: {otlp_endpoint: %q, service_name: my-gateway}", collector.URL), nil), process.Overrides{})
	require.NoError(t, err)
	require.NoError(t, process.Observed(t.Context(), s, "test", io.Discard, func(*slog.Logger) error {
		_, span := otel.Tracer("test").Start(t.Context(), "a step")
		span.End()
		return nil
	}))
	body := <-bodies
	require.Contains(t, body, "my-gateway")
	require.Contains(t, body, "a step")
}
