package execute

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"hydrallm/services/dispatcher/internal/classify"
)

// span begins the span of an upstream call, within a trace that is recorded. end gets what came of it. The provider is not told of the trace.
func (a *attempt) span(ctx context.Context) (_ context.Context, end func(classify.Verdict)) {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return ctx, func(classify.Verdict) {}
	}
	c := a.link.Channel
	ctx, span := otel.Tracer("hydrallm/services/dispatcher").Start(ctx, "call "+c.ID, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("gen_ai.operation.name", a.run.operationName()), attribute.String("gen_ai.provider.name", c.Provider), attribute.String("gen_ai.request.model", a.link.Model),
		attribute.String("hydra.upstream", c.ID)))
	return ctx, func(v classify.Verdict) {
		span.SetAttributes(attribute.String("hydra.result", string(v.Class)))
		if a.status != 0 {
			span.SetAttributes(attribute.Int("http.response.status_code", a.status))
		}
		if u := a.usage; u.Prompt > 0 || u.Completion > 0 {
			span.SetAttributes(attribute.Int64("gen_ai.usage.input_tokens", u.Prompt), attribute.Int64("gen_ai.usage.output_tokens", u.Completion))
		}
		if v.Failed() {
			span.SetAttributes(attribute.String("error.type", string(v.Class)))
			span.SetStatus(codes.Error, v.Reason)
		}
		span.End()
	}
}
