package pending_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/ingress/internal/pending"
	"hydrallm/shared/contract"
)

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
