package slottest

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/slot"
	"hydrallm/shared/testkit/await"
)

// Run checks what every slot.Acquirer must do. acquirer gives a fresh one per subtest.
func Run(t *testing.T, acquirer func(t *testing.T) slot.Acquirer) {
	t.Helper()
	for name, check := range map[string]func(*testing.T, slot.Acquirer){
		"first in order wins":            firstInOrder,
		"nothing free takes nothing":     busyTakesNothing,
		"tried candidates are passed":    skipsTried,
		"no limit is counted":            unlimitedIsCounted,
		"released once":                  releasedOnce,
		"released after a panic":         releasedAfterPanic,
		"limits of their own":            limitsOfTheirOwn,
		"idle ones are forgotten":        forgetsIdle,
		"exact under concurrent callers": exact,
		"exact under load and hang-up":   exactWithHangUps,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, acquirer(t))
		})
	}
}

func acquire(t *testing.T, c slot.Acquirer, candidates ...slot.Candidate) (*slot.Lease, int) {
	t.Helper()
	lease, index, err := c.Acquire(t.Context(), candidates, nil)
	require.NoError(t, err)
	return lease, index
}

func requireIdle(t *testing.T, acquirers ...slot.Acquirer) {
	t.Helper()
	for _, c := range acquirers {
		for _, u := range c.Active() {
			require.Zero(t, u.Active, u.String())
		}
	}
}

// R-144, section 19 scenario 1: the first in the list whenever it is free.
func firstInOrder(t *testing.T, c slot.Acquirer) {
	t.Helper()
	a, b := slot.Candidate{ID: "a", Limit: 1}, slot.Candidate{ID: "b", Limit: 1}
	first, i := acquire(t, c, a, b)
	require.Zero(t, i)
	second, i := acquire(t, c, a, b)
	require.Equal(t, 1, i)
	first.Release()
	third, i := acquire(t, c, a, b)
	require.Zero(t, i)
	require.Equal(t, []slot.Load{{ID: "a", Active: 1, Limit: 1}, {ID: "b", Active: 1, Limit: 1}}, c.Active())
	second.Release()
	third.Release()
	requireIdle(t, c)
}

// R-141, section 19 scenario 2: refused at once, and nothing is held afterwards.
func busyTakesNothing(t *testing.T, c slot.Acquirer) {
	t.Helper()
	a, b := slot.Candidate{ID: "a", Limit: 2}, slot.Candidate{ID: "b", Limit: 1}
	var leases []*slot.Lease
	for range 3 {
		l, _ := acquire(t, c, a, b)
		leases = append(leases, l)
	}
	for range 5 {
		lease, index, err := c.Acquire(t.Context(), []slot.Candidate{a, b}, nil)
		require.ErrorIs(t, err, slot.ErrBusy)
		require.Equal(t, -1, index)
		lease.Release() // a refused acquisition has nothing to give back
	}
	require.Equal(t, []slot.Load{{ID: "a", Active: 2, Limit: 2}, {ID: "b", Active: 1, Limit: 1}}, c.Active())
	for _, l := range leases {
		l.Release()
	}
	requireIdle(t, c)
	_, _, err := c.Acquire(t.Context(), nil, nil)
	require.ErrorIs(t, err, slot.ErrBusy)
}

// what the request has tried is not acquired again.
func skipsTried(t *testing.T, c slot.Acquirer) {
	t.Helper()
	all := []slot.Candidate{{ID: "a", Limit: 1}, {ID: "b", Limit: 1}, {ID: "c", Limit: 1}}
	tried := map[int]bool{0: true, 1: true}
	lease, i, err := c.Acquire(t.Context(), all, func(i int) bool { return tried[i] })
	require.NoError(t, err)
	require.Equal(t, 2, i)
	lease.Release()
	_, _, err = c.Acquire(t.Context(), all, func(int) bool { return true })
	require.ErrorIs(t, err, slot.ErrBusy)
	requireIdle(t, c)
}

// 0 is no limit, and still counted.
func unlimitedIsCounted(t *testing.T, c slot.Acquirer) {
	t.Helper()
	var leases []*slot.Lease
	for range 100 {
		l, _ := acquire(t, c, slot.Candidate{ID: "free"})
		leases = append(leases, l)
	}
	require.Equal(t, "active[free]=100/inf", c.Active()[0].String())
	l, _ := acquire(t, c, slot.Candidate{ID: "bound", Limit: 3})
	require.Equal(t, "active[bound]=1/3", c.Active()[0].String())
	l.Release()
	for _, l := range leases {
		l.Release()
	}
	requireIdle(t, c)
}

// what several names stand for is counted once, and each name compares the sum with its own limit.
func limitsOfTheirOwn(t *testing.T, c slot.Acquirer) {
	t.Helper()
	two, three, free := slot.Candidate{ID: "m", Limit: 2}, slot.Candidate{ID: "m", Limit: 3}, slot.Candidate{ID: "m", Counts: true}
	full := func(candidates ...slot.Candidate) {
		t.Helper()
		_, _, err := c.Acquire(t.Context(), candidates, nil)
		require.ErrorIs(t, err, slot.ErrBusy)
	}
	var leases []*slot.Lease
	take := func(want int, candidates ...slot.Candidate) {
		t.Helper()
		l, i := acquire(t, c, candidates...)
		require.Equal(t, want, i)
		leases = append(leases, l)
	}
	take(0, free)
	take(0, two)
	full(two)
	take(1, two, three)
	full(two, three)
	take(2, two, three, free)
	require.Equal(t, 4, c.Count("m"))
	for i, l := range leases {
		full(two)
		require.Equal(t, 4-i, c.Count("m"))
		if l.Release(); i == 2 {
			break
		}
	}
	take(0, two)
	full(two)
	for _, l := range leases {
		l.Release()
	}
	requireIdle(t, c)
	require.Zero(t, c.Count("m"))
	require.Zero(t, c.Count("never heard of"))
}

// Clients bring names, so what is kept is bounded.
func forgetsIdle(t *testing.T, c slot.Acquirer) {
	t.Helper()
	kept, _ := acquire(t, c, slot.Candidate{ID: "kept"})
	for i := range 1000 {
		l, _ := acquire(t, c, slot.Candidate{ID: strconv.Itoa(i)})
		l.Release()
	}
	require.LessOrEqual(t, len(c.Active()), 300)
	require.Equal(t, 1, c.Count("kept"))
	kept.Release()
}

// exactly once.
func releasedOnce(t *testing.T, c slot.Acquirer) {
	t.Helper()
	a := slot.Candidate{ID: "a", Limit: 2}
	first, _ := acquire(t, c, a)
	second, _ := acquire(t, c, a)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(first.Release)
	}
	wg.Wait()
	require.Equal(t, 1, c.Active()[0].Active)
	third, _ := acquire(t, c, a)
	_, _, err := c.Acquire(t.Context(), []slot.Candidate{a}, nil)
	require.ErrorIs(t, err, slot.ErrBusy)
	second.Release()
	third.Release()
	requireIdle(t, c)
}

// also when the call panics.
func releasedAfterPanic(t *testing.T, c slot.Acquirer) {
	t.Helper()
	require.Panics(t, func() {
		l, _ := acquire(t, c, slot.Candidate{ID: "a", Limit: 1})
		defer l.Release()
		panic("call")
	})
	l, _ := acquire(t, c, slot.Candidate{ID: "a", Limit: 1})
	l.Release()
	requireIdle(t, c)
}

// 50 concurrent callers on a limit of 4 give exactly 4, again and again.
func exact(t *testing.T, c slot.Acquirer) {
	t.Helper()
	for round := range 20 {
		requireExact(t, "a"+strconv.Itoa(round%3), c)
	}
	requireIdle(t, c)
}

// requireExact lets the acquirers make 50 acquisitions each on one upstream with limit 4. A slot that was released a moment ago may need a moment
// until other owners see it.
func requireExact(t *testing.T, id string, acquirers ...slot.Acquirer) {
	t.Helper()
	candidates := []slot.Candidate{{ID: id, Limit: 4}}
	var mu sync.Mutex
	var leases []*slot.Lease
	var refused atomic.Int32
	var wg sync.WaitGroup
	for _, c := range acquirers {
		for range 50 {
			wg.Go(func() {
				lease, _, err := c.Acquire(t.Context(), candidates, nil)
				if err != nil {
					refused.Add(1)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				leases = append(leases, lease)
			})
		}
	}
	wg.Wait()
	require.Len(t, leases, 4)
	require.EqualValues(t, len(acquirers)*50-4, refused.Load())
	for _, l := range leases {
		l.Release()
	}
}

// SLOT-01, SLOT-03: whatever acquisitions, ends and hang-ups do, never more than the limit, and nothing leaks.
func exactWithHangUps(t *testing.T, c slot.Acquirer) {
	t.Helper()
	requireNeverAbove(t, c)
	requireIdle(t, c)
}

func requireNeverAbove(t *testing.T, acquirers ...slot.Acquirer) {
	t.Helper()
	const limit = 3
	candidates := []slot.Candidate{{ID: "busy", Limit: limit}}
	var load gauge
	var wg sync.WaitGroup
	for g := range 8 {
		c := acquirers[g%len(acquirers)]
		wg.Go(func() {
			for i := range 60 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration((i*739+g*97)%2000)*time.Microsecond)
				asking := ctx
				if i == 0 { // one that does not hang up, however slow the machine is
					asking = t.Context()
				}
				lease, _, err := c.Acquire(asking, candidates, nil)
				if err == nil {
					load.add(1)
					<-ctx.Done()
					load.add(-1)
					lease.Release()
				}
				cancel()
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, load.most, limit)
	require.Positive(t, load.most)
}

// gauge counts what runs at the same time.
type gauge struct {
	mu        sync.Mutex
	now, most int
}

func (g *gauge) add(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now += n
	g.most = max(g.most, g.now)
}

// RunShared checks what slot.Shared must do on a store. store gives a fresh store per subtest, seen by as many clients as asked for. The
// suite waits for leases of some seconds to expire.
func RunShared(t *testing.T, store func(t *testing.T, clients int) []slot.KV) {
	t.Helper()
	owners := func(t *testing.T, n int) []slot.Acquirer {
		t.Helper()
		all := make([]slot.Acquirer, n)
		for i, kv := range store(t, n) {
			all[i] = start(t, kv, "owner-"+strconv.Itoa(i), 10*time.Second)
		}
		return all
	}
	t.Run("one owner", func(t *testing.T) {
		t.Parallel()
		Run(t, func(t *testing.T) slot.Acquirer {
			t.Helper()
			return owners(t, 1)[0]
		})
	})
	t.Run("the limit holds over all owners", func(t *testing.T) {
		t.Parallel()
		all := owners(t, 3)
		for round := range 5 {
			requireExact(t, "x"+strconv.Itoa(round), all...)
		}
		requireNeverAbove(t, all...)
		requireIdle(t, all...)
	})
	t.Run("calls without a limit count for other owners", func(t *testing.T) {
		t.Parallel()
		all := owners(t, 2)
		free, two := []slot.Candidate{{ID: "m", Counts: true}}, []slot.Candidate{{ID: "m", Limit: 2}}
		var leases []*slot.Lease
		for range 3 {
			l, _ := acquire(t, all[0], free...)
			leases = append(leases, l)
		}
		_, _, err := all[1].Acquire(t.Context(), two, nil)
		require.ErrorIs(t, err, slot.ErrBusy)
		leases[0].Release()
		leases[1].Release()
		requireSoon(t, all[1], two).Release()
	})
	t.Run("a lost swap is not busy", func(t *testing.T) {
		t.Parallel()
		all := owners(t, 4)
		for round := range 10 {
			candidates := []slot.Candidate{{ID: "y" + strconv.Itoa(round), Limit: len(all)}}
			errs := make(chan error, len(all))
			for _, c := range all {
				go func() {
					_, _, err := c.Acquire(t.Context(), candidates, nil)
					errs <- err
				}()
			}
			for range all {
				require.NoError(t, <-errs)
			}
		}
	})
	t.Run("a release is seen by the others", func(t *testing.T) {
		t.Parallel()
		all := owners(t, 2)
		a := []slot.Candidate{{ID: "a", Limit: 1}}
		lease, _, err := all[0].Acquire(t.Context(), a, nil)
		require.NoError(t, err)
		_, _, err = all[1].Acquire(t.Context(), a, nil)
		require.ErrorIs(t, err, slot.ErrBusy)
		lease.Release()
		requireSoon(t, all[1], a).Release()
	})
	t.Run("slots of a dead owner come back", func(t *testing.T) { // R-145, section 19 scenario 23
		t.Parallel()
		kvs := store(t, 2)
		dead := &Cuttable{KV: kvs[0]}
		const ttl = 5 * time.Second // a machine with much to do needs a while between the first acquisition and the second
		first, second := start(t, dead, "dead", ttl), start(t, kvs[1], "alive", ttl)
		a := []slot.Candidate{{ID: "a", Limit: 1}}
		lease, _, err := first.Acquire(t.Context(), a, nil)
		require.NoError(t, err)
		dead.Cut(true)
		_, _, err = second.Acquire(t.Context(), a, nil)
		require.ErrorIs(t, err, slot.ErrBusy)
		requireSoon(t, second, a).Release()
		lease.Release()
	})
}

// requireSoon waits until a slot is free.
func requireSoon(t *testing.T, c slot.Acquirer, candidates []slot.Candidate) (lease *slot.Lease) {
	t.Helper()
	await.True(t, func() bool {
		l, _, err := c.Acquire(t.Context(), candidates, nil)
		lease = l
		return err == nil
	})
	return lease
}

func start(t *testing.T, kv slot.KV, owner string, ttl time.Duration) *slot.Shared {
	t.Helper()
	s := slot.NewShared(t.Context(), kv, slot.Config{Owner: owner, TTL: ttl}, slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		_ = s.Close(context.WithoutCancel(t.Context())) // fails where the store is cut off
	})
	return s
}
