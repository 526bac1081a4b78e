package telemetry

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// StartSpan begins a span within a trace that is recorded; else nothing is spent on it. end is called once; with an error the span is marked as failed,
// without its text: what is wrong is in the log, which knows what must not be seen.
func StartSpan(ctx context.Context, name string, kind trace.SpanKind, attrs ...attribute.KeyValue) (_ context.Context, end func(error)) {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return ctx, func(error) {}
	}
	return NewSpan(ctx, name, kind, nil, attrs...)
}

// NewSpan is StartSpan for what may also begin a trace, and for what belongs to other traces besides.
func NewSpan(ctx context.Context, name string, kind trace.SpanKind, others []trace.Link, attrs ...attribute.KeyValue) (_ context.Context, end func(error)) {
	ctx, span := otel.Tracer("hydrallm").Start(ctx, name, trace.WithSpanKind(kind), trace.WithLinks(others...), trace.WithAttributes(attrs...))
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}
