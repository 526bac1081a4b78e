package breaker

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

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
