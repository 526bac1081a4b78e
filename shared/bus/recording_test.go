package bus_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus"
	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/topology"
)

// background is a request that no ingress owns.
func background(id string, slip ...contract.Stage) *contract.Request {
	r := request(id, slip...)
	r.Ingress, r.Background, r.Principal = "", true, contract.PrincipalAnonymous
	return r
}

// begin records and publishes one.
func begin(t *testing.T, b *bus.Bus, r *contract.Request) {
	t.Helper()
	require.NoError(t, b.Record(t.Context(), r, []byte("note")))
	require.NoError(t, b.PublishWork(t.Context(), r, []byte("{}")))
}

// worked is a delivery in the hands of a handler.
type worked struct {
	*bus.Work
	ctx   context.Context //nolint:containedctx // of the handler
	reply *bus.Reply
	left  chan struct{} // closed by leave
}

// leave lets the handler return. The work has been settled.
func (w *worked) leave() { close(w.left) }

func (w *worked) say(t *testing.T, text string) {
	t.Helper()
	require.NoError(t, w.reply.Data(t.Context(), []byte(text)))
	require.NoError(t, w.reply.Flush())
}

// finish ends the answer and the work.
func (w *worked) finish(t *testing.T) {
	t.Helper()
	require.NoError(t, w.reply.End(contract.End{Outcome: contract.OutcomeSuccess}))
	require.NoError(t, w.reply.Flush())
	w.Done()
	w.leave()
}

// dispatcher is a dispatcher whose handlers do what the test says.
type dispatcher struct {
	bus     *bus.Bus
	got     chan *worked
	refused chan *bus.Work
}

func startDispatcher(t *testing.T, b *bus.Bus) *dispatcher {
	t.Helper()
	d := &dispatcher{bus: b, got: make(chan *worked, 8), refused: make(chan *bus.Work, 8)}
	c, err := b.ConsumeWork(t.Context(), bus.WorkConfig{
		Consumer: topology.Dispatcher, MaxInFlight: 8, Refused: func(_ context.Context, w *bus.Work) { d.refused <- w },
	}, func(ctx context.Context, w *bus.Work) {
		h := &worked{Work: w, ctx: ctx, reply: w.OpenReply(), left: make(chan struct{})}
		defer h.reply.Close()
		d.got <- h
		<-h.left
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testWait)
		defer cancel()
		_ = c.Stop(ctx) // that of a dead one has no connection any more
	})
	return d
}

// die has the dispatcher leave without a word, as a process does that is killed.
func (d *dispatcher) die(t *testing.T) {
	t.Helper()
	require.NoError(t, d.bus.Close(t.Context()))
}

// replayed reads a recorded answer to its end, and gives its data and its end.
func replayed(t *testing.T, b *bus.Bus, rid string) (data string, end contract.End) {
	t.Helper()
	data, end, err := replay(t.Context(), b, rid)
	require.NoError(t, err)
	return data, end
}

func replay(ctx context.Context, b *bus.Bus, rid string) (data string, end contract.End, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*testWait) // it may begin long before the end
	defer cancel()
	p := b.Replay(rid)
	defer p.Close()
	for {
		r, err := p.Next(ctx)
		if errors.Is(err, bus.ErrReplayed) {
			return data, end, nil
		}
		if err != nil {
			return data, end, err
		}
		for f, err := range contract.Frames(r.Frames) {
			if err == nil && f.Kind == contract.FrameEnd {
				end, err = contract.ParseEnd(f.Payload)
			}
			if err != nil {
				return data, end, err
			}
			if f.Kind == contract.FrameData {
				data += string(f.Payload)
			}
		}
	}
}

// reading reads it in the meantime, and gives its data and the outcome.
func reading(t *testing.T, b *bus.Bus, rid string) <-chan string {
	t.Helper()
	read := make(chan string, 1)
	go func() {
		data, end, err := replay(t.Context(), b, rid)
		if err != nil {
			t.Errorf("reading: %v", err)
		}
		read <- data + end.Outcome
	}()
	return read
}

func stateOf(t *testing.T, b *bus.Bus, rid string) bus.RecordingState {
	t.Helper()
	rec, err := b.Recorded(t.Context(), rid)
	require.NoError(t, err)
	return rec.State
}

// an answer that no ingress owns is recorded, and any number of readers get all of it, while it comes and afterwards.
func TestAnAnswerIsRecorded(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	client, other := bustest.Connect(t, server), bustest.Connect(t, server)
	sent := background("r", contract.StageReceived, contract.StageEnriched)
	begin(t, client, sent)
	require.ErrorIs(t, client.Record(t.Context(), sent, nil), bus.ErrSuperseded, "there is one")
	rec, err := other.Recorded(t.Context(), "r")
	require.NoError(t, err)
	require.Equal(t, bus.RecordingQueued, rec.State)
	require.Equal(t, "note", string(rec.Note))
	require.Equal(t, sent.Principal, rec.Request.Principal)

	live := reading(t, other, "r")
	consume(t, client, bus.WorkConfig{Consumer: topology.Analyzer}, func(ctx context.Context, w *bus.Work) {
		if err := w.Forward(ctx, nil); err != nil {
			t.Error(err)
		}
	})
	w := await.Value(t, startDispatcher(t, client).got)
	require.Empty(t, w.Lost)
	require.Equal(t, bus.RecordingRunning, stateOf(t, other, "r"))
	require.NoError(t, w.reply.Head(contract.Head{Status: 200}))
	var want strings.Builder
	for i := range 200 {
		text := fmt.Sprintf("%d %s\n", i, strings.Repeat("x", i*50)) // no credit is waited for
		want.WriteString(text)
		w.say(t, text)
	}
	require.Equal(t, bus.RecordingAnswering, stateOf(t, other, "r"))
	w.finish(t)
	require.Equal(t, want.String()+contract.OutcomeSuccess, await.Value(t, live))
	data, _ := replayed(t, client, "r")
	require.Equal(t, want.String(), data)
	require.Equal(t, bus.RecordingEnded, stateOf(t, other, "r"))
	var pieces strings.Builder
	rec, err = other.Recorded(t.Context(), "r")
	require.NoError(t, err)
	require.NoError(t, other.Play(t.Context(), rec, func(frames []byte) error {
		pieces.Write(frames)
		return nil
	}))
	require.Greater(t, pieces.Len(), want.Len())
}

// Ids come from clients.
func TestWhatIsNoRecording(t *testing.T) {
	t.Parallel()
	b := setup(t)
	begin(t, b, background("r"))
	for _, rid := range []string{"", "*", ">", "r.*", "x", "r ", "r\r\n"} {
		_, err := b.Recorded(t.Context(), rid)
		require.ErrorIs(t, err, bus.ErrNoRecording, rid)
		require.ErrorIs(t, b.CancelRecorded(t.Context(), rid), bus.ErrNoRecording, rid)
	}
	require.NoError(t, b.ForgetRecorded(t.Context(), "r"))
	_, err := b.Recorded(t.Context(), "r")
	require.ErrorIs(t, err, bus.ErrNoRecording)
	d := startDispatcher(t, b)
	require.Empty(t, await.Value(t, d.refused).Lost, "nobody can read its answer")
}

// the work of a worker that died is done by another one if nothing of the answer has come, else it ends as failed with what came.
func TestADeadWorkersAnswer(t *testing.T) {
	t.Parallel()
	for name, said := range map[string]string{"before content": "", "after content": "half"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := natstest.Start(t)
			client := bustest.Connect(t, server)
			begin(t, client, background("r"))
			first := startDispatcher(t, bustest.Connect(t, server))
			w := await.Value(t, first.got)
			if said != "" {
				require.NoError(t, w.reply.Head(contract.Head{Status: 200}))
				w.say(t, said)
			}
			first.die(t)
			second := startDispatcher(t, client)
			if said != "" {
				require.Equal(t, []uint64{1}, await.Value(t, second.refused).Lost, "what it cost is recorded")
				data, end := replayed(t, client, "r")
				require.Equal(t, said, data)
				require.Equal(t, contract.End{Outcome: contract.OutcomeError, Reason: contract.ReasonWorkerLost}, end)
			} else {
				again := await.Value(t, second.got)
				require.Equal(t, []uint64{1}, again.Lost)
				again.say(t, "whole")
				again.finish(t)
				data, end := replayed(t, client, "r")
				require.Equal(t, "whole", data)
				require.Equal(t, contract.End{Outcome: contract.OutcomeSuccess}, end)
			}
			w.leave()
		})
	}
}

// a worker that is only late in renewing its lease is left alone, and one that has handed the request back is not waited for.
func TestALiveWorkersAnswer(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	client := bustest.Connect(t, server)
	first, second := startDispatcher(t, client), startDispatcher(t, bustest.Connect(t, server))
	begin(t, client, background("r"))
	var w *worked
	select {
	case w = <-first.got:
	case w = <-second.got:
	case <-time.After(testWait):
		require.Fail(t, "nobody gets it")
	}
	// The same message once more, as if the server had forgotten that it was delivered.
	again := background("r")
	again.Slip = contract.Slip{contract.StageEnriched}
	require.NoError(t, client.PublishWork(t.Context(), again, []byte("{}")), "it is stored once")
	w.Retry(0)
	w.leave()
	select {
	case w = <-first.got:
	case w = <-second.got:
	case <-time.After(testWait):
		require.Fail(t, "nobody gets it")
	}
	require.Equal(t, []uint64{1}, w.Lost)
	w.finish(t)
	require.Equal(t, bus.RecordingEnded, stateOf(t, client, "r"))
}

// a recorded answer can be cancelled, whoever works on it; its worker is told to stop and can't write any more.
func TestCancellingARecordedAnswer(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	client, canceller := bustest.Connect(t, server), bustest.Connect(t, server)
	d := startDispatcher(t, client)
	begin(t, client, background("running"))
	w := await.Value(t, d.got)
	w.say(t, "half")
	for range 2 {
		require.NoError(t, canceller.CancelRecorded(t.Context(), "running"))
	}
	await.Value(t, w.ctx.Done())
	require.ErrorIs(t, context.Cause(w.ctx), contract.ErrClientGone)
	require.NoError(t, w.reply.Data(t.Context(), []byte("more")))
	require.ErrorIs(t, w.reply.Flush(), bus.ErrSuperseded)
	w.Done()
	w.leave()
	data, end := replayed(t, canceller, "running")
	require.Equal(t, "half", data)
	require.Equal(t, contract.End{Outcome: contract.OutcomeCancelled, Reason: contract.ReasonCancelled}, end)

	r := background("queued")
	require.NoError(t, client.Record(t.Context(), r, nil))
	require.NoError(t, canceller.CancelRecorded(t.Context(), "queued"))
	require.NoError(t, client.PublishWork(t.Context(), r, []byte("{}")))
	require.Equal(t, "queued", await.Value(t, d.refused).Request.ID)
}

// a worker that has lost the recording stops, although nobody told it.
func TestASupersededWorkerStops(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := startDispatcher(t, b)
	r := background("r")
	begin(t, b, r)
	w := await.Value(t, d.got)
	require.NoError(t, b.ForgetRecorded(t.Context(), "r"))
	require.NoError(t, b.Record(t.Context(), r, nil))
	require.NoError(t, w.reply.Head(contract.Head{Status: 200}))
	require.ErrorIs(t, w.reply.Flush(), bus.ErrSuperseded)
	require.ErrorIs(t, context.Cause(w.ctx), contract.ErrClientGone)
	w.Done()
	w.leave()
	require.Equal(t, bus.RecordingQueued, stateOf(t, b, "r"), "what it had to say is in nobody's way")
}

// no recording stays without an end: a worker that finishes without one, a message that is a dead letter, a request that is too old.
func TestEveryRecordingEnds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := startDispatcher(t, b)
	for name, tt := range map[string]struct {
		reason string
		settle func(w *worked) error
	}{
		"cut":  {contract.ReasonUnfinished, func(w *worked) error { w.Done(); return nil }},
		"dead": {contract.ReasonUnfinished, func(w *worked) error { return w.Dead(t.Context(), topology.Dispatcher, "poison") }},
	} {
		begin(t, b, background(name))
		w := await.Value(t, d.got)
		require.NoError(t, tt.settle(w), name)
		w.leave()
		_, end := replayed(t, b, name)
		require.Equal(t, contract.End{Outcome: contract.OutcomeError, Reason: tt.reason}, end, name)
	}
	late := background("late")
	late.StartBy = time.Now().Add(-time.Second)
	begin(t, b, late)
	await.Value(t, d.refused)
	_, end := replayed(t, b, "late")
	require.Equal(t, contract.End{Outcome: contract.OutcomeError, Reason: contract.ReasonLifetime}, end)
}

// the sweeper ends what has had no worker for 30 seconds and what is older than its lifetime; what waits and what is worked on is left alone.
func TestSweeper(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	client := bustest.Connect(t, server)
	first := startDispatcher(t, bustest.Connect(t, server))
	begin(t, client, background("orphan"))
	lost := await.Value(t, first.got)
	first.die(t)
	require.NoError(t, client.Record(t.Context(), background("waits"), nil))
	s, err := client.FollowRecordings(t.Context())
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	now := time.Now()
	sweep := func(at time.Time, rid string) contract.End {
		await.True(t, func() bool {
			s.SweepAt(t.Context(), now)
			s.SweepAt(t.Context(), at)
			return stateOf(t, client, rid) == bus.RecordingEnded
		}, rid)
		_, end := replayed(t, client, rid)
		return end
	}
	s.SweepAt(t.Context(), now)
	s.SweepAt(t.Context(), now.Add(29*time.Second))
	require.Equal(t, bus.RecordingRunning, stateOf(t, client, "orphan"))
	require.Equal(t, contract.End{Outcome: contract.OutcomeError, Reason: contract.ReasonWorkerLost}, sweep(now.Add(31*time.Second), "orphan"))
	lost.leave()

	second := startDispatcher(t, client)
	require.Equal(t, []uint64{1}, await.Value(t, second.refused).Lost, "its message comes back")
	begin(t, client, background("alive"))
	held := await.Value(t, second.got)
	s.SweepAt(t.Context(), now)
	s.SweepAt(t.Context(), now.Add(31*time.Second))
	require.Equal(t, bus.RecordingQueued, stateOf(t, client, "waits"))
	require.Equal(t, bus.RecordingRunning, stateOf(t, client, "alive"))
	for _, rid := range []string{"waits", "alive"} { // a minute is their lifetime
		require.Equal(t, contract.End{Outcome: contract.OutcomeError, Reason: contract.ReasonLifetime}, sweep(now.Add(2*time.Minute), rid))
	}
	held.Done()
	held.leave()
}

// stages before the dispatcher learn how often a request came back, so that they can give up one that kills them.
func TestEarlierStagesCountDeliveries(t *testing.T) {
	t.Parallel()
	b := setup(t)
	lost := make(chan int, 8)
	consume(t, b, bus.WorkConfig{Consumer: topology.Session}, func(ctx context.Context, w *bus.Work) {
		if lost <- len(w.Lost); len(w.Lost) < 2 {
			w.Retry(0)
			return
		}
		if err := w.Refuse(ctx, fault.New(fault.Internal, "given up")); err != nil {
			t.Error(err)
		}
		w.Done()
	})
	begin(t, b, background("r", contract.StageSession, contract.StageEnriched))
	for want := range 3 {
		require.Equal(t, want, await.Value(t, lost))
	}
	data, end := replayed(t, b, "r")
	require.Contains(t, data, "given up")
	require.Equal(t, contract.End{Outcome: contract.OutcomeError}, end)
}

// The largest pieces get through to readers, which buffer a limited number of bytes.
func TestLargePiecesAreReplayed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := background("r")
	require.Error(t, b.Record(t.Context(), r, make([]byte, bus.MaxNote+1)))
	require.NoError(t, b.Record(t.Context(), r, make([]byte, bus.MaxNote)))
	require.NoError(t, b.PublishWork(t.Context(), r, []byte("{}")))
	w := await.Value(t, startDispatcher(t, b).got)
	want := strings.Repeat("0123456789abcdef", 128<<10)
	w.say(t, want)
	w.finish(t)
	data, _ := replayed(t, b, "r")
	require.Len(t, data, len(want))
	if data != want { // nobody reads two megabytes of a difference
		require.Fail(t, "it is not what was said")
	}
}
