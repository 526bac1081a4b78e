package slot_test

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/slot"
	"hydrallm/services/dispatcher/internal/slot/slottest"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestLocal(t *testing.T) {
	t.Parallel()
	slottest.Run(t, func(*testing.T) slot.Acquirer { return &slot.Local{} })
}

func TestShared(t *testing.T) {
	t.Parallel()
	for name, delay := range map[string]time.Duration{"fast store": 0, "slow store": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slottest.RunShared(t, func(_ *testing.T, clients int) []slot.KV {
				var m slottest.Memory
				kvs := make([]slot.KV, clients)
				for i := range kvs {
					kvs[i] = m.Client(delay)
				}
				return kvs
			})
		})
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	require.Equal(t, "active[a]=2/4", slot.Load{ID: "a", Active: 2, Limit: 4}.String())
	require.Equal(t, "active[a]=0/inf", slot.Load{ID: "a"}.String())
	var none *slot.Lease
	none.Release()
}

var one = []slot.Candidate{{ID: "a", Limit: 1}}

func start(t *testing.T, kv slot.KV, owner string) *slot.Shared {
	t.Helper()
	return slot.NewShared(t.Context(), kv, slot.Config{Owner: owner}, slog.New(slog.DiscardHandler))
}

// pass lets time go by inside a bubble.
func pass(d time.Duration) { <-time.After(d) }

func stop(t *testing.T, all ...*slot.Shared) {
	t.Helper()
	for _, s := range all {
		require.NoError(t, s.Close(t.Context()))
	}
}

// a lease is renewed as long as the call runs, and expires when its owner falls silent.
func TestLeaseLivesWithItsOwner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var m slottest.Memory
		mute := &slottest.Cuttable{KV: m.Client(time.Millisecond)}
		first, second := start(t, mute, "first"), start(t, m.Client(time.Millisecond), "second")
		lease, _, err := first.Acquire(t.Context(), one, nil)
		require.NoError(t, err)
		for range 60 {
			pass(5 * time.Second)
			_, _, err := second.Acquire(t.Context(), one, nil)
			require.ErrorIs(t, err, slot.ErrBusy)
		}
		mute.Cut(true)
		pass(slot.DefaultTTL / 3)
		_, _, err = second.Acquire(t.Context(), one, nil)
		require.ErrorIs(t, err, slot.ErrBusy)
		pass(slot.DefaultTTL)
		other, _, err := second.Acquire(t.Context(), one, nil)
		require.NoError(t, err)

		// The first comes back, ends its call, and does not disturb the second.
		mute.Cut(false)
		lease.Release()
		pass(slot.DefaultTTL)
		_, _, err = first.Acquire(t.Context(), one, nil)
		require.ErrorIs(t, err, slot.ErrBusy)
		other.Release()
		synctest.Wait()
		pass(10 * time.Millisecond)
		again, _, err := first.Acquire(t.Context(), one, nil)
		require.NoError(t, err)
		again.Release()
		stop(t, first, second)
	})
}

// A store that forgets is told again by the next heartbeat.
func TestStoreForgets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var m slottest.Memory
		first, second := start(t, m.Client(0), "first"), start(t, m.Client(0), "second")
		lease, _, err := first.Acquire(t.Context(), one, nil)
		require.NoError(t, err)
		m.Clear()
		pass(slot.DefaultTTL)
		_, _, err = second.Acquire(t.Context(), one, nil)
		require.ErrorIs(t, err, slot.ErrBusy)
		lease.Release()
		stop(t, first, second)
		require.Equal(t, map[string]string{"slot.YQ": "{}"}, m.Values())
	})
}

// outage says when a store has lost its values, to several clients.
type outage struct {
	mu   sync.Mutex
	over chan struct{}
}

func (o *outage) next() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.over
}

func (o *outage) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.over)
	o.over = make(chan struct{})
}

// silent is a store of which no answer comes.
type silent struct {
	slot.KV
	on atomic.Bool
}

func (s *silent) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	if s.on.Load() {
		<-ctx.Done()
		return nil, 0, ctx.Err()
	}
	return s.KV.Get(ctx, key)
}

// the limit holds over an outage in which the store loses everything, and who asked in the meantime is served.
func TestStoreLosesEverything(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var m slottest.Memory
		o := &outage{over: make(chan struct{})}
		kv := &silent{KV: m.Client(time.Millisecond)}
		dispatcher := func(owner string) *slot.Shared {
			return slot.NewShared(t.Context(), kv, slot.Config{Owner: owner, Lost: o.next}, slog.New(slog.DiscardHandler))
		}
		first, second, third := dispatcher("first"), dispatcher("second"), dispatcher("third")
		three := []slot.Candidate{{ID: "a", Limit: 3}}
		var leases []*slot.Lease
		for _, s := range []*slot.Shared{first, first, second} {
			lease, _, err := s.Acquire(t.Context(), three, nil)
			require.NoError(t, err)
			leases = append(leases, lease)
		}
		kv.on.Store(true)
		asked := make(chan error, 1)
		go func() {
			_, _, err := third.Acquire(t.Context(), three, nil)
			asked <- err
		}()
		pass(time.Second)
		leases[0].Release()
		m.Clear()
		kv.on.Store(false)
		o.end()
		require.NoError(t, <-asked, "a slot is free, and its answer was lost, not refused")
		for _, s := range []*slot.Shared{first, second, third} {
			_, _, err := s.Acquire(t.Context(), three, nil)
			require.ErrorIs(t, err, slot.ErrBusy)
		}
		leases[1].Release()
		leases[2].Release()
		stop(t, first, second, third)
	})
}

// A store that is out of reach can't vouch for a limit: a candidate without one serves, and nothing else does.
func TestStoreOutOfReach(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var m slottest.Memory
		kv := &slottest.Cuttable{KV: m.Client(0)}
		s := start(t, kv, "first")
		kv.Cut(true)
		_, index, err := s.Acquire(t.Context(), one, nil)
		require.ErrorIs(t, err, slottest.ErrCut)
		require.NotErrorIs(t, err, slot.ErrBusy)
		require.Equal(t, -1, index)
		lease, index, err := s.Acquire(t.Context(), append(one[:1:1], slot.Candidate{ID: "b"}), nil)
		require.NoError(t, err)
		require.Equal(t, 1, index)
		lease.Release()
		lease, index, err = s.Acquire(t.Context(), append(one[:1:1], slot.Candidate{ID: "a", Counts: true}), nil)
		require.NoError(t, err)
		require.Equal(t, 1, index)
		lease.Release()

		kv.Cut(false)
		lease, _, err = s.Acquire(t.Context(), one, nil)
		require.NoError(t, err)
		kv.Cut(true)
		lease.Release() // can't be written now
		pass(time.Second)
		kv.Cut(false)
		pass(slot.DefaultTTL / 3) // the heartbeat writes it
		require.Equal(t, map[string]string{"slot.YQ": "{}"}, m.Values())
		stop(t, s)
	})
}

// a store that is away for a moment has nobody refused; what may be had without it, or is busy, is not waited for.
func TestStoreIsAwaited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const patience = 30 * time.Second
		var m slottest.Memory
		kv := &slottest.Cuttable{KV: m.Client(0)}
		s := slot.NewShared(t.Context(), kv, slot.Config{Owner: "first", Patience: patience}, slog.New(slog.DiscardHandler))
		kv.Cut(true)
		asked := make(chan error, 1)
		go func() {
			_, _, err := s.Acquire(t.Context(), one, nil)
			asked <- err
		}()
		began := time.Now()
		pass(patience / 2)
		kv.Cut(false)
		require.NoError(t, <-asked)
		require.Less(t, time.Since(began), patience/2+time.Second)
		_, _, err := s.Acquire(t.Context(), one, nil)
		require.ErrorIs(t, err, slot.ErrBusy)

		kv.Cut(true)
		began = time.Now()
		lease, index, err := s.Acquire(t.Context(), append(one[:1:1], slot.Candidate{ID: "b"}), nil)
		require.NoError(t, err)
		require.Equal(t, 1, index)
		require.Zero(t, time.Since(began))
		lease.Release()
		_, _, err = s.Acquire(t.Context(), one, nil)
		require.ErrorIs(t, err, slottest.ErrCut)
		require.NotErrorIs(t, err, slot.ErrBusy)
		require.InDelta(t, patience.Seconds(), time.Since(began).Seconds(), 1)
		kv.Cut(false)
		stop(t, s)
	})
}

// pools that are idle are forgotten by the heartbeat when there are many, and come back as they were.
func TestIdlePoolsAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var m slottest.Memory
		s := start(t, m.Client(0), "first")
		kept, _, err := s.Acquire(t.Context(), one, nil)
		require.NoError(t, err)
		for i := range 1000 {
			l, _, err := s.Acquire(t.Context(), []slot.Candidate{{ID: strconv.Itoa(i), Limit: 1}}, nil)
			require.NoError(t, err)
			l.Release()
		}
		pass(slot.DefaultTTL)
		require.Len(t, s.Active(), 1)
		_, _, err = s.Acquire(t.Context(), one, nil)
		require.ErrorIs(t, err, slot.ErrBusy)
		kept.Release()
		l, _, err := s.Acquire(t.Context(), []slot.Candidate{{ID: "7", Limit: 1}}, nil)
		require.NoError(t, err)
		l.Release()
		stop(t, s)
	})
}

// A record that nobody can read is no licence to exceed the limit.
func TestUnreadableRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var m slottest.Memory
		m.Put("slot.YQ", []byte("junk"))
		s := start(t, m.Client(0), "first")
		_, _, err := s.Acquire(t.Context(), one, nil)
		require.ErrorContains(t, err, "reading a record of slots")
		stop(t, s)
	})
}

// SLOT-03: a caller that gave up takes no slot, however the grant and the hang-up meet.
func TestHangUpDuringAcquire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var m slottest.Memory
		s := start(t, m.Client(10*time.Millisecond), "first")
		for wait := range 60 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(wait)*time.Millisecond)
			lease, _, err := s.Acquire(ctx, one, nil)
			if err != nil {
				require.ErrorIs(t, err, context.DeadlineExceeded)
			}
			lease.Release()
			cancel()
			pass(time.Second)
			require.Equal(t, "active[a]=0/1", s.Active()[0].String())
			require.NotContains(t, m.Values()["slot.YQ"], "first", "given up after %d ms", wait)
		}
		stop(t, s)
	})
}

// Acquisitions that come together share a swap, and a release that meets an acquisition needs none.
func TestAcquisitionsShareSwaps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var m slottest.Memory
		s := start(t, m.Client(time.Millisecond), "first")
		many := []slot.Candidate{{ID: "a", Limit: 100}}
		leases := make(chan *slot.Lease, 100)
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if lease, _, err := s.Acquire(t.Context(), many, nil); err == nil {
					leases <- lease
				}
			})
		}
		wg.Wait()
		require.Len(t, leases, 100)
		require.LessOrEqual(t, m.Swaps(), 3)
		close(leases)
		for lease := range leases {
			lease.Release()
		}
		pass(time.Second)
		require.LessOrEqual(t, m.Swaps(), 6)
		stop(t, s)
	})
}

// Close gives back what is left, refuses acquisitions, and lets late releases pass.
func TestClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var m slottest.Memory
		first, second := start(t, m.Client(time.Millisecond), "first"), start(t, m.Client(time.Millisecond), "second")
		lease, _, err := first.Acquire(t.Context(), one, nil)
		require.NoError(t, err)
		stop(t, first)
		other, _, err := second.Acquire(t.Context(), one, nil)
		require.NoError(t, err)
		lease.Release()
		_, _, err = first.Acquire(t.Context(), one, nil)
		require.ErrorIs(t, err, slot.ErrClosed)
		other.Release()
		stop(t, second)
		stop(t, first, second)
	})
}

// An acquisition that waits for the store when the process stops is told so.
func TestCloseDuringAcquire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var m slottest.Memory
		s := start(t, m.Client(time.Second), "first")
		result := make(chan error, 1)
		go func() {
			_, _, err := s.Acquire(t.Context(), one, nil)
			result <- err
		}()
		pass(1500 * time.Millisecond)
		stop(t, s)
		require.ErrorIs(t, <-result, slot.ErrClosed)
		require.Empty(t, m.Values())
	})
}

func BenchmarkLocal(b *testing.B) {
	var l slot.Local
	candidates := []slot.Candidate{{ID: "a", Limit: 1}, {ID: "b", Limit: 1000}}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			lease, _, err := l.Acquire(b.Context(), candidates, nil)
			if err != nil {
				b.Error(err)
				return
			}
			lease.Release()
		}
	})
}

// The cost of the bookkeeping itself: the store answers at once.
func BenchmarkShared(b *testing.B) {
	var m slottest.Memory
	s := slot.NewShared(b.Context(), m.Client(0), slot.Config{Owner: "first"}, slog.New(slog.DiscardHandler))
	candidates := []slot.Candidate{{ID: "a", Limit: 1000}}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			lease, _, err := s.Acquire(b.Context(), candidates, nil)
			if err != nil {
				b.Error(err)
				return
			}
			lease.Release()
		}
	})
	require.NoError(b, s.Close(context.WithoutCancel(b.Context())))
}
