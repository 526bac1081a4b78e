package enricher

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"hydrallm/services/enricher/internal/enrich"
	"hydrallm/shared/bus"
	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/config"
	"hydrallm/shared/contract"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/query"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/leaktest"
	"hydrallm/shared/testkit/startstoptest"
	"hydrallm/shared/topology"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var _ lifecycle.Service = (*Enricher)(nil)

const testWait = await.Limit

// setup gives an enricher that has not started, and what reaches the dispatcher.
func setup(t *testing.T) (*Enricher, <-chan *bus.Work) {
	t.Helper()
	b := bustest.Start(t)
	e, err := New(Config{ID: "e1", Web: config.Web{Browser: "never"}}, b, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	require.NoError(t, err)
	next := make(chan *bus.Work, 8)
	c, err := b.ConsumeWork(t.Context(), bus.WorkConfig{Consumer: topology.Dispatcher, MaxInFlight: 8}, func(_ context.Context, w *bus.Work) {
		w.Done()
		next <- w
	})
	require.NoError(t, err)
	t.Cleanup(func() { startstoptest.Stop(t, c) })
	return e, next
}

func publish(t *testing.T, e *Enricher, id string, startBy time.Duration) *contract.Request {
	t.Helper()
	req := &contract.Request{
		ID: id, Ingress: "i1", Slip: contract.Slip{contract.StageAnalyzed, contract.StageEnriched}, Model: "m", StartBy: time.Now().Add(startBy),
		Decision: &contract.Decision{Model: "m", Reason: contract.ReasonModelHint, PinProvider: true},
	}
	require.NoError(t, e.bus.PublishWork(t.Context(), req, []byte(`{"n":1.0}`)))
	return req
}

func receive(t *testing.T, next <-chan *bus.Work) *bus.Work {
	t.Helper()
	select {
	case w := <-next:
		return w
	case <-time.After(testWait):
		t.Fatal("nothing arrived")
		panic("unreachable")
	}
}

// body and decision pass unchanged.
func TestRequestsAreHandedOn(t *testing.T) {
	t.Parallel()
	e, next := setup(t)
	require.NoError(t, e.Start(t.Context()))
	defer startstoptest.Stop(t, e)
	late := publish(t, e, "late", -time.Millisecond)
	sent := publish(t, e, "r1", time.Minute)
	w := receive(t, next)
	require.NotEqual(t, late.ID, w.Request.ID)
	require.Equal(t, sent.ID, w.Request.ID)
	require.Equal(t, sent.Decision, w.Request.Decision)
	require.Equal(t, `{"n":1.0}`, string(w.Body))
	await.True(t, func() bool { return testutil.ToFloat64(e.metrics.requests.WithLabelValues(endLate)) == 1 })
}

// A request whose forwarding fails comes back.
func TestFailedForwardIsRetried(t *testing.T) {
	t.Parallel()
	e, next := setup(t)
	r := &run{enricher: e, web: enrich.New(enrich.Config{}, nil, nil, e.log)}
	c, err := e.bus.ConsumeWork(t.Context(), bus.WorkConfig{Consumer: topology.Enricher, MaxInFlight: 8}, func(ctx context.Context, w *bus.Work) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		if w.Delivery == 1 {
			cancel()
		}
		r.handle(ctx, w)
	})
	require.NoError(t, err)
	defer startstoptest.Stop(t, c)
	publish(t, e, "r1", time.Minute)
	require.Equal(t, "r1", receive(t, next).Request.ID)
	await.True(t, func() bool { return testutil.ToFloat64(e.metrics.requests.WithLabelValues(endRetry)) == 1 })
}

func TestStartAndStop(t *testing.T) {
	t.Parallel()
	e, next := setup(t)
	n := 0
	startstoptest.Stress(t, e, func() {
		n++
		sent := publish(t, e, fmt.Sprint("r", n), time.Minute)
		require.Equal(t, sent.ID, receive(t, next).Request.ID)
	})
}

// an enricher that runs answers questions about keywords, and its classifier knows them.
func TestKeywords(t *testing.T) {
	t.Parallel()
	e, _ := setup(t)
	require.NoError(t, e.Start(t.Context()))
	t.Cleanup(func() { startstoptest.Stop(t, e) })
	added, err := query.AddKeywords.Ask(t.Context(), e.bus, query.NewKeywords{Lang: "en", Keywords: []string{"Kelp Index"}})
	require.NoError(t, err)
	require.Equal(t, []string{"Kelp Index"}, added.Added)
	all, err := query.GetKeywords.Ask(t.Context(), e.bus, query.None{})
	require.NoError(t, err)
	require.Equal(t, query.Keywords{Korean: []string{}, English: []string{"Kelp Index"}}, all)
	await.True(t, func() bool { return e.intent.NeedsWeb(t.Context(), "how is the kelp index doing").Web }, "the keyword")
}
