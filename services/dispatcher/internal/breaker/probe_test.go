package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// 60 s from the last failure, then one probe; its success closes with the counter at zero.
func TestProbeCloses(t *testing.T) {
	t.Parallel()
	inBubble(t, provider, func(in bubble) {
		t, b, log := in.t, in.b, in.log
		fail(t, b, 5)
		require.Equal(t, time.Minute, b.Snapshot().Remaining)
		pass(time.Minute - time.Nanosecond)
		requireRejects(t, b)
		require.Equal(t, time.Nanosecond, b.Snapshot().Remaining)
		pass(time.Nanosecond)
		p, ok := b.Acquire()
		require.True(t, ok)
		require.Equal(t, Snapshot{State: HalfOpen, Failures: 5, Probing: true}, b.Snapshot())
		requireRejects(t, b)
		require.False(t, b.Ready())
		p.Success()
		require.Equal(t, Snapshot{State: Closed}, b.Snapshot())
		fail(t, b, 4)
		require.Equal(t, Closed, b.State())
		require.Equal(t, []State{Open, HalfOpen, Closed}, log.states())
	})
}

// a failed probe opens at once for another 60 s, without waiting for the threshold.
func TestFailedProbeReopens(t *testing.T) {
	t.Parallel()
	inBubble(t, provider, func(in bubble) {
		t, b, log := in.t, in.b, in.log
		fail(t, b, 5)
		for range 3 {
			pass(time.Minute)
			p, ok := b.Acquire()
			require.True(t, ok)
			pass(7 * time.Second)
			p.Failure(0)
			require.Equal(t, Open, b.State())
			require.Equal(t, time.Minute, b.Snapshot().Remaining)
		}
		require.Equal(t, []State{Open, HalfOpen, Open, HalfOpen, Open, HalfOpen, Open}, log.states())
	})
}

// a probe that ends without a result gives its place back; the state stays half-open.
func TestReleasedProbe(t *testing.T) {
	t.Parallel()
	inBubble(t, provider, func(in bubble) {
		t, b := in.t, in.b
		fail(t, b, 5)
		pass(time.Minute)
		for range 3 {
			p, ok := b.Acquire()
			require.True(t, ok)
			requireRejects(t, b)
			p.Release()
			require.Equal(t, HalfOpen, b.State())
			require.True(t, b.Ready())
		}
		succeed(t, b)
		require.Equal(t, Closed, b.State())
	})
}

// a probe without a report does not block for ever, and its late report is not taken for the new probe's.
func TestStuckProbe(t *testing.T) {
	t.Parallel()
	inBubble(t, provider, func(in bubble) {
		t, b := in.t, in.b
		fail(t, b, 5)
		pass(time.Minute)
		stuck, ok := b.Acquire()
		require.True(t, ok)
		pass(ProbeLimit - time.Nanosecond)
		requireRejects(t, b)
		pass(time.Nanosecond)
		require.True(t, b.Ready())
		second, ok := b.Acquire()
		require.True(t, ok)
		requireRejects(t, b)

		stuck.Release()
		requireRejects(t, b) // the second probe still has the place
		second.Success()
		require.Equal(t, Closed, b.State())
	})
	inBubble(t, provider, func(in bubble) {
		t, b := in.t, in.b
		fail(t, b, 5)
		pass(time.Minute)
		stuck, _ := b.Acquire()
		pass(ProbeLimit)
		second, ok := b.Acquire()
		require.True(t, ok)
		stuck.Success()
		require.Equal(t, HalfOpen, b.State())
		second.Failure(0)
		require.Equal(t, Open, b.State())
	})
}

// without another caller, a late report of the only probe still counts.
func TestLateProbe(t *testing.T) {
	t.Parallel()
	inBubble(t, provider, func(in bubble) {
		t, b := in.t, in.b
		fail(t, b, 5)
		pass(time.Minute)
		p, ok := b.Acquire()
		require.True(t, ok)
		pass(10 * ProbeLimit)
		p.Success()
		require.Equal(t, Closed, b.State())
	})
}

// A foreign opening while a probe is out: the probe's success is older news, its failure is not.
func TestObserveDuringProbe(t *testing.T) {
	t.Parallel()
	inBubble(t, provider, func(in bubble) {
		t, b := in.t, in.b
		fail(t, b, 5)
		pass(time.Minute)
		probe, _ := b.Acquire()
		b.Observe(time.Now().Add(20 * time.Second))
		require.Equal(t, Open, b.State())
		probe.Success()
		require.Equal(t, Open, b.State())
	})
}
