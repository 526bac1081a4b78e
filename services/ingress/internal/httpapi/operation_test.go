package httpapi

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"hydrallm/services/ingress/internal/modellist"
	"hydrallm/shared/contract"
)

// recorder is a tracer that keeps what it is told of its last span.
type recorder struct {
	noop.Tracer
	span *span
}

type span struct {
	noop.Span
	name       string
	attributes map[string]string
}

func (r *recorder) Start(ctx context.Context, name string, _ ...trace.SpanStartOption) (context.Context, trace.Span) {
	r.span = &span{name: name, attributes: map[string]string{}}
	return ctx, r.span
}

func (*span) IsRecording() bool { return true }

func (s *span) SetAttributes(list ...attribute.KeyValue) {
	for _, a := range list {
		s.attributes[string(a.Key)] = a.Value.String()
	}
}

// the span of a request says which operation it asks for.
func TestOperationsAreTraced(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ name, body string }{
		"/v1/chat/completions":      {"chat", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`},
		"/v1/messages":              {"chat", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`},
		"/v1/messages/count_tokens": {"count_tokens", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`},
		"/v1/responses":             {"chat", `{"model":"m","input":"hi"}`},
		"/v1/embeddings":            {"embeddings", `{"model":"m","input":"hi"}`},
		"/v1/completions":           {"text_completion", `{"model":"m","prompt":"hi"}`},
	}
	for _, name := range []string{
		"moderations", "audio/speech", "audio/transcriptions", "audio/translations", "images/generations", "images/edits", "images/variations", "rerank",
	} {
		tests[prefixV1+name] = struct{ name, body string }{name, `{"model":"m"}`}
	}
	require.Len(t, slices.DeleteFunc(slices.Clone(operations), func(op operation) bool { return op.asks == "" }), len(tests))
	for path, tt := range tests {
		op, _ := operationAt(path)
		require.NotNil(t, op)
		var req contract.Request
		require.NoError(t, op.scan([]byte(tt.body), &req))
		tracer := &recorder{}
		metrics, err := NewMetrics(prometheus.NewRegistry(), func() int { return 0 })
		require.NoError(t, err)
		api := New(Config{Tracer: tracer, Metrics: metrics, Models: modellist.New(nil, nil, nil, time.Now())})
		_, s := api.serve(&exchange{RequestCtx: &fasthttp.RequestCtx{}, api: api}, op, &req)
		s.end(fasthttp.StatusOK)
		require.Equal(t, "POST "+path, tracer.span.name)
		require.Equal(t, tt.name, tracer.span.attributes["gen_ai.operation.name"])
		require.Equal(t, path, tracer.span.attributes["http.route"])
		require.Equal(t, "m", tracer.span.attributes["gen_ai.request.model"])
		require.Equal(t, "200", tracer.span.attributes["http.response.status_code"])
	}
}

// an operation is found by its path, and a path below one speaks its surface.
func TestOperationAt(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]struct {
		path, given string
		surface     contract.Surface
	}{
		"/v1/chat/completions":      {"/v1/chat/completions", "", contract.SurfaceChat},
		"/v1/models":                {"/v1/models", "", contract.SurfaceChat},
		"/v1/models/a/b:c":          {"/v1/models/{id}", "a/b:c", contract.SurfaceChat},
		"/v1/models/":               {"", "", contract.SurfaceChat},
		"/v1/chat":                  {"", "", ""},
		"/v1/chat/completions/stop": {"", "", contract.SurfaceChat},
		"/v1/modelsx":               {"", "", ""},
	} {
		op, given := operationAt(path)
		if want.path == "" {
			require.Nil(t, op, path)
		} else {
			require.NotNil(t, op, path)
			require.Equal(t, want.path, op.path)
		}
		require.Equal(t, want.given, given, path)
		require.Equal(t, want.surface, surfaceBelow(path), path)
	}
}
