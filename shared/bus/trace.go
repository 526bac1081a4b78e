package bus

import (
	"context"
	"slices"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"hydrallm/shared/subject"
	"hydrallm/shared/telemetry"
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

// tracesKey is where WithTraces keeps its traces.
type tracesKey struct{}

// WithTraces gives a context for publishing a fact that belongs to the traces of several requests. spans are theirs, those that are recorded.
func WithTraces(ctx context.Context, spans []trace.SpanContext) context.Context {
	if len(spans) == 0 {
		return ctx
	}
	return context.WithValue(ctx, tracesKey{}, spans)
}

// traceFact puts the recorded traces that a fact belongs to into its header, each as a value of its own.
func traceFact(ctx context.Context, header nats.Header) {
	spans, _ := ctx.Value(tracesKey{}).([]trace.SpanContext)
	if own := trace.SpanContextFromContext(ctx); own.IsSampled() {
		spans = append(slices.Clip(spans), own)
	}
	for _, span := range spans {
		one := nats.Header{}
		traceContext.Inject(trace.ContextWithSpanContext(ctx, span), propagation.HeaderCarrier(one))
		header[traceHeader] = append(header[traceHeader], one[traceHeader]...)
	}
}

// span begins the span of a stage that handles a request.
func (w *Work) span(ctx context.Context, consumer string) (_ context.Context, end func(error)) {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return ctx, func(error) {} // as StartSpan has it, without the attributes
	}
	return telemetry.StartSpan(ctx, consumer+" process", trace.SpanKindConsumer,
		attribute.String("messaging.system", "nats"), attribute.String("messaging.operation.type", "process"),
		attribute.String("messaging.destination.name", w.msg.Subject()), attribute.String("hydra.request_id", w.Request.ID),
		attribute.Int64("hydra.delivery", int64(w.Delivery)))
}

// querySpan begins the span of a query, on either side.
func querySpan(ctx context.Context, subj string, kind trace.SpanKind) (_ context.Context, end func(error)) {
	return telemetry.StartSpan(ctx, "query "+subject.Last(subj), kind,
		attribute.String("messaging.system", "nats"), attribute.String("messaging.destination.name", subj))
}

// factSpans begins the span of storing a batch, which is a trace of its own because its facts belong to many requests, and in the trace of each
// of these one for its part in it. They are linked to each other.
func factSpans(ctx context.Context, consumer string, msgs []*message) (_ context.Context, end func(error)) {
	var links []trace.Link
	var subjects []string
	for _, m := range msgs {
		for _, parent := range m.Headers()[traceHeader] {
			span := trace.SpanContextFromContext(traceContext.Extract(ctx, propagation.HeaderCarrier{traceHeader: {parent}}))
			if span.IsSampled() {
				links, subjects = append(links, trace.Link{SpanContext: span}), append(subjects, m.Subject())
			}
		}
	}
	attrs := []attribute.KeyValue{
		attribute.String("messaging.system", "nats"), attribute.String("messaging.operation.type", "process"),
		attribute.String("messaging.destination.name", subject.FactsStream), attribute.Int("messaging.batch.message_count", len(msgs)),
	}
	ctx, endBatch := telemetry.NewSpan(ctx, consumer+" process", trace.SpanKindConsumer, links, attrs...)
	batch := []trace.Link{{SpanContext: trace.SpanContextFromContext(ctx)}}
	ends := make([]func(error), len(links))
	for i, parent := range links {
		_, ends[i] = telemetry.NewSpan(trace.ContextWithRemoteSpanContext(ctx, parent.SpanContext), "store "+subject.Kind(subjects[i]), trace.SpanKindConsumer, batch, attrs...)
	}
	return ctx, func(err error) {
		for _, end := range ends {
			end(err)
		}
		endBatch(err)
	}
}
