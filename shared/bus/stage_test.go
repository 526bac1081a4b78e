package bus_test

import (
	"bytes"
	"context"
	"slices"
	"sync/atomic"
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
func queued(t *testing.T, signs <-chan contract.Sign) contract.Stage {
	t.Helper()
	for {
		if s := await.Value(t, signs); s.Delivery == 0 {
			return s.Stage
		}
	}
}

// each stage forwards to the next one of the slip, which has the whole queue timeout to begin, and the ingress hears of it.
func TestForwardFollowsTheSlip(t *testing.T) {
	t.Parallel()
	b := setup(t)
	signs := make(chan contract.Sign, 8)
	bustest.Own(t, b, "i1", bustest.Owner{Signs: signs})
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
	require.ElementsMatch(t, []contract.Stage{contract.StageReceived, contract.StageEnriched}, []contract.Stage{queued(t, signs), queued(t, signs)})
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
			forwards(t, setup(t), tt.in, tt.edit, tt.out)
		})
	}
}

// forwards has a stage that dies, and is repeated, make out of in by an edit.
func forwards(t *testing.T, b *bus.Bus, in, edit, out []byte) {
	t.Helper()
	signs := make(chan contract.Sign, 64)
	bustest.Own(t, b, "i1", bustest.Owner{Signs: signs})
	consume(t, b, bus.WorkConfig{Consumer: topology.Enricher}, func(ctx context.Context, w *bus.Work) {
		if !bytes.Equal(in, w.Body) {
			t.Error("the stage gets another body at delivery", w.Delivery)
		}
		if w.Delivery > 1 {
			if err := w.Forward(ctx, edit); err != nil {
				t.Error(err)
			}
			return
		}
		// It dies when the next stage has the request, before its own message is settled.
		forwarded := *w.Request
		forwarded.Slip = forwarded.Slip[1:]
		if err := b.PublishWork(ctx, &forwarded, out); err != nil {
			t.Error(err)
		}
		w.Retry(0)
	})
	require.NoError(t, b.PublishWork(t.Context(), request("r", contract.StageAnalyzed, contract.StageEnriched), in))
	require.Equal(t, contract.StageEnriched, queued(t, signs))
	got := make(chan []byte, 2)
	consume(t, b, bus.WorkConfig{Consumer: topology.Dispatcher}, func(ctx context.Context, w *bus.Work) {
		got <- bytes.Clone(w.Body)
		w.Done()
		if err := w.Discard(ctx); err != nil {
			t.Error(err)
		}
	})
	require.True(t, bytes.Equal(out, await.Value(t, got)))
	require.NoError(t, b.PublishWork(t.Context(), request("last"), []byte("last")))
	require.Equal(t, "last", string(await.Value(t, got)), "it is stored once")
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
				bustest.Own(t, b, "i1", bustest.Owner{Decide: func(q contract.FenceQuestion) contract.FenceAnswer {
					asked <- q.At
					return contract.FenceAnswer{Decision: tt.owner, Delivery: 5, Lost: []uint64{1, 3}}
				}})
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
					if w.Request.ID == "r" && tt.redelivered && (w.Delivery != 5 || !slices.Equal(w.Lost, []uint64{1, 3})) {
						t.Errorf("delivery %d, %v lost", w.Delivery, w.Lost)
					}
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

// a redelivery whose worker may be alive waits until it is not, or has given the request back; nobody works on a request twice.
func TestRedeliveryWaitsForItsWorker(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		first string // what the first worker is, "" = unknown
		waits int    // how often the owner says so
	}{
		"alive and unknown":          {first: "", waits: 3},
		"gone":                       {first: "nobody", waits: 1},
		"here, but has given it up":  {first: "here", waits: 1},
		"there, but has given it up": {first: "there", waits: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := natstest.Start(t)
			b, other := bustest.Connect(t, server), bustest.Connect(t, server)
			workers := map[string]string{"": "", "nobody": "nobody", "here": b.WorkerID(), "there": other.WorkerID()}
			consume(t, other, bus.WorkConfig{Consumer: topology.Analyzer}, func(_ context.Context, w *bus.Work) { w.Done() })
			asked := make(chan contract.FenceQuestion, 16)
			var waits atomic.Int64
			bustest.Own(t, b, "i1", bustest.Owner{Decide: func(q contract.FenceQuestion) contract.FenceAnswer {
				asked <- q
				if waits.Add(1) <= int64(tt.waits) {
					return contract.FenceAnswer{Decision: contract.FenceWait, Worker: workers[tt.first]}
				}
				return contract.FenceAnswer{Decision: contract.FenceRun, Delivery: 9, Lost: []uint64{4}}
			}})
			require.NoError(t, b.PublishWork(t.Context(), request("r"), []byte("{}")))
			loseOne(t, server, topology.Dispatcher)
			w := await.Value(t, sink(t, b))
			require.Equal(t, uint64(9), w.Delivery)
			require.Equal(t, []uint64{4}, w.Lost)
			require.Len(t, asked, tt.waits+1)
			for i := range tt.waits + 1 {
				q := <-asked
				require.Equal(t, b.WorkerID(), q.Worker)
				if i == tt.waits && tt.first != "" {
					require.Equal(t, workers[tt.first], q.Gone)
				} else {
					require.Empty(t, q.Gone)
				}
			}
		})
	}
}

// when a worker gets a message again that it works on, it goes on, and says for both deliveries what becomes of it.
func TestRedeliveryToTheSameWorker(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	b := bustest.Connect(t, server)
	asked := make(chan struct{}, 16)
	bustest.Own(t, b, "i1", bustest.Owner{Decide: func(contract.FenceQuestion) contract.FenceAnswer {
		asked <- struct{}{}
		return contract.FenceAnswer{Decision: contract.FenceWait, Worker: b.WorkerID()}
	}})
	var runs atomic.Int64
	finish := make(chan struct{})
	consume(t, b, bus.WorkConfig{Consumer: topology.Dispatcher}, func(ctx context.Context, w *bus.Work) {
		runs.Add(1)
		select {
		case <-finish:
		case <-ctx.Done():
		}
		w.Done()
	})
	nc, err := nats.Connect("", nats.InProcessServer(server))
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	acks := make(chan *nats.Msg, 64)
	_, err = nc.ChanSubscribe("$JS.ACK.>", acks)
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	require.NoError(t, b.PublishWork(t.Context(), request("r"), []byte("{}")))
	progress := await.Value(t, acks)
	require.NoError(t, nc.Publish(progress.Subject, []byte("-NAK"))) // as if the lease were over
	await.Value(t, asked)
	require.Equal(t, int64(1), runs.Load())
	close(finish)
	await.True(t, func() bool {
		s, err := js.Stream(t.Context(), subject.WorkStream)
		return err == nil && s.CachedInfo().State.Msgs == 0
	}, "both deliveries are settled")
	require.Equal(t, int64(1), runs.Load())
}

// Delivery rule 4, R-486: an ingress says which reports are about requests that nobody awaits, and the requests of one that is gone are cancelled.
func TestUnwantedWorkIsCancelled(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]bool{"nobody awaits it": false, "the ingress is gone": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			if !gone {
				sub, err := b.ServeOwner("i1", unwilling{})
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, sub.Stop()) })
			}
			causes := make(chan error, 1)
			consume(t, b, bus.WorkConfig{Consumer: topology.Dispatcher}, func(ctx context.Context, w *bus.Work) {
				<-ctx.Done()
				causes <- context.Cause(ctx)
				w.Done()
			})
			require.NoError(t, b.PublishWork(t.Context(), request("r"), []byte("{}")))
			require.ErrorIs(t, await.Value(t, causes), contract.ErrClientGone)
		})
	}
}

// a request is handed back by workers that stop, with it in hand or before they have begun with it, and none of them counts as lost. One that fails
// does.
func TestHandedBackByStoppingWorkers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	bustest.Own(t, b, "i1", bustest.Owner{})
	require.NoError(t, b.PublishWork(t.Context(), request("r"), []byte("{}")))
	stopped, cut := context.WithCancel(t.Context())
	cut()
	began := make(chan *bus.Work)
	worker := func(settle func(context.Context, *bus.Work)) *bus.Consumer {
		c, err := b.ConsumeWork(t.Context(), bus.WorkConfig{Consumer: topology.Dispatcher, MaxInFlight: 8}, func(ctx context.Context, w *bus.Work) {
			began <- w
			settle(ctx, w)
		})
		require.NoError(t, err)
		return c
	}
	for range 8 {
		c := worker(func(ctx context.Context, w *bus.Work) {
			<-ctx.Done()
			w.Retry(time.Millisecond)
		})
		require.Empty(t, await.Value(t, began).Lost)
		require.Error(t, c.Stop(stopped))
	}
	failing := worker(func(_ context.Context, w *bus.Work) {
		if len(w.Lost) < 2 {
			w.Retry(time.Millisecond)
			return
		}
		w.Done()
	})
	for lost := range 3 {
		require.Len(t, await.Value(t, began).Lost, lost)
	}
	require.NoError(t, failing.Stop(t.Context()))
}

// unwilling is an ingress that awaits nothing.
type unwilling struct{ bustest.Owner }

func (unwilling) Alive(string, contract.Sign) contract.Heard { return contract.Heard{Unwanted: true} }

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
