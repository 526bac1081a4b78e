package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A permit ends once; later calls do nothing.
func TestStatedWaits(t *testing.T) { // an opening lasts no longer than the failures behind it state
	t.Parallel()
	const none = 0
	for name, tc := range map[string]struct {
		cfg   Config
		waits []time.Duration // of failures, a second apart
		want  time.Duration
	}{
		"all short":                    {channel, []time.Duration{2 * time.Second, 2 * time.Second, 2 * time.Second}, 2 * time.Second},
		"the longest counts":           {channel, []time.Duration{30 * time.Second, 2 * time.Second, 2 * time.Second}, 28 * time.Second},
		"one states nothing":           {channel, []time.Duration{2 * time.Second, none, 2 * time.Second}, time.Minute},
		"never longer than configured": {channel, []time.Duration{time.Hour, time.Second, time.Second}, time.Minute},
		"in a row":                     {provider, []time.Duration{none, 2 * time.Second, 2 * time.Second, 2 * time.Second, 2 * time.Second}, time.Minute},
		"all in a row":                 {provider, []time.Duration{time.Second, time.Second, time.Second, time.Second, 3 * time.Second}, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, tc.cfg, func(x bubble) {
				for i, wait := range tc.waits {
					if i > 0 {
						pass(time.Second)
					}
					permit, ok := x.b.Acquire()
					require.True(x.t, ok)
					permit.Failure(wait)
				}
				require.Equal(x.t, tc.want, x.b.Snapshot().Remaining)
				require.Equal(x.t, tc.want, x.log.list[0].OpenFor)
				pass(tc.want - 1)
				requireRejects(x.t, x.b)
				pass(1)
				require.NotEqual(x.t, Open, x.b.State())
				permit, ok := x.b.Acquire() // another one that states a wait opens it for that long, the first that does not for longer
				require.True(x.t, ok)
				permit.Failure(5 * time.Second)
				if tc.want < time.Minute {
					require.Equal(x.t, 5*time.Second, x.b.Snapshot().Remaining)
				}
				pass(5 * time.Second)
				if permit, ok = x.b.Acquire(); ok {
					permit.Failure(none)
					require.Equal(x.t, time.Minute, x.b.Snapshot().Remaining)
				}
			})
		})
	}
}

func TestLateFailureExtendsByItsWait(t *testing.T) {
	t.Parallel()
	inBubble(t, channel, func(x bubble) {
		late, ok := x.b.Acquire()
		require.True(x.t, ok)
		for range 3 {
			permit, ok := x.b.Acquire()
			require.True(x.t, ok)
			permit.Failure(10 * time.Second)
		}
		pass(8 * time.Second)
		late.Failure(4 * time.Second)
		require.Equal(x.t, 4*time.Second, x.b.Snapshot().Remaining)
	})
}

func TestPermitEndsOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, Config{Consecutive: 2, OpenFor: time.Minute, HalfOpen: true}, func(in bubble) {
		t, b := in.t, in.b
		p, ok := b.Acquire()
		require.True(t, ok)
		p.Failure(0)
		p.Failure(0)
		p.Success()
		p.Release()
		require.Equal(t, Snapshot{State: Closed, Failures: 1}, b.Snapshot())

		q, ok := b.Acquire()
		require.True(t, ok)
		q.Release()
		q.Failure(0)
		require.Equal(t, 1, b.Snapshot().Failures)
	})
}

// A success that began before the opening does not close it, and neither does one that comes while a probe is out.
func TestLateSuccess(t *testing.T) {
	t.Parallel()
	inBubble(t, provider, func(in bubble) {
		t, b := in.t, in.b
		first, _ := b.Acquire()
		second, _ := b.Acquire()
		fail(t, b, 5)
		first.Success()
		require.Equal(t, Snapshot{State: Open, Failures: 5, Remaining: time.Minute}, b.Snapshot())
		pass(time.Minute)
		probe, ok := b.Acquire()
		require.True(t, ok)
		second.Success()
		require.Equal(t, HalfOpen, b.State())
		probe.Failure(0)
		require.Equal(t, Open, b.State())
	})
}

// calls that began before the opening and fail during it belong to the outage: the rest counts from the last failure.
func TestLateFailureExtends(t *testing.T) {
	t.Parallel()
	for _, cfg := range []Config{provider, channel} {
		inBubble(t, cfg, func(in bubble) {
			t, b, log := in.t, in.b, in.log
			late, _ := b.Acquire()
			fail(t, b, max(cfg.Consecutive, cfg.Failures))
			pass(20 * time.Second)
			late.Failure(0)
			require.Equal(t, time.Minute, b.Snapshot().Remaining)
			pass(time.Minute - 1)
			requireRejects(t, b)
			pass(1)
			require.NotEqual(t, Open, b.State())
			require.Len(t, log.list, 1)
		})
	}
}

// What failed in a former outage must not start a new one, nor count towards it.
func TestFailureOfFormerOutage(t *testing.T) {
	t.Parallel()
	for _, cfg := range []Config{provider, channel} {
		inBubble(t, cfg, func(in bubble) {
			t, b := in.t, in.b
			hung, _ := b.Acquire()
			hung2, _ := b.Acquire()
			fail(t, b, max(cfg.Consecutive, cfg.Failures))
			pass(time.Minute)
			hung.Failure(0) // after the opening, before anybody has noticed its end
			require.NotEqual(t, Open, b.State())
			succeed(t, b)
			before := b.Snapshot()
			hung2.Failure(0)
			require.Equal(t, before, b.Snapshot())
		})
	}
}
