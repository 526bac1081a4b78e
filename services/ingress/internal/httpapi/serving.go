package httpapi

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"hydrallm/services/ingress/internal/pending"
	"hydrallm/shared/config"
	"hydrallm/shared/contract"
)

// serving is a request of the pipeline until the last byte of its answer: its span, and what is measured of it.
type serving struct {
	api    *API
	span   trace.Span
	began  time.Time
	key    servedKey
	failed string // why the answer did not come to its end; "" = it did, or its status says why
	unseen bool   // nothing is measured
}

// servedKey is the labels of a request that is over, but for what the first token has.
type servedKey struct{ operation, model, provider, answered, failure string }

var traceContext propagation.TraceContext

// serve begins the span of a request, which continues the client's trace or begins one. The caller ends it.
func (a *API) serve(x *exchange, op *operation, req *contract.Request) (context.Context, *serving) {
	ctx := context.Background()
	if parent := x.Request.Header.Peek("Traceparent"); len(parent) > 0 {
		ctx = traceContext.Extract(ctx, propagation.MapCarrier{
			"traceparent": string(parent), "tracestate": string(x.Request.Header.Peek("Tracestate")),
		})
	}
	ctx, span := a.Tracer.Start(ctx, "POST "+op.path, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(x.Time()))
	s := &serving{
		api: a, span: span, began: x.Time(), unseen: req.Background,
		key: servedKey{operation: op.asks.Name(op.surface), model: a.labels.Label("", req.Model)},
	}
	if span.IsRecording() {
		span.SetAttributes(
			attribute.String("http.request.method", fasthttp.MethodPost), attribute.String("http.route", op.path),
			attribute.String("gen_ai.operation.name", s.key.operation), attribute.String("gen_ai.request.model", req.Model),
			attribute.Bool("hydra.stream", req.Stream), attribute.String("hydra.request_id", req.ID),
		)
	}
	return ctx, s
}

// answeredBy notes who answers.
func (s *serving) answeredBy(h *head) {
	if h.model == "" {
		return
	}
	s.key.provider, s.key.answered = h.provider, s.api.labels.Label(h.provider, h.model)
	if s.span.IsRecording() {
		s.span.SetAttributes(attribute.String("gen_ai.provider.name", h.provider), attribute.String("gen_ai.response.model", h.model))
	}
}

// broke notes that the answer does not come to its end.
func (s *serving) broke(err error) { s.failed = pending.Reason(err) }

// first is told when the first content of a stream goes out.
func (s *serving) first() {
	if !s.unseen {
		s.api.Metrics.firstToken.Of(s.key).Observe(time.Since(s.began).Seconds())
	}
}

// end ends the span and measures the request.
func (s *serving) end(status int) {
	failure := s.failed
	if failure == "" && status >= fasthttp.StatusBadRequest {
		failure = failureOf(status)
	}
	if s.span.IsRecording() {
		s.span.SetAttributes(attribute.Int("http.response.status_code", status))
		if failure != "" {
			s.span.SetAttributes(attribute.String("error.type", failure))
		}
		if status >= fasthttp.StatusInternalServerError || s.failed != "" {
			s.span.SetStatus(codes.Error, "")
		}
	}
	s.span.End()
	if s.unseen {
		return
	}
	s.key.failure = failure
	s.api.Metrics.served.Of(s.key).Observe(time.Since(s.began).Seconds())
}

// failureOf names the error of a status; the set of names is closed.
func failureOf(status int) string {
	switch {
	case status == statusGone:
		return pending.Reason(pending.ErrGone)
	case http.StatusText(status) == "":
		return "_OTHER" // the fallback of OpenTelemetry
	}
	return strconv.Itoa(status)
}

// knows tells the models that have label values of their own: for requests those that are listed, for answers also those of upstreams.
func (a *API) knows(provider, model string) bool {
	models := a.Models.Now()
	if _, listed := models.Find(model); listed || provider == "" {
		return listed
	}
	if _, listed := models.Find(provider + "/" + model); listed {
		return true
	}
	return slices.ContainsFunc(a.Settings.Config().Upstreams, func(u config.Upstream) bool { return u.Provider == provider && u.Model == model })
}
