package bus_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/testkit/startstoptest"
	"hydrallm/shared/topology"
)

// a stage tells how long its requests waited, counting each once, how long it works and on how many.
func TestStageMetrics(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	b, err := bus.Connect(t.Context(), bus.Config{InProcess: natstest.Start(t), Name: t.Name(), Metrics: reg, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { disconnect(t, b) })
	letRun(t, b)
	begun, finish := make(chan *bus.Work), make(chan struct{})
	consume(t, b, bus.WorkConfig{Consumer: topology.Dispatcher}, func(_ context.Context, w *bus.Work) {
		begun <- w
		<-finish
		if w.Delivery == 1 {
			w.Retry(0)
			return
		}
		w.Done()
	})
	require.Zero(t, figure(t, reg, "hydrallm_stage_seconds", topology.Dispatcher).GetHistogram().GetSampleCount(), "shown from the start")
	require.NoError(t, b.PublishWork(t.Context(), request("r1"), []byte("{}")))
	for range 2 {
		await.Value(t, begun)
		require.InDelta(t, 1, figure(t, reg, "hydrallm_stage_in_flight", topology.Dispatcher).GetGauge().GetValue(), 0)
		finish <- struct{}{}
	}
	await.True(t, func() bool {
		return figure(t, reg, "hydrallm_stage_seconds", topology.Dispatcher).GetHistogram().GetSampleCount() == 2
	})
	await.True(t, func() bool {
		return figure(t, reg, "hydrallm_stage_in_flight", topology.Dispatcher).GetGauge().GetValue() == 0
	})
	require.EqualValues(t, 1, figure(t, reg, "hydrallm_queue_wait_seconds", topology.Dispatcher).GetHistogram().GetSampleCount())

	stored := make(chan struct{}, 1)
	facts, err := b.ConsumeFacts(t.Context(), bus.FactsConfig{Consumer: topology.SessionWriter, MaxBatch: 8, MaxWait: time.Millisecond},
		func(context.Context, []bus.Fact) error {
			stored <- struct{}{}
			return nil
		})
	require.NoError(t, err)
	require.NoError(t, b.PublishFact(t.Context(), subject.UsageRecorded, "", []byte("{}")))
	await.Value(t, stored)
	startstoptest.Stop(t, facts)
	require.EqualValues(t, 1, figure(t, reg, "hydrallm_queue_wait_seconds", topology.SessionWriter).GetHistogram().GetSampleCount())
}

// figure gives the member of a metric that belongs to a stage.
func figure(t *testing.T, reg *prometheus.Registry, name, stage string) *dto.Metric {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && m.GetLabel()[0].GetValue() == stage {
				return m
			}
		}
	}
	require.Fail(t, "no such metric", name)
	return nil
}
