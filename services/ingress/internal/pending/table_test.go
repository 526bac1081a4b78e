package pending_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/ingress/internal/pending"
	"hydrallm/shared/bus"
	"hydrallm/shared/contract"
)

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
