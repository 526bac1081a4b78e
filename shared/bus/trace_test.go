package bus_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"hydrallm/shared/bus"
	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/startstoptest"
	"hydrallm/shared/topology"
)

// each stage of a request, each query and each batch of facts is a span, and those of a request are one trace.
//
// Not parallel: the tracer provider belongs to the process.
func TestSpans(t *testing.T) { //nolint:paralleltest // see above
	recorded := tracetest.NewSpanRecorder()
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(sdk.NewTracerProvider(sdk.WithSpanProcessor(recorded)))
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	b := setup(t)
	done := make(chan error, 1)
	consume(t, b, bus.WorkConfig{Consumer: topology.Analyzer, MaxInFlight: 1}, func(ctx context.Context, w *bus.Work) {
		if err := w.Forward(ctx, nil); err != nil {
			done <- err
		}
	})
	consume(t, b, bus.WorkConfig{Consumer: topology.Dispatcher, MaxInFlight: 1}, func(ctx context.Context, w *bus.Work) {
		_, err := b.Query(ctx, "svc", "refuse", nil)
		w.Done()
		done <- err
	})
	serve(t, b, "i1", map[string]bus.QueryHandler{"refuse": func(context.Context, []byte) ([]byte, error) { return nil, errors.New("secret detail") }})
	facts, err := b.ConsumeFacts(t.Context(), bus.FactsConfig{Consumer: topology.SessionWriter, MaxBatch: 8, MaxWait: time.Millisecond},
		func(context.Context, []bus.Fact) error { return nil })
	require.NoError(t, err)

	ctx, root := otel.Tracer("test").Start(t.Context(), "root")
	require.NoError(t, b.PublishWork(ctx, request("r1", contract.StageReceived, contract.StageEnriched), []byte("{}")))
	require.Error(t, await.Value(t, done), "the service refuses")
	root.End()
	require.NoError(t, b.PublishFact(t.Context(), subject.UsageRecorded, "", []byte("{}")))
	require.NoError(t, b.PublishWork(t.Context(), request("r2", contract.StageEnriched), []byte("{}")))
	require.Error(t, await.Value(t, done))
	await.True(t, func() bool { return len(recorded.Ended()) >= 6 })
	startstoptest.Stop(t, facts)

	var names []string
	parents := map[string]string{}
	byID := map[string]string{}
	for _, s := range recorded.Ended() {
		byID[s.SpanContext().SpanID().String()] = s.Name() + " " + s.SpanKind().String()
	}
	for _, s := range recorded.Ended() {
		require.NotContains(t, s.Status().Description, "secret")
		name := s.Name() + " " + s.SpanKind().String()
		names = append(names, name)
		parents[name] = byID[s.Parent().SpanID().String()]
		if s.Name() != "session-writer process" {
			require.Equal(t, root.SpanContext().TraceID(), s.SpanContext().TraceID(), name)
		}
		require.Equal(t, s.Name() == "query refuse", s.Status().Code == codes.Error, name)
	}
	require.ElementsMatch(t, []string{
		"root internal", "analyzer process consumer", "dispatcher process consumer", "query refuse client", "query refuse server", "session-writer process consumer",
	}, names, "what is not within a trace has no span, but for facts")
	require.Equal(t, "analyzer process consumer", parents["dispatcher process consumer"])
	require.Equal(t, "dispatcher process consumer", parents["query refuse client"])
	require.Equal(t, "query refuse client", parents["query refuse server"])
	require.Equal(t, "root internal", parents["analyzer process consumer"])
}

// what is stored is a span in the trace of each request that it is of, linked with that of the batch. Traces that are not recorded have none.
//
// Not parallel: the tracer provider belongs to the process.
func TestFactSpans(t *testing.T) { //nolint:paralleltest // see above
	recorded := tracetest.NewSpanRecorder()
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(sdk.NewTracerProvider(sdk.WithSpanProcessor(recorded)))
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	b := setup(t)
	tracer := otel.Tracer("test")
	turn, one := tracer.Start(t.Context(), "turn")
	_, two := tracer.Start(t.Context(), "two")
	_, three := tracer.Start(t.Context(), "three")
	unseen := trace.ContextWithSpanContext(t.Context(), one.SpanContext().WithTraceFlags(0))
	require.NoError(t, b.PublishFact(turn, subject.Turn("s", "asked"), "", []byte("{}")))
	require.NoError(t, b.PublishFact(bus.WithTraces(t.Context(), []trace.SpanContext{two.SpanContext(), three.SpanContext()}), subject.UsageRecorded, "", []byte("{}")))
	require.NoError(t, b.PublishFact(unseen, subject.WebRecorded, "", []byte("{}")))
	require.NoError(t, b.PublishFact(bus.WithTraces(t.Context(), nil), subject.UsageRecorded, "", []byte("{}")))
	taken := make(chan int, 4)
	facts, err := b.ConsumeFacts(t.Context(), bus.FactsConfig{Consumer: topology.SessionWriter, MaxBatch: 8, MaxWait: time.Millisecond},
		func(_ context.Context, batch []bus.Fact) error {
			taken <- len(batch)
			return nil
		})
	require.NoError(t, err)
	for n := 0; n < 4; {
		n += await.Value(t, taken)
	}
	startstoptest.Stop(t, facts)

	batches := map[trace.SpanID]sdk.ReadOnlySpan{}
	stored := map[trace.SpanID]sdk.ReadOnlySpan{} // by parent
	for _, s := range recorded.Ended() {
		if s.Name() == "session-writer process" {
			require.False(t, s.Parent().IsValid())
			batches[s.SpanContext().SpanID()] = s
			continue
		}
		stored[s.Parent().SpanID()] = s
	}
	require.Len(t, stored, 3)
	for span, name := range map[trace.Span]string{one: "store turn", two: "store usage", three: "store usage"} {
		own, parent := stored[span.SpanContext().SpanID()], span.SpanContext()
		require.NotNil(t, own, name)
		require.Equal(t, name, own.Name())
		require.Equal(t, parent.TraceID(), own.SpanContext().TraceID())
		require.Len(t, own.Links(), 1)
		batch := batches[own.Links()[0].SpanContext.SpanID()]
		require.NotNil(t, batch)
		require.True(t, slices.ContainsFunc(batch.Links(), func(l sdk.Link) bool { return l.SpanContext.SpanID() == parent.SpanID() }))
	}
}
