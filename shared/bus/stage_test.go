package bus_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus"
	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/testkit/startstoptest"
	"hydrallm/shared/topology"
)

// consume runs fn as a stage until the end of the test.
func consume(t *testing.T, b *bus.Bus, cfg bus.WorkConfig, fn func(context.Context, *bus.Work)) {
	t.Helper()
	cfg.MaxInFlight = 8
	c, err := b.ConsumeWork(t.Context(), cfg, fn)
	require.NoError(t, err)
	t.Cleanup(func() { startstoptest.Stop(t, c) })
}

// sink takes what comes to the dispatcher.
func sink(t *testing.T, b *bus.Bus) <-chan *bus.Work {
	t.Helper()
	got := make(chan *bus.Work, 8)
	consume(t, b, bus.WorkConfig{Consumer: topology.Dispatcher}, func(_ context.Context, w *bus.Work) {
		w.Done()
		got <- w
	})
	return got
}

// queued gives the stage for which a request is said to wait next.
func queued(t *testing.T, frames <-chan contract.Frame) contract.Stage {
	t.Helper()
	for {
		if f := await.Value(t, frames); f.Kind == contract.FrameQueued {
			require.Zero(t, f.Delivery)
			return f.Stage
		}
	}
}

// each stage forwards to the next one of the slip, which has the whole queue timeout to begin, and the ingress hears of it.
func TestForwardFollowsTheSlip(t *testing.T) {
	t.Parallel()
	b := setup(t)
	frames := collectFrames(t, b)
	forward := func(ctx context.Context, w *bus.Work) {
		if err := w.Forward(ctx, nil); err != nil {
			t.Error(err)
		}
	}
	consume(t, b, bus.WorkConfig{Consumer: topology.Session}, forward)
	consume(t, b, bus.WorkConfig{Consumer: topology.Analyzer}, forward)
	got := sink(t, b)

	sent := request("r", contract.StageSession, contract.StageReceived, contract.StageEnriched)
	sent.QueueTimeout = time.Hour
	begun := time.Now()
	require.NoError(t, b.PublishWork(t.Context(), sent, []byte("{}")))
	w := await.Value(t, got)
	require.Equal(t, contract.Slip{contract.StageEnriched}, w.Request.Slip)
	require.WithinRange(t, w.Request.StartBy, begun.Add(time.Hour).Truncate(time.Millisecond), time.Now().Add(time.Hour))
	require.Equal(t, time.Hour, w.Request.QueueTimeout)
	// Each stage says so after it has forwarded, so that the second one may be heard first.
	require.ElementsMatch(t, []contract.Stage{contract.StageReceived, contract.StageEnriched}, []contract.Stage{queued(t, frames), queued(t, frames)})
}

// A stage that edits the body makes the same of it at each delivery, because its input stays as it was, however large it is.
func TestForwardWithAnotherBody(t *testing.T) {
	t.Parallel()
	small, large := []byte(`{"n":1.0}`), bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	longer := append(bytes.Clone(large), 'x')
	for name, tt := range map[string]struct{ in, edit, out []byte }{
		"small":           {small, []byte(`{"n":1.00}`), []byte(`{"n":1.00}`)},
		"small to large":  {small, large, large},
		"large to small":  {large, small, small},
		"large to large":  {large, longer, longer},
		"small unchanged": {small, nil, small},
		"large unchanged": {large, nil, large},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			letRun(t, b)
			consume(t, b, bus.WorkConfig{Consumer: topology.Enricher}, func(ctx context.Context, w *bus.Work) {
				if !bytes.Equal(tt.in, w.Body) {
					t.Error("the stage gets another body at delivery", w.Delivery)
				}
				if w.Delivery > 1 {
					if err := w.Forward(ctx, tt.edit); err != nil {
						t.Error(err)
					}
					return
				}
				// It dies when the next stage has the request, before its own message is settled.
				forwarded := *w.Request
				forwarded.Slip = forwarded.Slip[1:]
				if err := b.PublishWork(ctx, &forwarded, tt.out); err != nil {
					t.Error(err)
				}
				w.Retry(0)
			})
			frames := collectFrames(t, b)
			require.NoError(t, b.PublishWork(t.Context(), request("r", contract.StageAnalyzed, contract.StageEnriched), tt.in))
			require.Equal(t, contract.StageEnriched, queued(t, frames))
			got := make(chan []byte, 2)
			consume(t, b, bus.WorkConfig{Consumer: topology.Dispatcher}, func(ctx context.Context, w *bus.Work) {
				got <- bytes.Clone(w.Body)
				w.Done()
				if err := w.Discard(ctx); err != nil {
					t.Error(err)
				}
			})
			require.True(t, bytes.Equal(tt.out, await.Value(t, got)))
			require.NoError(t, b.PublishWork(t.Context(), request("last"), []byte("last")))
			require.Equal(t, "last", string(await.Value(t, got)), "it is stored once")
		})
	}
}

// R-402, delivery rule 3: what nobody waits for does not reach the handler: what comes too late, and a redelivery that its owner does not let run.
// A redelivery is not late, because a worker had it in time.
func TestWhoGetsADelivery(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		late, redelivered bool
		owner             contract.FenceDecision // "" = it is gone
		runs              bool
	}{
		"in time":                        {runs: true},
		"late":                           {late: true, owner: contract.FenceRun},
		"redelivered":                    {redelivered: true, owner: contract.FenceRun, runs: true},
		"redelivered and late":           {redelivered: true, late: true, owner: contract.FenceRun, runs: true},
		"redelivered, nobody waits":      {redelivered: true, owner: contract.FenceStop},
		"redelivered, the owner is gone": {redelivered: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := natstest.Start(t)
			b := bustest.Connect(t, server)
			asked := make(chan contract.Position, 8)
			if tt.owner != "" {
				sub, err := b.ServeFence("i1", func(_ string, at contract.Position) contract.FenceDecision {
					asked <- at
					return tt.owner
				})
				require.NoError(t, err)
				defer func() { require.NoError(t, sub.Stop()) }()
			}
			req := request("r", contract.StageAnalyzed, contract.StageEnriched)
			if tt.late {
				req.StartBy = time.Now().Add(-time.Second)
			}
			require.NoError(t, b.PublishWork(t.Context(), req, []byte("{}")))
			if tt.redelivered {
				loseOne(t, server, topology.Enricher)
			}
			handled, refused := make(chan string, 8), make(chan string, 8)
			consume(t, b, bus.WorkConfig{Consumer: topology.Enricher, Refused: func(_ context.Context, w *bus.Work) { refused <- w.Request.ID }},
				func(_ context.Context, w *bus.Work) {
					handled <- w.Request.ID
					w.Done()
				})
			if tt.runs {
				require.Equal(t, "r", await.Value(t, handled))
			} else {
				require.Equal(t, "r", await.Value(t, refused))
			}
			if tt.redelivered && tt.owner != "" {
				require.Equal(t, contract.Position{Stage: contract.StageAnalyzed, Delivery: 2}, await.Value(t, asked))
			}
			require.NoError(t, b.PublishWork(t.Context(), request("next", contract.StageAnalyzed, contract.StageEnriched), []byte("{}")))
			require.Equal(t, "next", await.Value(t, handled))
			require.Empty(t, refused)
			require.Empty(t, asked, "nobody asks about a first delivery")
		})
	}
}

// loseOne takes a message of a stage as a worker that dies with it.
func loseOne(t *testing.T, server bus.InProcess, consumer string) {
	t.Helper()
	nc, err := nats.Connect("", nats.InProcessServer(server))
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	c, err := js.Consumer(t.Context(), subject.WorkStream, consumer)
	require.NoError(t, err)
	m, err := c.Next()
	require.NoError(t, err)
	require.NoError(t, m.Nak())
	require.NoError(t, nc.Flush())
}

// a message whose slip begins with another stage than the one that it waits for is put away.
func TestSlipOfAnotherStage(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	b := bustest.Connect(t, server)
	nc, err := nats.Connect("", nats.InProcessServer(server))
	require.NoError(t, err)
	defer nc.Close()
	for _, slip := range []contract.Slip{{contract.StageReceived, contract.StageEnriched}, nil, {contract.StageEnriched, contract.StageAnalyzed}} {
		msg := &nats.Msg{Subject: subject.Work("enriched"), Header: nats.Header(request("bad", slip...).Header()), Data: []byte("{}")}
		if slip == nil {
			msg.Header = (&contract.Request{ID: "bad", Ingress: "i1"}).Header()
		}
		require.NoError(t, nc.PublishMsg(msg))
	}
	require.NoError(t, nc.Flush())
	require.NoError(t, b.PublishWork(t.Context(), request("good"), []byte("{}")))
	require.Equal(t, "good", await.Value(t, sink(t, b)).Request.ID)
}
