package pending_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/ingress/internal/pending"
	"hydrallm/shared/bus"
	"hydrallm/shared/contract"
)

// recording is a recorded answer: its pieces, and what is found out when it is silent.
type recording struct {
	pieces chan bus.Recorded
	takes  time.Duration // the server to give one, however long it is waited for
	exists error
	closed bool
}

func (r *recording) Next(ctx context.Context) (bus.Recorded, error) {
	<-time.After(r.takes)
	if r.takes > 0 {
		ctx = context.WithoutCancel(ctx)
	}
	select {
	case p, ok := <-r.pieces:
		if !ok {
			return p, bus.ErrReplayed
		}
		return p, nil
	case <-ctx.Done():
		return bus.Recorded{}, context.Cause(ctx)
	}
}

func (r *recording) Exists(context.Context) error { return r.exists }
func (r *recording) Close()                       { r.closed = true }

func running() bus.Recorded { return bus.Recorded{State: bus.RecordingRunning} }
func answering(msg []byte) bus.Recorded {
	return bus.Recorded{State: bus.RecordingAnswering, Frames: msg}
}
func over(msg []byte) bus.Recorded { return bus.Recorded{State: bus.RecordingEnded, Frames: msg} }

// ending is the end that somebody else than the worker gives.
func ending(reason string) bus.Recorded {
	return over(f(contract.FrameEnd, 1, 0, `{"outcome":"error","reason":"`+reason+`"}`))
}

// a recorded answer comes as any other does, and who waits for it is told why no more of it comes. Nobody is cancelled.
func TestFollow(t *testing.T) {
	t.Parallel()
	queued := bus.Recorded{State: bus.RecordingQueued}
	tests := map[string]struct {
		pieces []bus.Recorded
		exists error
		takes  time.Duration
		open   bool // nothing follows, and it is not over
		want   string
		err    error
		after  time.Duration // looks come after 5, 15 and 35 seconds
	}{
		"whole":                     {pieces: []bus.Recorded{queued, running(), answering(append(head(1), data(1, 1, "a")...)), over(append(data(1, 2, "b"), end(1, 3)...))}, want: "ab"},
		"on a slow machine":         {pieces: []bus.Recorded{running(), answering(append(head(1), data(1, 1, "a")...)), over(append(data(1, 2, "b"), end(1, 3)...))}, takes: time.Minute, want: "ab", after: 3 * time.Minute},
		"in one piece":              {pieces: []bus.Recorded{over(append(append(head(1), data(1, 1, "ab")...), end(1, 2)...))}, want: "ab"},
		"its worker was lost":       {pieces: []bus.Recorded{running(), answering(append(head(1), data(1, 1, "a")...)), ending(contract.ReasonWorkerLost)}, want: "a", err: pending.ErrDied},
		"and nothing had come":      {pieces: []bus.Recorded{running(), ending(contract.ReasonWorkerLost)}, err: pending.ErrDied},
		"it took too long":          {pieces: []bus.Recorded{running(), ending(contract.ReasonLifetime)}, err: pending.ErrDeadline},
		"it was cancelled":          {pieces: []bus.Recorded{ending(contract.ReasonCancelled)}, err: pending.ErrLost},
		"the upstream broke off":    {pieces: []bus.Recorded{over(append(head(1), f(contract.FrameEnd, 1, 1, `{"outcome":"broken"}`)...))}, err: pending.ErrBroken},
		"no frames":                 {pieces: []bus.Recorded{answering([]byte("xx"))}, err: pending.ErrMalformed},
		"frames are missing":        {pieces: []bus.Recorded{answering(append(head(1), data(1, 2, "b")...))}, err: pending.ErrGap},
		"the end is missing":        {pieces: []bus.Recorded{over(head(1))}, err: pending.ErrLost},
		"nobody takes it":           {pieces: []bus.Recorded{queued}, open: true, err: pending.ErrNotTaken, after: limits.Queue + limits.Grace},
		"it was removed":            {pieces: []bus.Recorded{running()}, open: true, exists: bus.ErrNoRecording, err: pending.ErrLost, after: 5 * time.Second},
		"it can't be read any more": {pieces: []bus.Recorded{running(), answering(head(1))}, open: true, exists: errors.New("away"), err: pending.ErrLost, after: 35 * time.Second},
		"nor before it has begun":   {pieces: []bus.Recorded{running()}, open: true, exists: errors.New("away"), err: pending.ErrLost, after: 35 * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup()
				b.table.Remove(b.request)
				before := b.cancels.count()
				b.run(t)
				source := &recording{pieces: make(chan bus.Recorded, len(tt.pieces)), exists: tt.exists, takes: tt.takes}
				for _, p := range tt.pieces {
					source.pieces <- p
				}
				if !tt.open {
					close(source.pieces)
				}
				begin := time.Now()
				r := b.table.Follow(t.Context(), "r", b.client, begin.Add(limits.Queue+tt.takes), source)
				got, err := read(r)
				require.ErrorIs(t, err, tt.err)
				require.Equal(t, tt.want, got)
				require.InDelta(t, tt.after.Seconds(), time.Since(begin).Seconds(), 0.6)
				b.table.Remove(r)
				<-time.After(tt.takes)
				synctest.Wait()
				require.True(t, source.closed)
				require.Equal(t, before, b.cancels.count())
			})
		})
	}
}

// who follows is not given up while the answer may come, and gets no more of it than fits. When it leaves, nobody is cancelled.
func TestFollowAtItsOwnPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup()
		b.table.Remove(b.request)
		before := b.cancels.count()
		b.run(t)
		source := &recording{pieces: make(chan bus.Recorded, 100)}
		r := b.table.Follow(t.Context(), "r", b.client, time.Now().Add(limits.Queue), source)
		source.pieces <- running()
		<-time.After(10 * time.Minute)
		source.pieces <- answering(head(1))
		text := strings.Repeat("x", 64<<10)
		for i := range uint64(64) {
			source.pieces <- answering(data(1, i+1, text))
		}
		taken := 0
		for taken < 40*len(text) {
			synctest.Wait()
			p := r.Next(nil)
			require.NoError(t, p.Err)
			for _, data := range p.Data {
				taken += len(data)
			}
			require.GreaterOrEqual(t, len(source.pieces), 64-taken/len(text)-1-bus.Window/len(text), "so much waits")
			require.True(t, r.Took(uint64(taken)))
			<-time.After(time.Minute)
		}
		b.client.gone.Store(true)
		for p := r.Next(nil); p.Err == nil; p = r.Next(nil) {
			require.False(t, p.End)
		}
		b.table.Remove(r)
		synctest.Wait()
		require.True(t, source.closed)
		require.Equal(t, before, b.cancels.count())
	})
	require.False(t, setup().request.Took(1))
}
