package bus

import (
	"context"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"hydrallm/shared/subject"
)

var traceContext propagation.TraceContext

// traceHeader is where Inject puts the trace of a message, if it has one.
const traceHeader = "Traceparent"

// tracedBy gives a context with the trace that a message came with.
func tracedBy(ctx context.Context, header nats.Header) context.Context {
	if len(header[traceHeader]) == 0 {
		return ctx
	}
	return traceContext.Extract(ctx, propagation.HeaderCarrier(header))
}

// startSpan begins a span within a trace that is recorded; else nothing is spent on it. end is called once; with an error the span
// is marked as failed.
func startSpan(ctx context.Context, name string, kind trace.SpanKind, attrs ...attribute.KeyValue) (_ context.Context, end func(error)) {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return ctx, func(error) {}
	}
	return newSpan(ctx, name, kind, attrs...)
}

// newSpan is startSpan for what may also begin a trace.
func newSpan(ctx context.Context, name string, kind trace.SpanKind, attrs ...attribute.KeyValue) (_ context.Context, end func(error)) {
	ctx, span := otel.Tracer("hydrallm/shared/bus").Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(attrs...))
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, "") // what is wrong is in the log, which knows what must not be seen
		}
		span.End()
	}
}

// span begins the span of a stage that handles a request.
func (w *Work) span(ctx context.Context, consumer string) (_ context.Context, end func(error)) {
	return startSpan(ctx, consumer+" process", trace.SpanKindConsumer,
		attribute.String("messaging.system", "nats"), attribute.String("messaging.operation.type", "process"),
		attribute.String("messaging.destination.name", w.msg.Subject()), attribute.String("hydra.request_id", w.Request.ID),
		attribute.Int64("hydra.delivery", int64(w.Delivery)))
}

// querySpan begins the span of a query, on either side.
func querySpan(ctx context.Context, subj string, kind trace.SpanKind) (_ context.Context, end func(error)) {
	return startSpan(ctx, "query "+subject.Last(subj), kind,
		attribute.String("messaging.system", "nats"), attribute.String("messaging.destination.name", subj))
}

// factsSpan begins the span of storing a batch. Its facts belong to many requests, so that it is a trace of its own.
func factsSpan(ctx context.Context, consumer string, n int) (_ context.Context, end func(error)) {
	return newSpan(ctx, consumer+" process", trace.SpanKindConsumer,
		attribute.String("messaging.system", "nats"), attribute.String("messaging.operation.type", "process"),
		attribute.String("messaging.destination.name", subject.FactsStream), attribute.Int("messaging.batch.message_count", n))
}
