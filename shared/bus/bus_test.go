package bus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus"
	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/leaktest"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/testkit/output"
	"hydrallm/shared/testkit/startstoptest"
	"hydrallm/shared/topology"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const testWait = await.Limit

func setup(t *testing.T) *bus.Bus {
	t.Helper()
	return bustest.Start(t)
}

// request is one that waits for the given stages, or for the dispatcher.
func request(id string, slip ...contract.Stage) *contract.Request {
	if len(slip) == 0 {
		slip = contract.Slip{contract.StageEnriched}
	}
	return &contract.Request{ID: id, Ingress: "i1", Model: "m", Slip: slip, StartBy: time.Now().Add(time.Minute).Truncate(time.Millisecond)}
}

// letRun is the owner of every request: redeliveries may run.
func letRun(tb testing.TB, b *bus.Bus) {
	tb.Helper()
	bustest.Own(tb, b, "i1", bustest.Owner{})
}

// Delivery rule 1: the next message is stored before this one is acknowledged, and the body survives byte for byte.
func TestWorkTravelsThroughTheStages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	letRun(t, b)
	body := []byte(`{"model": "m", "n":1.0}`)
	analyzer, err := b.ConsumeWork(t.Context(), bus.WorkConfig{Consumer: topology.Analyzer, MaxInFlight: 8}, func(ctx context.Context, w *bus.Work) {
		w.Request.Decision = &contract.Decision{Model: "m", Configured: true}
		if err := w.Forward(ctx, nil); err != nil {
			w.Retry(time.Second)
		}
	})
	require.NoError(t, err)
	defer startstoptest.Stop(t, analyzer)
	got := make(chan *bus.Work, 1)
	dispatcher, err := b.ConsumeWork(t.Context(), bus.WorkConfig{Consumer: topology.Dispatcher, MaxInFlight: 8}, func(_ context.Context, w *bus.Work) {
		w.Done()
		got <- w
	})
	require.NoError(t, err)
	defer startstoptest.Stop(t, dispatcher)

	sent := request("r1", contract.StageReceived, contract.StageEnriched)
	require.NoError(t, b.PublishWork(t.Context(), sent, body))
	w := await.Value(t, got)
	require.Equal(t, body, w.Body)
	require.Equal(t, uint64(1), w.Delivery)
	require.Equal(t, "m", w.Request.Decision.Model)
	require.Equal(t, sent.StartBy, w.Request.StartBy)
	require.Equal(t, "i1", w.Request.Ingress)
}

// a body above the payload limit is offloaded to the object store.
func TestLargeBodyIsOffloaded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	letRun(t, b)                                            // without an owner the work is cancelled when loading takes a slow machine more than some seconds
	body := bytes.Repeat([]byte("0123456789abcdef"), 1<<20) // 16 MiB, twice the limit
	got := make(chan []byte, 1)
	c, err := b.ConsumeWork(t.Context(), bus.WorkConfig{Consumer: topology.Dispatcher, MaxInFlight: 1}, func(ctx context.Context, w *bus.Work) {
		got <- w.Body
		if err := w.Discard(ctx); err != nil {
			t.Error(err)
		}
		w.Done()
	})
	require.NoError(t, err)
	defer startstoptest.Stop(t, c)
	sent := request("big")
	sent.StartBy = time.Now().Add(time.Hour)
	require.NoError(t, b.PublishWork(t.Context(), sent, body))
	require.True(t, bytes.Equal(body, await.Value(t, got)))
}

// publishing one stage of one request twice stores it once.
func TestPublishIsIdempotent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	letRun(t, b)
	for range 3 {
		require.NoError(t, b.PublishWork(t.Context(), request("same"), []byte("{}")))
	}
	require.NoError(t, b.PublishWork(t.Context(), request("last"), []byte("{}")))
	ids := make(chan string, 4)
	c, err := b.ConsumeWork(t.Context(), bus.WorkConfig{Consumer: topology.Dispatcher, MaxInFlight: 1}, func(_ context.Context, w *bus.Work) {
		ids <- w.Request.ID
		w.Done()
	})
	require.NoError(t, err)
	defer startstoptest.Stop(t, c)
	require.Equal(t, "same", await.Value(t, ids))
	require.Equal(t, "last", await.Value(t, ids))
}

// a handler that takes longer than AckWait keeps its message, and the ingress hears of it.
func TestLongWorkIsNotRedelivered(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var calls atomic.Int64
	signs := make(chan contract.Sign, 8)
	bustest.Own(t, b, "i1", bustest.Owner{Signs: signs})
	done := make(chan struct{})
	c, err := b.ConsumeWork(t.Context(), bus.WorkConfig{Consumer: topology.Dispatcher, MaxInFlight: 4}, func(_ context.Context, w *bus.Work) {
		calls.Add(1)
		<-time.After(topology.AckWait + topology.AckWait/2)
		w.Done()
		close(done)
	})
	require.NoError(t, err)
	defer startstoptest.Stop(t, c)
	require.NoError(t, b.PublishWork(t.Context(), request("slow"), []byte("{}")))
	await.Value(t, done)
	require.Equal(t, int64(1), calls.Load())
	for range 2 {
		want := contract.Sign{Position: contract.Position{Stage: contract.StageEnriched, Delivery: 1}, RequestID: "slow"}
		require.Equal(t, want, await.Value(t, signs))
	}
}

// A handler that panics or forgets to settle does not lose the request.
func TestUnsettledWorkComesBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	letRun(t, b)
	deliveries := make(chan uint64, 3)
	c, err := b.ConsumeWork(t.Context(), bus.WorkConfig{Consumer: topology.Dispatcher, MaxInFlight: 4}, func(_ context.Context, w *bus.Work) {
		deliveries <- w.Delivery
		switch w.Delivery {
		case 1:
			panic("boom")
		case 2:
			return
		}
		w.Done()
	})
	require.NoError(t, err)
	defer startstoptest.Stop(t, c)
	require.NoError(t, b.PublishWork(t.Context(), request("p"), []byte("{}")))
	for want := range uint64(3) {
		require.Equal(t, want+1, await.Value(t, deliveries))
	}
}

// Delivery rule 8: a stopping worker hands back what it has not begun and cancels what outlives the limit.
func TestStopCancelsHandlersAfterTheLimit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	letRun(t, b)
	begun, cause := make(chan struct{}), make(chan error, 1)
	c, err := b.ConsumeWork(t.Context(), bus.WorkConfig{Consumer: topology.Dispatcher, MaxInFlight: 1}, func(ctx context.Context, w *bus.Work) {
		close(begun)
		<-ctx.Done()
		cause <- context.Cause(ctx)
		w.Retry(0)
	})
	require.NoError(t, err)
	require.NoError(t, b.PublishWork(t.Context(), request("x"), []byte("{}")))
	await.Value(t, begun)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, c.Stop(ctx), context.DeadlineExceeded)
	require.ErrorIs(t, await.Value(t, cause), bus.ErrStopping)
}

func collectFrames(t *testing.T, b *bus.Bus) <-chan contract.Frame {
	t.Helper()
	frames := make(chan contract.Frame, 4096)
	sub, err := b.SubscribeReplies("i1", func(_ string, msg []byte) {
		for f, err := range contract.Frames(msg) {
			if err != nil {
				t.Error(err)
			}
			frames <- f
		}
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sub.Stop()) })
	return frames
}

func TestReplyFramesArriveInOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	letRun(t, b)
	frames := collectFrames(t, b)
	consume(t, b, bus.WorkConfig{Consumer: topology.Dispatcher}, func(ctx context.Context, w *bus.Work) {
		if w.Delivery == 1 {
			w.Retry(0)
			return
		}
		defer w.Done()
		r := w.OpenReply()
		defer r.Close()
		err := errors.Join(
			r.Head(contract.Head{Status: 200}), r.Data(ctx, []byte("one")), r.Flush(), r.Data(ctx, bytes.Repeat([]byte("x"), 300<<10)),
			r.End(contract.End{Outcome: contract.OutcomeSuccess}), r.Flush(),
		)
		if err != nil {
			t.Error(err)
		}
	})
	require.NoError(t, b.PublishWork(t.Context(), request("r"), []byte("{}")))
	var size int
	for seq := uint64(0); ; seq++ {
		f := await.Value(t, frames)
		require.Equal(t, seq, f.Seq)
		require.Equal(t, contract.Position{Stage: contract.StageEnriched, Delivery: 2}, f.Position)
		if f.Kind == contract.FrameEnd {
			break
		}
		if f.Kind == contract.FrameData {
			size += len(f.Payload)
		}
	}
	require.Equal(t, 3+300<<10, size)
}

// SES-06: a worker waits for a client that reads slowly instead of filling memory.
func TestReplyWaitsForCredit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	full, sent := make(chan struct{}), make(chan error, 1)
	consume(t, b, bus.WorkConfig{Consumer: topology.Dispatcher}, func(ctx context.Context, w *bus.Work) {
		defer w.Done()
		r := w.OpenReply()
		defer r.Close()
		if err := r.Data(ctx, make([]byte, bus.Window)); err != nil {
			t.Error(err)
		}
		short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		if err := r.Data(short, []byte("more")); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		close(full)
		sent <- r.Data(ctx, []byte("more"))
	})
	require.NoError(t, b.PublishWork(t.Context(), request("r"), []byte("{}")))
	await.Value(t, full)
	require.NoError(t, b.Credit("r", bus.CreditStep))
	require.NoError(t, await.Value(t, sent))
}

// SES-06: what is on the way to a client that takes nothing is a window and little more, however small the pieces are in which it is written,
// and all of it is sent, though nobody flushes.
func TestSlowReaderCostsAWindow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var messages, frames, onTheWay, bytes atomic.Int64
	sub, err := b.SubscribeReplies("i1", func(_ string, msg []byte) {
		messages.Add(1)
		onTheWay.Add(int64(len(msg)))
		for f, err := range contract.Frames(msg) {
			if err != nil {
				t.Error(err)
			}
			frames.Add(1)
			bytes.Add(int64(len(f.Payload)))
		}
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sub.Stop()) })
	consume(t, b, bus.WorkConfig{Consumer: topology.Dispatcher}, func(ctx context.Context, w *bus.Work) {
		defer w.Done()
		r := w.OpenReply()
		defer r.Close()
		for r.Data(ctx, []byte("data: 12\n\n")) == nil {
			continue
		}
	})
	require.NoError(t, b.PublishWork(t.Context(), request("r"), []byte("{}")))
	await.True(t, func() bool { return bytes.Load() > bus.Window-10 })
	require.LessOrEqual(t, bytes.Load(), int64(bus.Window))
	require.LessOrEqual(t, onTheWay.Load(), int64(bus.Window+bus.Window/1000))
	require.LessOrEqual(t, messages.Load(), int64(16))
	require.Equal(t, messages.Load(), frames.Load(), "data travels as one frame")
	require.NoError(t, b.Cancel("r"))
}

// a cancellation reaches the worker of any stage, also when it comes before the work; what such a worker forwards goes nowhere.
func TestCancelReachesTheWorker(t *testing.T) {
	t.Parallel()
	b := setup(t)
	begun, causes := make(chan string, 8), make(chan error, 8)
	consume(t, b, bus.WorkConfig{Consumer: topology.Enricher}, func(ctx context.Context, w *bus.Work) {
		begun <- w.Request.ID
		<-ctx.Done()
		causes <- context.Cause(ctx)
		if err := w.Forward(ctx, nil); err != nil {
			t.Error(err)
		}
	})
	next := sink(t, b)
	slip := contract.Slip{contract.StageAnalyzed, contract.StageEnriched}
	require.NoError(t, b.PublishWork(t.Context(), request("running", slip...), []byte("{}")))
	require.Equal(t, "running", await.Value(t, begun))
	require.NoError(t, b.Cancel("running"))
	require.ErrorIs(t, await.Value(t, causes), contract.ErrClientGone)

	require.NoError(t, b.Cancel("early"))
	require.NoError(t, b.PublishWork(t.Context(), request("early", slip...), []byte("{}")))
	require.Equal(t, "early", await.Value(t, begun))
	require.ErrorIs(t, await.Value(t, causes), contract.ErrClientGone)

	require.NoError(t, b.PublishWork(t.Context(), request("last"), []byte("{}")))
	require.Equal(t, "last", await.Value(t, next).Request.ID)
	require.Empty(t, begun, "nothing comes back")
}

// Delivery rule 3: the owner decides about a redelivery; a dead owner is noticed.
func TestFenceAsksTheOwner(t *testing.T) {
	t.Parallel()
	b := setup(t)
	q := contract.FenceQuestion{RequestID: "r", At: contract.Position{Stage: contract.StageEnriched, Delivery: 2}, Worker: "w", Gone: "g"}
	_, err := b.Fence(t.Context(), "i1", q)
	require.ErrorIs(t, err, bus.ErrNoOwner)
	want := contract.FenceAnswer{Decision: contract.FenceWait, Delivery: 7, Lost: []uint64{3, 5}, Worker: "x"}
	bustest.Own(t, b, "i1", bustest.Owner{Decide: func(got contract.FenceQuestion) contract.FenceAnswer {
		if got != q {
			t.Errorf("%+v", got)
		}
		return want
	}})
	got, err := b.Fence(t.Context(), "i1", q)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestFactsAreHandledInBatchesAndRetried(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 20 {
		require.NoError(t, b.PublishFact(t.Context(), subject.UsageRecorded, fmt.Sprint("id", i), fmt.Append(nil, i)))
	}
	require.NoError(t, b.PublishFact(t.Context(), subject.UsageRecorded, "id0", []byte("again"))) // stored once
	var mu sync.Mutex
	seen := map[string]int{}
	all := make(chan struct{})
	refused := false
	c, err := b.ConsumeFacts(t.Context(), bus.FactsConfig{Consumer: topology.SessionWriter, MaxBatch: 64, MaxWait: 200 * time.Millisecond},
		func(_ context.Context, facts []bus.Fact) error {
			mu.Lock()
			defer mu.Unlock()
			if !refused {
				refused = true
				return context.DeadlineExceeded
			}
			for _, f := range facts {
				seen[string(f.Data)]++
			}
			if len(seen) == 20 {
				close(all)
			}
			return nil
		})
	require.NoError(t, err)
	defer startstoptest.Stop(t, c)
	await.Value(t, all)
	mu.Lock()
	defer mu.Unlock()
	for data, n := range seen {
		require.Equal(t, 1, n, data)
	}
}

func TestBucketComparesAndSwaps(t *testing.T) {
	t.Parallel()
	b := setup(t)
	k, err := b.Bucket(t.Context(), subject.SlotsBucket)
	require.NoError(t, err)
	_, err = k.Get(t.Context(), "a")
	require.ErrorIs(t, err, bus.ErrKeyNotFound)
	rev, err := k.Create(t.Context(), "a", []byte("1"))
	require.NoError(t, err)
	_, err = k.Create(t.Context(), "a", []byte("2"))
	require.ErrorIs(t, err, bus.ErrConflict)
	rev2, err := k.Update(t.Context(), "a", []byte("2"), rev)
	require.NoError(t, err)
	_, err = k.Update(t.Context(), "a", []byte("3"), rev)
	require.ErrorIs(t, err, bus.ErrConflict)

	changes := make(chan bus.Entry, 8)
	w, err := k.Watch(t.Context(), ">", func(e bus.Entry) { changes <- e })
	require.NoError(t, err)
	defer w.Stop()
	require.Equal(t, "2", string(await.Value(t, changes).Value))
	require.NoError(t, k.Delete(t.Context(), "a", rev2))
	require.True(t, await.Value(t, changes).Deleted)
	_, err = k.Create(t.Context(), "a", []byte("again"))
	require.NoError(t, err)
}

// Messages that no worker can process are put away with a line in the log and a count, instead of being delivered for ever.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	var log output.Buffer
	reg := prometheus.NewRegistry()
	cfg := bus.Config{InProcess: server, Name: t.Name(), Metrics: reg, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	b, err := bus.Connect(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { disconnect(t, b) })
	other, err := bus.Connect(t.Context(), cfg) // services of one process share the count
	require.NoError(t, err)
	defer disconnect(t, other)
	nc, err := nats.Connect("", nats.InProcessServer(server))
	require.NoError(t, err)
	defer nc.Close()
	letters := make(chan *nats.Msg, 16)
	_, err = nc.ChanSubscribe(subject.AllDead, letters)
	require.NoError(t, err)
	got := sink(t, b)

	tests := map[string]struct {
		damage      func(header nats.Header)
		rid, reason string
	}{
		"no header at all":    {func(h nats.Header) { clear(h) }, "", "no request envelope"},
		"no id":               {func(h nats.Header) { h.Del(contract.HeaderRequestID) }, "", "no request envelope"},
		"no deadline":         {func(h nats.Header) { h.Del(contract.HeaderDeadline) }, "bad", "no request envelope"},
		"envelope is no JSON": {func(h nats.Header) { h.Set(contract.HeaderRequest, "{") }, "bad", "no request envelope"},
		"another stage": {func(h nats.Header) {
			h.Set(contract.HeaderRequest, request("", contract.StageReceived, contract.StageEnriched).Header()[contract.HeaderRequest][0])
		}, "bad", "the slip says received"},
		"its body is gone": {func(h nats.Header) { h.Set(contract.HeaderBody, "nowhere") }, "bad", "loading body nowhere"},
	}
	for name, tt := range tests {
		header := nats.Header(request("bad").Header())
		tt.damage(header)
		require.NoError(t, nc.PublishMsg(&nats.Msg{Subject: subject.Work(string(contract.StageEnriched)), Header: header, Data: []byte("{}")}))
		letter := await.Value(t, letters)
		require.Equal(t, subject.Dead(topology.Dispatcher), letter.Subject, name)
		require.Equal(t, tt.rid, letter.Header.Get(contract.HeaderRequestID), name)
		require.Contains(t, letter.Header.Get("Hydra-Reason"), tt.reason, name)
		require.Empty(t, letter.Data, name)
	}
	require.NoError(t, b.PublishWork(t.Context(), request("good"), []byte("{}")))
	require.Equal(t, "good", await.Value(t, got).Request.ID)
	require.NoError(t, other.DeadFact(t.Context(), topology.SessionWriter, bus.Fact{Subject: subject.UsageRecorded}, "no"))
	await.True(t, func() bool { return strings.Count(log.String(), "goes to the dead letters") == len(tests) }, "each letter has its line, which comes after it", &log)
	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(fmt.Sprintf(`
# HELP hydrallm_dead_letters_total Messages that a stage could not process.
# TYPE hydrallm_dead_letters_total counter
hydrallm_dead_letters_total{stage="dispatcher"} %d
hydrallm_dead_letters_total{stage="session-writer"} 1
`, len(tests))), "hydrallm_dead_letters_total"))
}
