package pending_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/ingress/internal/pending"
	"hydrallm/shared/bus"
	"hydrallm/shared/contract"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// cancels notes what was cancelled.
type cancels struct {
	mu   sync.Mutex
	rids []string
}

func (c *cancels) Cancel(rid string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rids = append(c.rids, rid)
	return nil
}

func (c *cancels) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.rids)
}

// client is a connection that leaves when it is told to.
type client struct{ gone, aborted atomic.Bool }

func (c *client) Gone() bool { return c.gone.Load() }
func (c *client) Abort()     { c.aborted.Store(true) }

var limits = pending.Limits{Queue: 30 * time.Second, Grace: 2 * time.Second, Lease: 5 * time.Second, Silence: 15 * time.Second, Heartbeat: 10 * time.Second}

type bench struct {
	table    *pending.Table
	request  *pending.Request
	client   *client
	cancels  *cancels
	failures atomic.Int64
}

func setup(change ...func(*pending.Limits)) *bench {
	b := &bench{client: &client{}, cancels: &cancels{}}
	limits := limits
	for _, c := range change {
		c(&limits)
	}
	b.table = pending.NewTable(limits, b.cancels, slog.New(slog.DiscardHandler), func(error) { b.failures.Add(1) })
	b.request = b.table.Add("r", b.client, time.Now().Add(limits.Queue))
	return b
}

// at is the position of a delivery to the dispatcher.
func at(delivery uint64) contract.Position {
	return contract.Position{Stage: contract.StageEnriched, Delivery: delivery}
}

// from makes a message of one frame of any stage.
func from(stage contract.Stage, kind contract.FrameKind, delivery, seq uint64, payload string) []byte {
	position := contract.Position{Stage: stage, Delivery: delivery}
	return contract.AppendFrame(nil, contract.Frame{Kind: kind, Position: position, Seq: seq, Payload: []byte(payload)})
}

// f makes a message of one frame of the dispatcher.
func f(kind contract.FrameKind, delivery, seq uint64, payload string) []byte {
	return from(contract.StageEnriched, kind, delivery, seq, payload)
}

// busy says that a worker of a stage has the request.
func busy(stage contract.Stage, delivery uint64) contract.Sign {
	return contract.Sign{Position: contract.Position{Stage: stage, Delivery: delivery}, RequestID: "r"}
}

// back says that the first worker of a stage gave the request back.
type back contract.Sign

// queued says that the request waits for a stage.
func queued(stage contract.Stage) contract.Sign { return busy(stage, 0) }

// first is the worker that gives the signs.
const first = "first"

// take takes in a message with frames, or a sign.
func (b *bench) take(events ...any) {
	for _, e := range events {
		switch e := e.(type) {
		case []byte:
			b.table.Deliver("r", e)
		case contract.Sign:
			b.table.Alive(first, e)
		case back:
			b.table.HandedBack(contract.Sign(e))
		}
	}
}

func head(delivery uint64) []byte                { return f(contract.FrameHead, delivery, 0, "{}") }
func data(delivery, seq uint64, t string) []byte { return f(contract.FrameData, delivery, seq, t) }
func end(delivery, seq uint64) []byte            { return f(contract.FrameEnd, delivery, seq, "{}") }
func working() contract.Sign                     { return busy(contract.StageEnriched, 1) }

// read takes the whole answer out of a request.
func read(r *pending.Request) (string, error) {
	if _, err := r.Head(); err != nil {
		return "", err
	}
	var text []byte
	var p pending.Part
	for {
		p = r.Next(p.Data)
		text = append(text, bytes.Join(p.Data, nil)...)
		if p.Err != nil || p.End {
			return string(text), p.Err
		}
	}
}

func TestFrames(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		frames []any
		want   string
		err    error
	}{
		"in order":                               {[]any{head(1), data(1, 1, "a"), data(1, 2, "b"), end(1, 3)}, "ab", nil},
		"working frames anywhere":                {[]any{working(), head(1), working(), data(1, 1, "a"), working(), end(1, 2)}, "a", nil},
		"duplicates are dropped":                 {[]any{head(1), head(1), data(1, 1, "a"), data(1, 1, "a"), head(1), end(1, 2), end(1, 2)}, "a", nil},
		"nothing after the end":                  {[]any{head(1), end(1, 1), data(1, 2, "x")}, "", nil},
		"a gap after the head":                   {[]any{head(1), data(1, 1, "a"), data(1, 3, "c"), end(1, 4)}, "a", pending.ErrGap},
		"a gap before the end":                   {[]any{head(1), end(1, 2)}, "", pending.ErrGap},
		"a lost head":                            {[]any{data(1, 1, "a"), end(1, 2)}, "", pending.ErrGap},
		"data without a head":                    {[]any{data(1, 0, "a")}, "", pending.ErrMalformed},
		"an end without a head":                  {[]any{end(1, 0)}, "", pending.ErrMalformed},
		"two heads":                              {[]any{head(1), f(contract.FrameHead, 1, 1, "{}")}, "", pending.ErrMalformed},
		"no frame":                               {[]any{head(1), []byte("xx")}, "", pending.ErrMalformed},
		"more after the end in one message":      {[]any{head(1), append(end(1, 1), data(1, 2, "x")...)}, "", nil},
		"an older delivery is ignored":           {[]any{head(2), data(1, 1, "old"), data(2, 1, "new"), end(1, 2), end(2, 2)}, "new", nil},
		"a newer delivery does not break in":     {[]any{head(1), head(2), data(2, 1, "new"), data(1, 1, "old"), end(1, 2)}, "old", nil},
		"a newer delivery before the commit":     {[]any{working(), head(3), head(2), data(3, 1, "x"), end(3, 2)}, "x", nil},
		"a message with several frames":          {[]any{bytes.Join([][]byte{head(1), data(1, 1, "a"), end(1, 2)}, nil)}, "a", nil},
		"a gap inside of a message":              {[]any{bytes.Join([][]byte{head(1), data(1, 2, "a"), end(1, 3)}, nil)}, "", pending.ErrGap},
		"what came before a gap is not lost":     {[]any{bytes.Join([][]byte{head(1), data(1, 1, "a"), data(1, 3, "c")}, nil)}, "a", pending.ErrGap},
		"empty data is data":                     {[]any{head(1), data(1, 1, ""), end(1, 2)}, "", nil},
		"more than the client can be owed":       {[]any{head(1), data(1, 1, string(make([]byte, bus.Window+bus.Window/2+1)))}, "", pending.ErrOverflow},
		"as much as a worker may send ahead":     {[]any{head(1), data(1, 1, string(make([]byte, bus.Window))), end(1, 2)}, string(make([]byte, bus.Window)), nil},
		"an earlier stage is ignored":            {[]any{head(1), from(contract.StageReceived, contract.FrameData, 9, 1, "old"), data(1, 1, "new"), end(1, 2)}, "new", nil},
		"the answer of an earlier stage":         {[]any{from(contract.StageReceived, contract.FrameHead, 2, 0, "{}"), head(1), from(contract.StageReceived, contract.FrameEnd, 2, 1, "{}")}, "", nil},
		"signs of all stages":                    {[]any{queued(contract.StageReceived), busy(contract.StageReceived, 4), queued(contract.StageEnriched), working(), head(1), end(1, 1)}, "", nil},
		"a sign of an earlier stage":             {[]any{head(1), queued(contract.StageEnriched), queued(contract.StageAnalyzed), data(1, 1, "a"), end(1, 2)}, "a", nil},
		"a fenced delivery can't break anything": {[]any{head(2), f(contract.FrameData, 1, 77, "x"), data(2, 1, "a"), end(2, 2)}, "a", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup()
			b.take(tt.frames...)
			got, err := read(b.request)
			require.ErrorIs(t, err, tt.err)
			require.Equal(t, tt.want, got)
			b.table.Remove(b.request)
			require.Zero(t, b.table.Len())
			if tt.err == nil {
				require.Zero(t, b.cancels.count())
				require.Zero(t, b.failures.Load())
			} else {
				require.Positive(t, b.cancels.count(), "its worker must stop")
				require.Equal(t, int64(1), b.failures.Load())
			}
		})
	}
}

// question is that of another worker about a delivery to the dispatcher.
func question(delivery uint64) contract.FenceQuestion {
	return contract.FenceQuestion{RequestID: "r", At: at(delivery), Worker: "second"}
}

// without is the question after the one who asks has found out that a worker does not have the request.
func without(q contract.FenceQuestion, gone string) contract.FenceQuestion {
	q.Gone = gone
	return q
}

func mayRun(delivery uint64, lost ...uint64) contract.FenceAnswer {
	return contract.FenceAnswer{Decision: contract.FenceRun, Delivery: delivery, Lost: lost}
}

func stop(lost ...uint64) contract.FenceAnswer {
	return contract.FenceAnswer{Decision: contract.FenceStop, Lost: lost}
}

func wait(worker string) contract.FenceAnswer {
	return contract.FenceAnswer{Decision: contract.FenceWait, Worker: worker}
}

// Delivery rule 3, R-010, R-485: another delivery may run only while nothing is committed and no worker has the request; then it fences those before
// it. A worker that was heard of lately is alive, unless it turns out to be gone.
func TestFence(t *testing.T) {
	t.Parallel()
	const lately, long, longer = time.Second, 6 * time.Second, 16 * time.Second // against the lease of 5 s and the silence of 15 s
	session := func(delivery uint64) contract.FenceQuestion {
		return contract.FenceQuestion{RequestID: "r", At: contract.Position{Stage: contract.StageReceived, Delivery: delivery}, Worker: "second"}
	}
	tests := map[string]struct {
		before []any
		after  time.Duration // how long ago that was
		asked  contract.FenceQuestion
		want   contract.FenceAnswer
		err    error // of the request afterwards
	}{
		"nothing came": {nil, long, question(2), mayRun(2, 1), nil},
		"nothing came, and the server has forgotten":       {nil, long, question(1), mayRun(1), nil},
		"a worker is alive":                                {[]any{working()}, lately, question(2), wait(first), nil},
		"a worker is alive and late":                       {[]any{working()}, long, question(2), wait(first), nil},
		"a worker is alive, and the server has forgotten":  {[]any{working()}, long, question(1), wait(first), nil},
		"a worker is gone":                                 {[]any{working()}, lately, without(question(2), first), mayRun(2, 1), nil},
		"a worker is gone, and the server has forgotten":   {[]any{working()}, lately, without(question(1), first), mayRun(2, 1), nil},
		"another worker is gone":                           {[]any{working()}, lately, without(question(2), "other"), wait(first), nil},
		"a worker is silent":                               {[]any{working()}, longer, question(2), mayRun(2, 1), nil},
		"a worker waits for the client":                    {[]any{head(1), working()}, long, question(2), wait(first), nil},
		"a worker sends, but has not shown itself":         {[]any{head(1)}, lately, question(2), wait(""), nil},
		"it did so before the lease was over":              {[]any{head(1)}, long, question(2), stop(1), pending.ErrDied},
		"a worker that answered is gone":                   {[]any{head(1), working()}, lately, without(question(2), first), stop(1), pending.ErrDied},
		"the answer is complete":                           {[]any{head(1), end(1, 1)}, lately, question(2), stop(1), nil},
		"the answer has failed":                            {[]any{data(1, 0, "x")}, lately, question(2), stop(1), pending.ErrMalformed},
		"an earlier stage was alive":                       {[]any{busy(contract.StageReceived, 3)}, lately, question(2), mayRun(2, 1), nil},
		"it waits for this stage":                          {[]any{queued(contract.StageEnriched)}, lately, question(2), mayRun(2, 1), nil},
		"a worker has handed it back":                      {[]any{working(), back(working())}, lately, question(2), mayRun(2), nil},
		"it said so twice":                                 {[]any{working(), back(working()), back(working())}, lately, question(2), mayRun(2), nil},
		"it did so before anything was heard":              {[]any{back(working())}, lately, question(2), mayRun(2), nil},
		"it did so when a report was under way":            {[]any{back(working()), working()}, lately, question(2), mayRun(2), nil},
		"another one has it since":                         {[]any{busy(contract.StageEnriched, 2), back(working())}, lately, question(3), wait(first), nil},
		"the one of the stage before handed it back":       {[]any{working(), back(busy(contract.StageReceived, 1))}, lately, question(2), wait(first), nil},
		"a later one handed it back, and one is not known": {[]any{back(busy(contract.StageEnriched, 2))}, lately, question(3), mayRun(3, 1), nil},
		"of the stage before: a worker is alive":           {[]any{busy(contract.StageReceived, 1)}, lately, session(2), wait(first), nil},
		"of the stage before: a worker is gone":            {[]any{busy(contract.StageReceived, 1)}, lately, without(session(2), first), mayRun(2, 1), nil},
		"of the stage before: it is forwarded":             {[]any{queued(contract.StageEnriched)}, lately, session(2), stop(), nil},
		"of the stage before: a later stage has begun":     {[]any{working()}, longer, session(2), stop(1), nil},
		"of the stage before: a later stage has answered":  {[]any{head(1)}, long, session(2), stop(1), nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup()
				b.run(t)
				b.take(tt.before...)
				<-time.After(tt.after)
				require.Equal(t, tt.want, b.table.Fence(tt.asked))
				if tt.err != nil {
					_, err := read(b.request)
					require.ErrorIs(t, err, tt.err)
					require.Positive(t, b.cancels.count())
				}
				b.table.Fail(b.request, pending.ErrStopping)
			})
		})
	}
	unknown := question(2)
	unknown.RequestID = "unknown"
	require.Equal(t, stop(), setup().table.Fence(unknown), "nobody waits")
}

// once a redelivery may run, the frames and signs of the lost delivery count no more, and its worker, if it lives after all, is told to stop.
func TestFenceExcludesOlder(t *testing.T) {
	t.Parallel()
	b := setup()
	b.take(working())
	second := without(question(2), first)
	require.Equal(t, mayRun(2, 1), b.table.Fence(second))
	require.Equal(t, mayRun(2, 1), b.table.Fence(second), "the question may come twice")
	require.Equal(t, mayRun(2, 1), b.table.Fence(question(2)), "however it is put")
	b.take(head(1), data(1, 1, "old"))

	third := question(2) // the server has forgotten the delivery before, so that its count says nothing
	third.Worker = "third"
	require.Equal(t, wait(""), b.table.Fence(third))
	require.True(t, b.table.Alive("second", busy(contract.StageEnriched, 2)).Fine())
	require.Equal(t, wait("second"), b.table.Fence(third))
	require.Equal(t, mayRun(3, 1, 2), b.table.Fence(without(third, "second")))
	require.True(t, b.table.Alive("third", busy(contract.StageEnriched, 3)).Fine())
	require.True(t, b.table.Alive(first, working()).Unwanted)
	require.Equal(t, wait("third"), b.table.Fence(without(question(2), first)))

	b.take(head(2), head(3), data(2, 1, "old"), data(3, 1, "new"), end(3, 2))
	got, err := read(b.request)
	require.NoError(t, err)
	require.Equal(t, "new", got)
}

// what was handed back is not lost, however often; a worker that dies in between is.
func TestHandedBackIsNotLost(t *testing.T) {
	t.Parallel()
	b := setup()
	b.take(working())
	for n := uint64(1); n < 9; n++ {
		b.take(back(busy(contract.StageEnriched, n)))
		require.Equal(t, mayRun(n+1), b.table.Fence(question(n+1)))
		require.True(t, b.table.Alive(first, busy(contract.StageEnriched, n+1)).Fine())
	}
	require.Equal(t, mayRun(10, 9), b.table.Fence(without(question(10), first)))
	b.take(back(busy(contract.StageEnriched, 9)), back(busy(contract.StageEnriched, 10)))
	require.Equal(t, mayRun(11, 9), b.table.Fence(question(11)))

	b.take(head(11), back(busy(contract.StageEnriched, 11)), end(11, 1))
	_, err := read(b.request)
	require.NoError(t, err, "an answer that has begun is not given back")
	b.table.HandedBack(contract.Sign{Position: at(1), RequestID: "unknown"})
}

// who reports on a request that nobody awaits is told so; one that has just ended needs no word.
func TestSignsOfUnwantedRequests(t *testing.T) {
	t.Parallel()
	b := setup()
	require.True(t, b.table.Alive(first, contract.Sign{Position: at(1), RequestID: "unknown"}).Unwanted)
	require.True(t, b.table.Alive(first, working()).Fine())
	b.take(head(1), end(1, 1))
	require.True(t, b.table.Alive(first, working()).Fine())
	other := b.table.Add("other", b.client, time.Now())
	b.table.Fail(other, pending.ErrGone)
	require.True(t, b.table.Alive(first, contract.Sign{Position: at(1), RequestID: "other"}).Unwanted)
}

// frames of an answer that were lost come again when the ingress hears of their worker, whichever they are, and nothing is missing then.
func TestMissingFramesComeAgain(t *testing.T) {
	t.Parallel()
	answer := [][]byte{head(1), data(1, 1, "a"), data(1, 2, "b"), end(1, 3)}
	for mask := range 1 << len(answer) { // what is lost
		b := setup(func(l *pending.Limits) { l.Repair = l.Silence })
		arrived, broken := uint64(0), false
		for i, frame := range answer {
			if mask&(1<<i) != 0 {
				broken = true
				continue
			}
			b.take(frame)
			if !broken {
				arrived++
			}
		}
		sign := working()
		sign.Sent = uint64(len(answer))
		if arrived == sign.Sent {
			require.True(t, b.table.Alive(first, sign).Fine())
		} else {
			require.Equal(t, contract.Heard{Lacks: true, From: arrived}, b.table.Alive(first, sign))
			require.Equal(t, contract.Heard{Lacks: true, From: arrived}, b.table.Alive(first, sign), "until it has come")
			b.take(bytes.Join(answer[arrived:], nil))
		}
		got, err := read(b.request)
		require.NoError(t, err)
		require.Equal(t, "ab", got)
		require.Zero(t, b.failures.Load())
		require.True(t, b.table.Alive(first, sign).Fine())
	}
}

// of what has come only a part may have been sent by now; and who has taken the place of another worker gets nothing from that one.
func TestWhoHasAllIsSentNothing(t *testing.T) {
	t.Parallel()
	b := setup(func(l *pending.Limits) { l.Repair = l.Silence })
	b.take(head(1), data(1, 1, "a"))
	sign := working()
	sign.Sent = 1
	require.True(t, b.table.Alive(first, sign).Fine())
	b = setup(func(l *pending.Limits) { l.Repair = l.Silence })
	b.take(working())
	require.Equal(t, mayRun(2, 1), b.table.Fence(without(question(2), first)))
	b.take(head(2))
	require.False(t, b.table.Alive(first, sign).Lacks)
}

// frames that don't come again end the answer; those that come in time don't, however often some are missing.
func TestMissingFramesAreAwaitedForAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(func(l *pending.Limits) { l.Repair = l.Silence })
		b.run(t)
		for n := range uint64(3) {
			<-time.After(limits.Silence - time.Second)
			b.take(data(1, 2*n+1, "late"))
			<-time.After(limits.Silence - time.Second)
			b.take(working())
			if n == 0 {
				b.take(head(1))
			} else {
				b.take(data(1, 2*n, "x"))
			}
			b.take(data(1, 2*n+1, "y"))
			require.Zero(t, b.failures.Load())
		}
		b.take(data(1, 9, "z"))
		for range 3 {
			<-time.After(limits.Silence / 3)
			b.take(working()) // it lives, but has nothing to send
		}
		<-time.After(time.Second)
		_, err := read(b.request)
		require.ErrorIs(t, err, pending.ErrGap)
		require.Equal(t, 1, b.cancels.count())
	})
}

// run sweeps the table of b inside a synctest bubble.
func (b *bench) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { b.table.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
}

func TestSilence(t *testing.T) {
	t.Parallel()
	fence := func(b *bench) { b.table.Fence(question(2)) }
	deliver := func(event any) func(*bench) { return func(b *bench) { b.take(event) } }
	tests := map[string]struct {
		last  func(*bench) // happens after 5 seconds
		err   error
		after time.Duration // the failure, since the beginning
	}{
		"nobody takes the request":      {func(*bench) {}, pending.ErrNotTaken, limits.Queue + limits.Grace},
		"nobody takes it after a stage": {deliver(queued(contract.StageEnriched)), pending.ErrNotTaken, 5*time.Second + limits.Queue + limits.Grace},
		"silent before the commit":      {deliver(working()), pending.ErrLost, 5*time.Second + limits.Queue},
		"silent after a fence":          {fence, pending.ErrLost, 5*time.Second + limits.Queue},
		"silent after the commit":       {deliver(head(1)), pending.ErrLost, 5*time.Second + limits.Silence},
		"client leaves before a commit": {func(b *bench) { b.client.gone.Store(true) }, pending.ErrGone, 5 * time.Second},
		"client leaves after a commit":  {func(b *bench) { deliver(head(1))(b); b.client.gone.Store(true) }, pending.ErrGone, 5 * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup()
				b.run(t)
				begin := time.Now()
				time.AfterFunc(5*time.Second, func() { tt.last(b) })
				_, err := read(b.request)
				require.ErrorIs(t, err, tt.err)
				require.InDelta(t, tt.after.Seconds(), time.Since(begin).Seconds(), 0.6)
				require.Equal(t, 1, b.cancels.count())
				b.table.Remove(b.request)
				require.Equal(t, 1, b.cancels.count(), "it is cancelled once")
				synctest.Wait()
				require.Equal(t, errors.Is(tt.err, pending.ErrGone), b.client.aborted.Load())
			})
		})
	}
}

// each stage has the whole queue timeout to begin, however long those before it waited and worked.
func TestEachStageMayWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup()
		b.run(t)
		almost := limits.Queue - time.Second
		for _, stage := range []contract.Stage{contract.StageSession, contract.StageReceived, contract.StageAnalyzed} {
			<-time.After(almost) // in the queue
			for range 10 {
				b.take(busy(stage, 1))
				<-time.After(5 * time.Second)
			}
			b.take(queued(map[contract.Stage]contract.Stage{
				contract.StageSession: contract.StageReceived, contract.StageReceived: contract.StageAnalyzed, contract.StageAnalyzed: contract.StageEnriched,
			}[stage]))
		}
		<-time.After(almost)
		for _, msg := range [][]byte{head(1), data(1, 1, "late"), end(1, 2)} {
			b.table.Deliver("r", msg)
		}
		got, err := read(b.request)
		require.NoError(t, err)
		require.Equal(t, "late", got)
	})
}

// all stages together have no more than the deadline of the request, however alive they are; an answer that has begun is the
// dispatcher's affair.
func TestDeadlineOfAllStages(t *testing.T) {
	t.Parallel()
	for name, committed := range map[string]bool{"before the commit": false, "after the commit": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				total := limits
				total.Total = time.Minute
				b := setup()
				b.table = pending.NewTable(total, b.cancels, slog.New(slog.DiscardHandler), func(error) { b.failures.Add(1) })
				b.request = b.table.Add("r", b.client, time.Now().Add(limits.Queue))
				b.run(t)
				begin := time.Now()
				for time.Since(begin) < 2*time.Minute {
					b.take(working())
					if committed && time.Since(begin) < 10*time.Second {
						b.table.Deliver("r", head(1))
					}
					<-time.After(5 * time.Second)
				}
				b.table.Deliver("r", end(1, 1))
				_, err := read(b.request)
				if committed {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, pending.ErrDeadline)
				require.Positive(t, b.cancels.count())
			})
		})
	}
}

// a request is never given up while its worker shows itself.
func TestWorkingKeepsARequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup()
		b.run(t)
		begin := time.Now()
		stop := begin.Add(time.Hour)
		for time.Now().Before(stop) {
			b.take(working())
			time.Sleep(5 * time.Second) //nolint:forbidigo // time of the bubble
		}
		for _, msg := range [][]byte{head(1), data(1, 1, "late"), end(1, 2)} {
			b.table.Deliver("r", msg)
		}
		got, err := read(b.request)
		require.NoError(t, err)
		require.Equal(t, "late", got)
	})
}

func TestPings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup()
		b.run(t)
		b.request.SendPings()
		begin := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		var worker sync.WaitGroup
		defer worker.Wait()
		defer cancel()
		worker.Go(func() { // it thinks for long, before the commit and after it
			for {
				b.take(working())
				select {
				case <-time.After(2 * time.Second):
				case <-ctx.Done():
					return
				}
			}
		})
		time.AfterFunc(time.Minute, func() { b.table.Deliver("r", head(1)) })
		_, err := b.request.Head()
		require.NoError(t, err)
		for i := range 3 {
			p := b.request.Next(nil)
			for p.Working && !p.Ping {
				p = b.request.Next(nil)
			}
			require.True(t, p.Ping)
			require.Empty(t, p.Data)
			want := time.Minute + time.Duration(i+1)*limits.Heartbeat
			require.InDelta(t, want.Seconds(), time.Since(begin).Seconds(), 0.6)
		}
		b.table.Deliver("r", data(1, 1, "x"))
		p := b.request.Next(nil)
		require.False(t, p.Ping)
		require.Len(t, p.Data, 1)
	})
}

// while a worker has the request and says nothing, the client gets signs of life before the answer; not while it waits for a worker.
func TestPingsBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup()
		b.run(t)
		begin := time.Now()
		b.request.PingFrom(begin.Add(20 * time.Second))
		ctx, cancel := context.WithCancel(t.Context())
		var worker sync.WaitGroup
		defer worker.Wait()
		defer cancel()
		worker.Go(func() {
			for wait := 25 * time.Second; ; wait = 2 * time.Second { // nobody takes it for long
				select {
				case <-time.After(wait):
				case <-ctx.Done():
					return
				}
				b.take(working())
			}
		})
		for i := range 3 {
			raw, err := b.request.Head()
			require.ErrorIs(t, err, pending.ErrSilent)
			require.Nil(t, raw)
			want := 25*time.Second + time.Duration(i)*limits.Heartbeat
			require.InDelta(t, want.Seconds(), time.Since(begin).Seconds(), 0.6+0.3*float64(i))
		}
		time.AfterFunc(time.Second, func() { b.table.Deliver("r", head(1)) })
		_, err := b.request.Head()
		require.NoError(t, err)
		b.table.Fail(b.request, pending.ErrGap)
		require.ErrorIs(t, b.request.Next(nil).Err, pending.ErrGap)
		require.Equal(t, "other", pending.Reason(pending.ErrSilent), "it is no failure")
	})
}

// a ping that is due before a worker can have shown itself does not wait for that; the next one does.
func TestEarlyPing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup()
		b.run(t)
		begin := time.Now()
		b.request.PingFrom(begin.Add(time.Second))
		_, err := b.request.Head()
		require.ErrorIs(t, err, pending.ErrSilent)
		require.InDelta(t, 1, time.Since(begin).Seconds(), 0.3)
		_, err = b.request.Head()
		require.ErrorIs(t, err, pending.ErrNotTaken)
	})
}

// Frames that nobody awaits stop their worker, but not with every frame.
func TestStrays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup()
		for range 100 {
			b.table.Deliver("unknown", head(1))
		}
		require.Equal(t, 1, b.cancels.count())
		time.Sleep(2 * time.Second) //nolint:forbidigo // time of the bubble
		b.table.Deliver("unknown", data(1, 1, "x"))
		require.Equal(t, 2, b.cancels.count())
		b.table.Deliver("other", end(1, 5))
		require.Equal(t, 2, b.cancels.count(), "it ends anyhow")
		b.table.Fail(b.request, pending.ErrStopping)
		require.Equal(t, 3, b.cancels.count())
		b.table.Deliver("r", head(1))
		require.Equal(t, 4, b.cancels.count(), "the first word may have been lost")
	})
}

func TestRemoveCancelsAnOpenRequest(t *testing.T) {
	t.Parallel()
	b := setup()
	b.table.Deliver("r", head(1))
	b.table.Remove(b.request)
	require.Equal(t, 1, b.cancels.count())
}

func TestFailAll(t *testing.T) {
	t.Parallel()
	b := setup()
	done := b.table.Add("done", b.client, time.Now())
	b.table.Deliver("done", head(1))
	b.table.Deliver("done", end(1, 1))
	b.table.FailAll(pending.ErrStopping)
	b.table.FailAll(pending.ErrStopping)
	_, err := read(b.request)
	require.ErrorIs(t, err, pending.ErrStopping)
	_, err = read(done)
	require.NoError(t, err, "what has ended has not failed")
	require.Equal(t, 1, b.cancels.count())
}

func TestReasonsAreClosed(t *testing.T) {
	t.Parallel()
	for _, err := range []error{pending.ErrGap, pending.ErrGone, errors.New("surprise"), nil} {
		require.Contains(t, pending.Reasons(), pending.Reason(err))
	}
	require.Equal(t, "gap", pending.Reason(pending.ErrGap))
}

// Many goroutines use the table at once: for the race detector.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	b := setup()
	ctx, cancel := context.WithCancel(t.Context())
	var wg, run sync.WaitGroup
	run.Go(func() { b.table.Run(ctx) })
	for i := range 8 {
		wg.Go(func() {
			for j := range 200 {
				rid := string(rune('a'+i)) + string(rune('A'+j%26))
				r := b.table.Add(rid, b.client, time.Now().Add(time.Minute))
				var sends sync.WaitGroup
				sends.Go(func() {
					b.table.Deliver(rid, head(1))
					b.table.Deliver(rid, append(data(1, 1, "x"), end(1, 2)...))
				})
				got, err := read(r)
				sends.Wait()
				b.table.Remove(r)
				if got != "x" || err != nil {
					t.Errorf("got %q, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
	cancel()
	run.Wait()
	require.Equal(t, 1, b.table.Len())
}

// A worker that waits for a credit which was lost shows itself without data; Next says so, and the credit can be given again.
func TestSignOfTheWorkerIsPassedOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup()
		b.run(t)
		b.take(working())
		b.table.Deliver("r", head(1))
		_, err := b.request.Head()
		require.NoError(t, err)
		b.take(working())
		p := b.request.Next(nil)
		require.True(t, p.Working)
		require.Empty(t, p.Data)
		b.table.Deliver("r", data(1, 1, "x"))
		p = b.request.Next(nil)
		require.False(t, p.Working)
		require.Len(t, p.Data, 1)
	})
}
