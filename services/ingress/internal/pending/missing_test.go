package pending_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/ingress/internal/pending"
	"hydrallm/shared/contract"
)

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
