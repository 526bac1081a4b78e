package telemetry_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"

	"hydrallm/shared/telemetry"
)

// collector takes traces and remembers where they were sent to.
type collector struct {
	*httptest.Server
	status int

	mu    sync.Mutex
	paths []string
	bytes int
}

func startCollector(t *testing.T, status int) *collector {
	t.Helper()
	c := &collector{status: status}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.paths, c.bytes = append(c.paths, r.URL.Path), c.bytes+len(body)
		w.WriteHeader(c.status)
	}))
	t.Cleanup(c.Close)
	return c
}

// Not parallel: the tracer provider belongs to the process.
func TestTracing(t *testing.T) { //nolint:paralleltest // see above
	c := startCollector(t, http.StatusOK)
	log, _ := logger(t, telemetry.LogConfig{Level: "info"})
	stop, err := telemetry.StartTracing(t.Context(), telemetry.TraceConfig{Endpoint: c.URL, Service: "hydrallm", Instance: "test", Logger: log})
	require.NoError(t, err)
	ctx, span := otel.Tracer("test").Start(t.Context(), "step")
	carrier := propagation.MapCarrier{}
	otel.GetTextMapPropagator().Inject(ctx, carrier)
	require.Contains(t, carrier.Get("traceparent"), span.SpanContext().TraceID().String())
	span.End()
	require.NoError(t, stop(t.Context()), "what is buffered is sent")
	require.Positive(t, c.bytes)

	require.Equal(t, span.SpanContext().TraceID().String(), telemetry.TraceID(ctx))

	// without a collector there are no traces but those of clients, which are passed on as they are.
	stop, err = telemetry.StartTracing(t.Context(), telemetry.TraceConfig{Service: "hydrallm", Logger: log})
	require.NoError(t, err)
	ctx, span = otel.Tracer("test").Start(t.Context(), "step")
	require.False(t, span.IsRecording())
	require.Empty(t, telemetry.TraceID(ctx))
	const clients = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	ctx = otel.GetTextMapPropagator().Extract(t.Context(), propagation.MapCarrier{"traceparent": clients})
	ctx, span = otel.Tracer("test").Start(ctx, "step")
	span.End()
	require.Equal(t, "0af7651916cd43dd8448eb211c80319c", telemetry.TraceID(ctx))
	carrier = propagation.MapCarrier{}
	otel.GetTextMapPropagator().Inject(ctx, carrier)
	require.Equal(t, clients, carrier.Get("traceparent"))
	require.NoError(t, stop(t.Context()))

	for _, bad := range []string{"http://[broken", "collector:4318", "grpc://collector:4317", "http:///v1/traces"} {
		_, err = telemetry.StartTracing(t.Context(), telemetry.TraceConfig{Endpoint: bad, Logger: log})
		require.ErrorIs(t, err, telemetry.ErrBadEndpoint, bad)
	}
}

// The address is that of a collector, as other programs have it: the path for traces is added where it is missing.
func TestCollectorAddress(t *testing.T) { //nolint:paralleltest // the tracer provider belongs to the process
	for path, want := range map[string]string{
		"": "/v1/traces", "/": "/v1/traces", "/otlp": "/otlp/v1/traces", "/otlp/": "/otlp/v1/traces", "/v1/traces": "/v1/traces", "/a/v1/traces": "/a/v1/traces",
	} {
		c := startCollector(t, http.StatusOK)
		log, _ := logger(t, telemetry.LogConfig{Level: "info"})
		stop, err := telemetry.StartTracing(t.Context(), telemetry.TraceConfig{Endpoint: c.URL + path, Service: "hydrallm", Logger: log})
		require.NoError(t, err)
		_, span := otel.Tracer("test").Start(t.Context(), "step")
		span.End()
		require.NoError(t, stop(t.Context()))
		require.Equal(t, []string{want}, c.paths, path)
	}
}

// What goes wrong with sending is a line of the log like any other, and not one every few seconds.
func TestCollectorFails(t *testing.T) { //nolint:paralleltest // the tracer provider belongs to the process
	c := startCollector(t, http.StatusBadRequest)
	log, out := logger(t, telemetry.LogConfig{Level: "info", Format: "json"})
	stop, err := telemetry.StartTracing(t.Context(), telemetry.TraceConfig{Endpoint: c.URL, Service: "hydrallm", Logger: log})
	require.NoError(t, err)
	_, span := otel.Tracer("test").Start(t.Context(), "step")
	span.End()
	require.NoError(t, stop(t.Context()))
	for range 5 {
		otel.Handle(io.ErrUnexpectedEOF)
	}
	require.Equal(t, 1, strings.Count(out.String(), "\n"), out.String())
	require.Contains(t, out.String(), `"level":"WARN","msg":"sending traces","error":"`)
}
