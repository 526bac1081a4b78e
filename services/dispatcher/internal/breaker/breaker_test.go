package breaker

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// The presets of R-105.
var (
	provider = Config{Consecutive: 5, OpenFor: 60 * time.Second, HalfOpen: true}
	channel  = Config{Failures: 3, Window: 300 * time.Second, OpenFor: 60 * time.Second}
)

// bubble is a breaker under a fake clock.
type bubble struct {
	t   *testing.T
	b   *Breaker
	log *transitions
}

func inBubble(t *testing.T, cfg Config, fn func(bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var log transitions
		b, err := New(cfg, log.add)
		require.NoError(t, err)
		fn(bubble{t, b, &log})
	})
}

// pass lets time go by inside a bubble.
func pass(d time.Duration) { <-time.After(d) }

type transitions struct {
	mu   sync.Mutex
	list []Transition
}

func (l *transitions) add(t Transition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, t)
}

// states gives the states that were entered, in order.
func (l *transitions) states() []State {
	l.mu.Lock()
	defer l.mu.Unlock()
	var s []State
	for _, t := range l.list {
		s = append(s, t.To)
	}
	return s
}

func fail(t *testing.T, b *Breaker, times int) {
	t.Helper()
	for range times {
		p, ok := b.Acquire()
		require.True(t, ok)
		p.Failure(0)
	}
}

func succeed(t *testing.T, b *Breaker) {
	t.Helper()
	p, ok := b.Acquire()
	require.True(t, ok)
	p.Success()
}

func requireRejects(t *testing.T, b *Breaker) {
	t.Helper()
	_, ok := b.Acquire()
	require.False(t, ok)
}

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

func TestConfig(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg  Config
		want []error
	}{
		"provider":       {provider, nil},
		"channel":        {channel, nil},
		"nothing":        {Config{}, []error{ErrThreshold, ErrOpenFor}},
		"both":           {Config{Consecutive: 1, Failures: 1, Window: 1, OpenFor: 1}, []error{ErrThreshold}},
		"no window":      {Config{Failures: 1, OpenFor: 1}, []error{ErrThreshold}},
		"negative":       {Config{Consecutive: 1, Window: -1, OpenFor: 1}, []error{ErrThreshold}},
		"never to close": {Config{Consecutive: 1}, []error{ErrOpenFor}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := New(c.cfg, nil)
			if c.want == nil {
				require.NoError(t, err)
			}
			for _, want := range c.want {
				require.ErrorIs(t, err, want)
			}
		})
	}
}

func TestSet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		opened := map[string]State{}
		s, err := NewSet(map[string]Config{"b": channel, "a": provider}, func(id string, tr Transition) { opened[id] = tr.To })
		require.NoError(t, err)
		fail(t, s.Get("b"), 3)
		require.Equal(t, map[string]State{"b": Open}, opened)
		require.Equal(t, map[string]Snapshot{
			"a": {State: Closed}, "b": {State: Open, Failures: 3, Remaining: time.Minute},
		}, s.Snapshot())
		require.Nil(t, s.Get("ollama"))
		var ids []string
		for id := range s.All() {
			ids = append(ids, id)
		}
		require.Equal(t, []string{"a", "b"}, ids)

		_, err = NewSet(map[string]Config{"x": {}, "y": {}}, nil)
		require.ErrorContains(t, err, "channel x")
		require.ErrorContains(t, err, "channel y")
	})
}

// whatever goroutines do, transitions form one chain, the probe is single, and the breaker still works afterwards.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	var log transitions
	b, err := New(Config{Consecutive: 3, OpenFor: 50 * time.Microsecond, HalfOpen: true}, log.add)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 2000 {
				p, ok := b.Acquire()
				b.Snapshot()
				if !ok {
					continue
				}
				switch (i + g) % 4 {
				case 0:
					p.Success()
				case 1:
					p.Release()
				default:
					p.Failure(0)
				}
				if i%100 == 0 {
					b.Observe(time.Now().Add(10 * time.Microsecond))
				}
			}
		})
	}
	wg.Wait()
	seen := make(map[uint64]Transition, len(log.list))
	for _, tr := range log.list {
		seen[tr.Seq] = tr
	}
	state := Closed
	for seq := uint64(1); seq <= uint64(len(log.list)); seq++ {
		require.Equal(t, state, seen[seq].From)
		require.NotEqual(t, state, seen[seq].To)
		state = seen[seq].To
	}
	require.NotEmpty(t, log.list)
}

func BenchmarkAcquire(b *testing.B) {
	for name, cfg := range map[string]Config{"consecutive": provider, "window": channel} {
		b.Run(name, func(b *testing.B) {
			br, err := New(cfg, nil)
			require.NoError(b, err)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					p, ok := br.Acquire()
					if !ok {
						b.Error("rejected")
						return
					}
					p.Success()
				}
			})
		})
	}
}

func BenchmarkRejected(b *testing.B) {
	br, err := New(provider, nil)
	require.NoError(b, err)
	for range 5 {
		p, _ := br.Acquire()
		p.Failure(0)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := br.Acquire(); ok {
			b.Fatal("let through")
		}
	}
}
