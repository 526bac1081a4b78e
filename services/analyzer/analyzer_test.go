package analyzer

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus"
	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/config"
	"hydrallm/shared/contract"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/leaktest"
	"hydrallm/shared/testkit/startstoptest"
	"hydrallm/shared/topology"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var _ lifecycle.Service = (*Analyzer)(nil)

// bundle is an analyzer on a real bus with the other ends of its work.
type bundle struct {
	*Analyzer
	bus    *bus.Bus
	frames chan contract.Frame
	next   chan *bus.Work // what reaches the dispatcher
}

func setup(t *testing.T) *bundle {
	t.Helper()
	return setupWith(t, slog.New(slog.DiscardHandler), &config.Config{Models: []config.Model{{Name: "m", Upstreams: []string{"u"}}, {Name: "unusable"}}})
}

func setupWith(t *testing.T, log *slog.Logger, gateway *config.Config) *bundle {
	t.Helper()
	b := bustest.Start(t)
	a, err := New(Config{Gateway: gateway}, b, log, prometheus.NewRegistry())
	require.NoError(t, err)
	x := &bundle{Analyzer: a, bus: b, frames: make(chan contract.Frame, 64), next: make(chan *bus.Work, 64)}
	replies, err := b.SubscribeReplies("i1", func(_ string, msg []byte) {
		for f, err := range contract.Frames(msg) {
			if err != nil {
				t.Error(err)
			}
			x.frames <- f
		}
	})
	require.NoError(t, err)
	bustest.Own(t, b, "i1", bustest.Owner{})
	t.Cleanup(func() { require.NoError(t, replies.Stop()) })
	x.consume(t, topology.Dispatcher, func(_ context.Context, w *bus.Work) {
		w.Done()
		x.next <- w
	})
	return x
}

// routed is the slip of a request that has to be decided about.
var routed = contract.Slip{contract.StageReceived, contract.StageEnriched}

func (x *bundle) start(t *testing.T) {
	t.Helper()
	require.NoError(t, x.Start(t.Context()))
	t.Cleanup(func() { startstoptest.Stop(t, x) })
}

func (x *bundle) consume(t *testing.T, stage string, fn func(context.Context, *bus.Work)) *bus.Consumer {
	t.Helper()
	c, err := x.bus.ConsumeWork(t.Context(), bus.WorkConfig{Consumer: stage, MaxInFlight: 8}, fn)
	require.NoError(t, err)
	t.Cleanup(func() { startstoptest.Stop(t, c) })
	return c
}

func (x *bundle) publish(t *testing.T, id, model string, startBy time.Duration) {
	t.Helper()
	req := &contract.Request{ID: id, Ingress: "i1", Slip: routed, Operation: contract.Chat, Surface: contract.SurfaceChat, Model: model, StartBy: time.Now().Add(startBy)}
	require.NoError(t, x.bus.PublishWork(t.Context(), req, []byte(`{"model": "`+model+`", "n":1.0}`)))
}

// awaitCount waits until the analyzer has counted n deliveries with an end.
func (x *bundle) awaitCount(t *testing.T, end string, n float64) {
	t.Helper()
	await.True(t, func() bool { return testutil.ToFloat64(x.metrics.requests.WithLabelValues(end)) == n })
}

func TestConfiguredModelsAreForwarded(t *testing.T) {
	t.Parallel()
	x := setup(t)
	x.start(t)
	x.publish(t, "r1", "m", time.Minute)
	w := await.Value(t, x.next)
	require.Equal(t, `{"model": "m", "n":1.0}`, string(w.Body), "the body is not touched")
	require.Equal(t, &contract.Decision{Model: "m", Reason: contract.ReasonModelHint, PinProvider: true, PinModel: true, Configured: true}, w.Request.Decision)
	require.Equal(t, contract.Chat, w.Request.Operation)
	x.awaitCount(t, endRouted, 1)
}

// the client gets 404 with the name; nothing reaches the dispatcher.
func TestUnknownModelsAreRefused(t *testing.T) {
	t.Parallel()
	for name, model := range map[string]string{"unknown": "no-such-model", "without an upstream": "unusable"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := setup(t)
			x.start(t)
			x.publish(t, "r1", model, time.Minute)
			head, data, end := await.Value(t, x.frames), await.Value(t, x.frames), await.Value(t, x.frames)
			require.JSONEq(t, `{"status":404,"header":[["Content-Type","application/json"]]}`, string(head.Payload))
			var body struct {
				Error struct{ Message, Type, Param, Code string }
			}
			require.NoError(t, json.Unmarshal(data.Payload, &body))
			require.Contains(t, body.Error.Message, model)
			require.Equal(t, "model_not_found", body.Error.Code)
			require.Equal(t, "model", body.Error.Param)
			require.Equal(t, "invalid_request_error", body.Error.Type)
			require.JSONEq(t, `{"outcome":"error"}`, string(end.Payload))
			x.publish(t, "r2", "m", time.Minute)
			require.Equal(t, "r2", await.Value(t, x.next).Request.ID)
			x.awaitCount(t, endUnknown, 1)
		})
	}
}

func TestLateRequestsAreDropped(t *testing.T) {
	t.Parallel()
	x := setup(t)
	x.start(t)
	x.publish(t, "late", "m", -time.Millisecond)
	x.publish(t, "late too", "unknown", -time.Millisecond)
	x.awaitCount(t, endLate, 2)
	x.publish(t, "r2", "m", time.Minute)
	require.Equal(t, "r2", await.Value(t, x.next).Request.ID)
	require.Empty(t, x.frames)
}

// A worker that died after it forwarded must not run the request twice: its next delivery is forwarded again and stored once.
func TestRedeliveryIsForwardedOnce(t *testing.T) {
	t.Parallel()
	x := setup(t)
	forwarded := make(chan struct{})
	dying := x.consume(t, topology.Analyzer, func(ctx context.Context, w *bus.Work) {
		if w.Delivery == 1 {
			w.Request.Decision = &contract.Decision{Model: "m"}
			req := *w.Request
			req.Slip = req.Slip[1:]
			if err := x.bus.PublishWork(ctx, &req, w.Body); err != nil {
				t.Error(err)
			}
			close(forwarded)
		}
		w.Retry(time.Second) // not so often that the message counts as poison before this one has stopped
	})
	x.publish(t, "r1", "m", time.Minute)
	await.Value(t, forwarded)
	require.Equal(t, "r1", await.Value(t, x.next).Request.ID)
	startstoptest.Stop(t, dying)
	x.start(t)
	x.awaitCount(t, endRouted, 1)
	x.publish(t, "r2", "m", time.Minute)
	require.Equal(t, "r2", await.Value(t, x.next).Request.ID)
}

// Rule 1: what the next stage did not take comes back.
func TestFailedForwardIsRetried(t *testing.T) {
	t.Parallel()
	x := setup(t)
	x.start(t)
	running := x.Running()
	startstoptest.Stop(t, running.work) // the test is in between
	x.consume(t, topology.Analyzer, func(ctx context.Context, w *bus.Work) {
		if w.Delivery > 1 {
			running.handle(ctx, w)
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		running.handle(ctx, w)
	})
	x.publish(t, "r1", "m", time.Minute)
	require.Equal(t, "r1", await.Value(t, x.next).Request.ID)
	x.awaitCount(t, endRetry, 1)
	x.awaitCount(t, endRouted, 1)
}

func TestPoisonIsGivenUp(t *testing.T) {
	t.Parallel()
	x := setup(t)
	enough := make(chan struct{})
	crashing := x.consume(t, topology.Analyzer, func(_ context.Context, w *bus.Work) {
		if w.Delivery == maxDeliveries {
			close(enough)
		}
		w.Retry(0)
	})
	x.publish(t, "r1", "m", time.Minute)
	await.Value(t, enough)
	startstoptest.Stop(t, crashing)
	x.start(t)
	require.JSONEq(t, `{"status":500,"header":[["Content-Type","application/json"]]}`, string(await.Value(t, x.frames).Payload))
	x.awaitCount(t, endPoison, 1)
	require.Empty(t, x.next)
}

func TestStartAndStop(t *testing.T) {
	t.Parallel()
	x := setup(t)
	n := 0
	startstoptest.Stress(t, x, func() {
		n++
		id := fmt.Sprint("r", n)
		x.publish(t, id, "m", time.Minute)
		require.Equal(t, id, await.Value(t, x.next).Request.ID)
	})
}
