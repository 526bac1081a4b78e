package breaker

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The presets of R-105.
var (
	provider = Config{Consecutive: 5, OpenFor: 60 * time.Second, HalfOpen: true}
	channel  = Config{Failures: 3, Window: 300 * time.Second, OpenFor: 60 * time.Second}
)

// a success in between starts the count anew; the fifth failure in a row opens.
func TestConsecutiveFailuresOpen(t *testing.T) {
	t.Parallel()
	inBubble(t, provider, func(in bubble) {
		t, b, log := in.t, in.b, in.log
		fail(t, b, 4)
		succeed(t, b)
		fail(t, b, 4)
		require.Equal(t, Closed, b.State())
		require.Equal(t, 4, b.Snapshot().Failures)
		fail(t, b, 1)
		require.Equal(t, Open, b.State())
		requireRejects(t, b)
		require.Equal(t, []Transition{{From: Closed, To: Open, Seq: 1, Failures: 5, OpenFor: time.Minute}}, log.list)
	})
}

// CB-04: what is nobody's failure neither counts nor resets.
func TestReleaseIsNeutral(t *testing.T) {
	t.Parallel()
	inBubble(t, Config{Consecutive: 3, OpenFor: time.Minute, HalfOpen: true}, func(in bubble) {
		t, b := in.t, in.b
		for range 2 {
			fail(t, b, 1)
			p, ok := b.Acquire()
			require.True(t, ok)
			p.Release()
		}
		require.Equal(t, Closed, b.State())
		fail(t, b, 1)
		require.Equal(t, Open, b.State())
	})
}

// R-111, section 19 scenario 13: failures at 0, 100 and 299 s open, at 0, 100 and 301 s do not; a failure exactly 300 s old is forgotten.
func TestScenario13(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		third time.Duration
		want  State
	}{{299 * time.Second, Open}, {300*time.Second - 1, Open}, {300 * time.Second, Closed}, {301 * time.Second, Closed}} {
		inBubble(t, channel, func(in bubble) {
			t, b := in.t, in.b
			fail(t, b, 1)
			pass(100 * time.Second)
			fail(t, b, 1)
			succeed(t, b) // a success has no effect here
			pass(c.third - 100*time.Second)
			fail(t, b, 1)
			require.Equal(t, c.want, b.State(), c.third)
			if c.want == Closed {
				require.Equal(t, 2, b.Snapshot().Failures)
				return
			}
			calls := 0
			for range 60 { // one try a second: no connection while it is open
				if _, ok := b.Acquire(); ok {
					calls++
				}
				pass(time.Second)
			}
			require.Zero(t, calls)
			_, ok := b.Acquire()
			require.True(t, ok)
		})
	}
}

// after the opening the channel is closed again, and the next failure re-opens at once while enough remain in the window.
func TestWindowReopensAtOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, channel, func(in bubble) {
		t, b, log := in.t, in.b, in.log
		fail(t, b, 3)
		pass(time.Minute)
		require.Equal(t, Closed, b.State())
		for range 5 { // no probe: the whole load comes back
			succeed(t, b)
		}
		fail(t, b, 1)
		require.Equal(t, Open, b.State())
		require.Equal(t, []State{Open, Closed, Open}, log.states())
		pass(300 * time.Second)
		fail(t, b, 1)
		require.Equal(t, Closed, b.State(), "the former failures are forgotten")
	})
}

// C-37: the window with single probes.
func TestWindowHalfOpen(t *testing.T) {
	t.Parallel()
	cfg := channel
	cfg.HalfOpen = true
	inBubble(t, cfg, func(in bubble) {
		t, b, log := in.t, in.b, in.log
		fail(t, b, 3)
		pass(time.Minute)
		require.Equal(t, HalfOpen, b.State())
		p, ok := b.Acquire()
		require.True(t, ok)
		requireRejects(t, b)
		p.Failure(0)
		requireRejects(t, b)
		pass(time.Minute)
		succeed(t, b)
		require.Equal(t, Closed, b.State())
		require.Equal(t, []State{Open, HalfOpen, Open, HalfOpen, Closed}, log.states())
	})
}

// The preset that opens by failures in a row, without probes.
func TestConsecutiveWithoutProbe(t *testing.T) {
	t.Parallel()
	inBubble(t, Config{Consecutive: 2, OpenFor: time.Second}, func(in bubble) {
		t, b := in.t, in.b
		fail(t, b, 2)
		requireRejects(t, b)
		pass(time.Second)
		fail(t, b, 1)
		requireRejects(t, b)
		pass(time.Second)
		succeed(t, b)
		fail(t, b, 1)
		require.Equal(t, Closed, b.State())
	})
}

// R-107, section 19 scenario 14: after 60 s, 100 parallel requests produce exactly one probe; the scan for tiers alone never takes it (R-112, B-01).
func TestScenario14(t *testing.T) {
	t.Parallel()
	inBubble(t, provider, func(in bubble) {
		t, b := in.t, in.b
		fail(t, b, 5)
		pass(time.Minute)
		for range 1000 {
			require.Equal(t, HalfOpen, b.State())
			require.True(t, b.Ready())
			b.Snapshot()
		}
		var calls atomic.Int32
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				p, ok := b.Acquire()
				if !ok {
					return
				}
				calls.Add(1)
				pass(time.Second)
				p.Success()
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, calls.Load())
		require.Equal(t, Closed, b.State())
	})
}

// Openings of other dispatchers are honoured, once, and never told on.
func TestObserve(t *testing.T) {
	t.Parallel()
	inBubble(t, provider, func(in bubble) {
		t, b, log := in.t, in.b, in.log
		until := time.Now().Add(10 * time.Second).Round(0)
		b.Observe(until)
		require.Equal(t, Snapshot{State: Open, Remaining: 10 * time.Second, Remote: true}, b.Snapshot())
		requireRejects(t, b)
		_, told := b.Opening()
		require.False(t, told)
		require.Equal(t, []Transition{{From: Closed, To: Open, Seq: 1, OpenFor: 10 * time.Second, Remote: true}}, log.list)

		pass(10 * time.Second)
		probe, ok := b.Acquire() // one probe, as after an opening of its own
		require.True(t, ok)
		requireRejects(t, b)
		b.Observe(until) // the same news again
		require.Equal(t, HalfOpen, b.State())
		probe.Success()
		b.Observe(until)
		require.Equal(t, Closed, b.State())
	})
	inBubble(t, channel, func(in bubble) {
		t, b := in.t, in.b
		b.Observe(time.Now().Add(24 * time.Hour)) // a wrong clock elsewhere
		require.Equal(t, time.Minute, b.Snapshot().Remaining)
		b.Observe(time.Now().Add(-time.Second))
		require.Equal(t, time.Minute, b.Snapshot().Remaining)
		pass(time.Minute)
		require.Equal(t, Closed, b.State())
		require.Zero(t, b.Snapshot().Failures)
	})
}

// An opening of one's own is told until its own end, also when a foreign one lasts longer.
func TestOpening(t *testing.T) {
	t.Parallel()
	inBubble(t, provider, func(in bubble) {
		t, b, log := in.t, in.b, in.log
		_, told := b.Opening()
		require.False(t, told)
		fail(t, b, 5)
		until, told := b.Opening()
		require.True(t, told)
		require.Equal(t, time.Minute, time.Until(until))
		pass(30 * time.Second)
		b.Observe(time.Now().Add(50 * time.Second))
		require.Equal(t, Snapshot{State: Open, Failures: 5, Remaining: 50 * time.Second, Remote: true}, b.Snapshot())
		until, told = b.Opening()
		require.True(t, told)
		require.Equal(t, 30*time.Second, time.Until(until))
		pass(30 * time.Second)
		require.Equal(t, Open, b.State())
		_, told = b.Opening()
		require.False(t, told)
		require.Len(t, log.list, 1)
	})
}

// no breaker, no bound.
func TestNilBreaker(t *testing.T) {
	t.Parallel()
	var b *Breaker
	for range 10 {
		p, ok := b.Acquire()
		require.True(t, ok)
		p.Failure(0)
		p.Success()
		p.Release()
	}
	require.Equal(t, Closed, b.State())
	require.True(t, b.Ready())
	b.Observe(time.Now().Add(time.Hour))
	_, told := b.Opening()
	require.False(t, told)
}
