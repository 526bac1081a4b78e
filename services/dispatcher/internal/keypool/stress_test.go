package keypool_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/keypool"
)

// a thousand calls at once, with everything else that goes on around them, lose no key, double none, and count each call.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	const calls, added = 1000, 20
	p := keypool.New([]keypool.Key{{Value: "key-0"}, {Value: "key-1", Tier: "free"}, {Value: "key-2", Tier: "premium"}}, cooldowns, nil)
	prober := keypool.NewProber(map[string]*keypool.Pool{"p": p}, func(context.Context, string, int, string) (classify.Verdict, string) {
		return classify.Verdict{Class: classify.Success}, "premium"
	}, time.Minute, slog.New(slog.DiscardHandler))

	brief := classify.Verdict{Class: classify.Rate, Cooldown: classify.QuotaCooldown, Wait: time.Microsecond, Stated: true}
	var picked, fresh atomic.Int64
	var wg sync.WaitGroup
	for i := range calls {
		model := fmt.Sprint("m", i%100)
		wg.Go(func() {
			want := keypool.Want(i % 2)
			p.Usable(model, want, nil)
			l, ok := p.Pick(model, want, func(index int) bool { return index == 0 })
			if !ok {
				return
			}
			picked.Add(1)
			v := success
			if i%7 == 0 {
				v = brief
				v.PerModel = i%2 == 0
			}
			l.Report(v)
		})
		wg.Go(func() {
			switch i % 6 {
			case 0:
				if _, ok := p.Add(fmt.Sprint("added-", i/6%added), "unknown"); ok {
					fresh.Add(1)
				}
			case 1:
				p.Observe(keypool.Cooldown{Index: i % 5, Until: time.Now().Add(time.Microsecond)})
			case 2:
				p.Snapshot()
			case 3:
				p.Count(model)
			case 4:
				p.Quota(nil)
			case 5:
				_, _ = prober.Round(t.Context(), i%4 == 1)
			}
		})
	}
	wg.Wait()
	require.NoError(t, prober.Stop(t.Context()))

	require.Equal(t, int64(added), fresh.Load())
	require.Equal(t, 3+added, p.Len())
	var counted int64
	for i, s := range p.Snapshot() {
		require.Equal(t, i, s.Index)
		counted += s.Calls
	}
	require.Equal(t, picked.Load(), counted)
	require.Zero(t, p.Snapshot()[0].Calls)

	<-time.After(time.Millisecond) // more than any cooldown
	values := map[string]int{}
	for i := range p.Len() {
		l, ok := p.Pick("last", keypool.AnyKey, func(index int) bool { return index != i })
		require.True(t, ok)
		values[l.Key]++
		if i < 3 {
			require.Equal(t, fmt.Sprint("key-", i), l.Key)
		}
	}
	require.Len(t, values, 3+added)
}
