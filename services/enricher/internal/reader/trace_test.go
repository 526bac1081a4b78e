package reader

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"hydrallm/services/enricher/internal/browser"
)

// reading a page is a span, and so is showing it in the browser; of its address they have the host alone.
//
// Not parallel: the tracer provider belongs to the process.
func TestSpans(t *testing.T) { //nolint:paralleltest // see above
	recorded := tracetest.NewSpanRecorder()
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(sdk.NewTracerProvider(sdk.WithSpanProcessor(recorded)))
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	w := &web{answer: htmlAnswer("<p>plain</p>"), showErr: browser.ErrStopped}
	r := New(w, w, extractText, Always, slog.New(slog.DiscardHandler))
	_, err := r.Read(t.Context(), "https://user:code@host.example/path?q=words")
	require.NoError(t, err)
	require.Empty(t, recorded.Ended(), "it is in no trace")

	ctx, root := otel.Tracer("test").Start(t.Context(), "root")
	_, err = r.Read(ctx, "https://user:code@host.example/path?q=words")
	require.NoError(t, err)
	spans := recorded.Ended()
	require.Len(t, spans, 2)
	for i, name := range []string{"fetch page", "render page"} {
		require.Equal(t, name, spans[i].Name())
		require.Equal(t, root.SpanContext().SpanID(), spans[i].Parent().SpanID(), name)
		require.Equal(t, []attribute.KeyValue{attribute.String("server.address", "host.example")}, spans[i].Attributes(), name)
	}
	require.Equal(t, codes.Unset, spans[0].Status().Code)
	require.Equal(t, sdk.Status{Code: codes.Error}, spans[1].Status())
}
