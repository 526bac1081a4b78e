package process

import (
	"context"
	"log/slog"
	"math"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestGrowth(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	tests := []struct {
		live, rate uint64
		want       int
	}{
		{0, 0, maxGrowth},
		{0, mb, maxGrowth},
		{0, 10_000 * mb, maxHeadroom * 100 / leastLive}, // before the first collection
		{1, 10_000 * mb, maxHeadroom * 100 / leastLive},
		{5 * mb, 0, maxGrowth},
		{16 * mb, 0, 200},
		{32 * mb, 0, 100},
		{64 * mb, 0, minGrowth},
		{1 << 40, 0, minGrowth},
		{math.MaxUint64, math.MaxUint64, minGrowth},
		// More than perSecond times the headroom in a second gives more room.
		{16 * mb, 160 * mb, 200},
		{16 * mb, 200 * mb, 250},
		{16 * mb, 10_000 * mb, 300},
		{192 * mb, 10_000 * mb, minGrowth},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, growth(tt.live, tt.rate), tt)
	}
}

// The collector is adapted when it makes a difference, and what nobody uses goes back when little is allocated.
func TestKeeper(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	tests := map[string]struct {
		live, spare uint64
		perSecond   uint64 // allocated
		growth      []int
		releases    int // in a minute
	}{
		"idle and small":       {5 * mb, 7 * mb, 0, []int{200}, 0},
		"idle after a burst":   {5 * mb, 60 * mb, mb / 10, []int{200}, 6},
		"busy":                 {5 * mb, 60 * mb, 100 * mb, []int{200, 399}, 0},
		"full of slow readers": {200 * mb, 100 * mb, mb / 10, []int{50}, 6},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				var set []int
				releases := 0
				k := &keeper{
					read: func() heap {
						s := uint64(time.Since(begin) / time.Second)
						return heap{live: tt.live + s%2*mb/100, spare: tt.spare, allocated: s * tt.perSecond}
					},
					setGrowth: func(p int) { set = append(set, p) }, release: func() { releases++ },
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var wg sync.WaitGroup
				wg.Go(func() { k.run(ctx) })
				wg.Wait()
				require.Equal(t, tt.growth, set)
				require.InDelta(t, tt.releases, releases, 1)
				if tt.releases == 0 {
					require.Zero(t, releases)
				}
			})
		})
	}
}

func TestReadHeap(t *testing.T) {
	t.Parallel()
	before := readHeap()
	require.Positive(t, before.allocated)
	kept := make([]byte, 1<<20)
	require.GreaterOrEqual(t, readHeap().allocated-before.allocated, uint64(len(kept)))
}

// A limit of the environment wins over that of the control group, and the log says what counts.
func TestMemoryLimit(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "1GiB")
	before := debug.SetMemoryLimit(1 << 30)
	defer debug.SetMemoryLimit(before)
	var out strings.Builder
	limitMemory(t.Context(), slog.New(slog.NewTextHandler(&out, nil)))
	require.Contains(t, out.String(), "memory:")
	require.Contains(t, out.String(), "1024MiB")
	require.EqualValues(t, 1<<30, debug.SetMemoryLimit(-1))
}
