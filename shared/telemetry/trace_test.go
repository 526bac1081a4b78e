package telemetry_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"

	"hydrallm/shared/telemetry"
)

// Not parallel: the tracer provider belongs to the process.
func TestTracing(t *testing.T) { //nolint:paralleltest // see above
	var received atomic.Int64
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		received.Add(int64(len(body)))
		w.WriteHeader(http.StatusOK)
	}))
	defer collector.Close()

	stop, err := telemetry.StartTracing(t.Context(), telemetry.TraceConfig{Endpoint: collector.URL, Service: "hydrallm", Instance: "test"})
	require.NoError(t, err)
	ctx, span := otel.Tracer("test").Start(t.Context(), "step")
	carrier := propagation.MapCarrier{}
	otel.GetTextMapPropagator().Inject(ctx, carrier)
	require.Contains(t, carrier.Get("traceparent"), span.SpanContext().TraceID().String())
	span.End()
	require.NoError(t, stop(t.Context()), "what is buffered is sent")
	require.Positive(t, received.Load())

	// Without a collector spans are not recorded, but ids still travel.
	stop, err = telemetry.StartTracing(t.Context(), telemetry.TraceConfig{Service: "hydrallm"})
	require.NoError(t, err)
	_, span = otel.Tracer("test").Start(t.Context(), "step")
	require.True(t, span.SpanContext().IsValid())
	require.False(t, span.IsRecording())
	span.End()
	require.NoError(t, stop(t.Context()))

	for _, bad := range []string{"http://[broken", "collector:4318", "grpc://collector:4317", "http:///v1/traces"} {
		_, err = telemetry.StartTracing(t.Context(), telemetry.TraceConfig{Endpoint: bad})
		require.ErrorIs(t, err, telemetry.ErrBadEndpoint, bad)
	}
}
