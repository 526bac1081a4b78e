package keypool_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/keypool"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var cooldowns = keypool.Cooldowns{Forbidden: 24 * time.Hour, Quota: time.Hour, Other: 5 * time.Minute, Max: 24 * time.Hour}

func pool(n int) *keypool.Pool {
	keys := make([]keypool.Key, n)
	for i := range keys {
		keys[i] = keypool.Key{Value: fmt.Sprint("key-", i), Tier: "unknown"}
	}
	return keypool.New(keys, cooldowns, nil)
}

func pick(t *testing.T, p *keypool.Pool, model string) *keypool.Lease {
	t.Helper()
	l, ok := p.Pick(model, keypool.AnyKey, nil)
	require.True(t, ok)
	return l
}

var (
	success = classify.Verdict{Class: classify.Success}
	quota   = classify.Verdict{Class: classify.Rate, Cooldown: classify.QuotaCooldown}
)

// 9000 picks over three keys, each within a tenth of 3000.
func TestPicksAreEven(t *testing.T) {
	t.Parallel()
	p := pool(3)
	counts := map[int]int{}
	for range 9000 {
		l := pick(t, p, "m")
		counts[l.Index]++
		l.Report(success)
	}
	for i := range 3 {
		require.InDelta(t, 3000, counts[i], 300)
	}
}

// Clients name models, so that there may be any number of them: a key remembers the rests for a few, those that end last.
func TestRestsForManyModels(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := pool(1)
		for i := range 1000 {
			l := pick(t, p, fmt.Sprint("model-", i))
			l.Report(classify.Verdict{
				Class: classify.Rate, Cooldown: classify.QuotaCooldown, PerModel: true, Stated: true, Wait: time.Hour + time.Duration(i)*time.Second,
			})
		}
		require.Len(t, p.Snapshot()[0].Models, 64)
		require.False(t, p.Usable("model-999", keypool.AnyKey, nil))
		require.True(t, p.Usable("model-0", keypool.AnyKey, nil))
		require.True(t, p.Usable("another", keypool.AnyKey, nil))
	})
}

// each category has its time; what the provider states replaces it, up to the maximum.
func TestCooldowns(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		v    classify.Verdict
		want time.Duration
	}{
		"forbidden":         {classify.Verdict{Class: classify.Auth, Cooldown: classify.ForbiddenCooldown}, 24 * time.Hour},
		"quota":             {quota, time.Hour},
		"other":             {classify.Verdict{Class: classify.Upstream, Cooldown: classify.OtherCooldown}, 5 * time.Minute},
		"stated":            {classify.Verdict{Class: classify.Rate, Cooldown: classify.QuotaCooldown, Wait: 7 * time.Second, Stated: true}, 7 * time.Second},
		"customary only":    {classify.Verdict{Class: classify.Rate, Cooldown: classify.QuotaCooldown, Wait: 2 * time.Second}, time.Hour},
		"stated beyond max": {classify.Verdict{Class: classify.Rate, Cooldown: classify.QuotaCooldown, Wait: 100 * time.Hour, Stated: true}, 24 * time.Hour},
		"client's fault":    {classify.Verdict{Class: classify.Client}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := pool(1)
				pick(t, p, "m").Report(tc.v)
				require.Equal(t, tc.want, p.Wait("m", keypool.AnyKey))
				if tc.want == 0 {
					return
				}
				<-time.After(tc.want - time.Nanosecond)
				_, ok := p.Pick("m", keypool.AnyKey, nil)
				require.False(t, ok)
				<-time.After(time.Nanosecond)
				pick(t, p, "m").Report(success)
			})
		})
	}
}

// Limits per model let the key work for other models.
func TestRestForOneModel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := pool(1)
		v := quota
		v.PerModel = true
		pick(t, p, "m").Report(v)
		_, ok := p.Pick("m", keypool.AnyKey, nil)
		require.False(t, ok)
		pick(t, p, "other").Report(success)
	})
}

// KEY-03: of two deadlines the later one counts, in both orders.
func TestLaterDeadlineCounts(t *testing.T) {
	t.Parallel()
	for _, waits := range [][]time.Duration{{time.Second, time.Minute}, {time.Minute, time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			p := pool(1)
			a, b := pick(t, p, "m"), pick(t, p, "m")
			for i, l := range []*keypool.Lease{a, b} {
				l.Report(classify.Verdict{Class: classify.Rate, Cooldown: classify.QuotaCooldown, Wait: waits[i], Stated: true})
			}
			require.Equal(t, time.Minute, p.Wait("m", keypool.AnyKey))
		})
	}
}

// A stream that began before the limit was hit does not lift the cooldown when it ends.
func TestLateSuccessDoesNotEndARest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := pool(1)
		early := pick(t, p, "m")
		<-time.After(time.Second)
		pick(t, p, "m").Report(quota)
		<-time.After(time.Second)
		early.Report(success)
		_, ok := p.Pick("m", keypool.AnyKey, nil)
		require.False(t, ok)
	})
}

// Rests are told to other dispatchers once, and theirs are taken in without being told on.
func TestSharing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told []keypool.Cooldown
		p := keypool.New([]keypool.Key{{Value: "a"}}, cooldowns, func(r keypool.Cooldown) { told = append(told, r) })
		other := pool(1)
		pick(t, p, "m").Report(quota)
		require.Equal(t, []keypool.Cooldown{{Class: classify.Rate, Until: time.Now().Add(time.Hour)}}, told)
		other.Observe(told[0])
		require.Equal(t, p.Snapshot()[0].Until, other.Snapshot()[0].Until)
		require.Equal(t, string(classify.Rate), other.Snapshot()[0].Reason)
		require.Equal(t, time.Hour, other.Wait("m", keypool.AnyKey))
		p.Observe(keypool.Cooldown{Index: 0, Until: time.Now().Add(1000 * time.Hour)})
		require.Equal(t, 24*time.Hour, p.Wait("m", keypool.AnyKey))
		require.Len(t, told, 1)
		p.Observe(keypool.Cooldown{Index: 7, Until: time.Now().Add(time.Hour)})
	})
}

// R-172, KEY-06: keys come in while the pool is in use; blanks and duplicates change nothing, and no index ever changes.
func TestAdd(t *testing.T) {
	t.Parallel()
	p := keypool.New(nil, cooldowns, nil)
	_, ok := p.Pick("m", keypool.AnyKey, nil)
	require.False(t, ok)
	require.Zero(t, p.Wait("m", keypool.AnyKey))
	for _, tc := range []struct {
		value string
		index int
		added bool
	}{
		{"k1\n", 0, true},
		{" k2", 1, true},
		{"", -1, false},
		{" \t\n", -1, false},
		{"k1", 0, false},
		{"k2 ", 1, false},
		{"k3", 2, true},
	} {
		index, added := p.Add(tc.value, "")
		require.Equal(t, tc.index, index, tc.value)
		require.Equal(t, tc.added, added, tc.value)
	}
	require.Equal(t, 3, p.Len())
	for i, want := range []string{"k1", "k2", "k3"} {
		l, ok := p.Pick("m", keypool.AnyKey, func(index int) bool { return index != i })
		require.True(t, ok)
		require.Equal(t, want, l.Key)
	}
}

// A key that another dispatcher knows of already may be observed before it is here.
func TestObserveAnUnknownKey(t *testing.T) {
	t.Parallel()
	p := pool(1)
	p.Observe(keypool.Cooldown{Index: 1, Until: time.Now().Add(time.Hour)})
	index, added := p.Add("late", "free")
	require.True(t, added)
	require.Equal(t, 1, index)
	require.True(t, p.Usable("m", keypool.AnyKey, func(index int) bool { return index == 0 }))
}

// a key that is removed is used no more and shown nowhere; calls that have it go on, the others keep their indexes, and it may come again.
func TestRemove(t *testing.T) {
	t.Parallel()
	p := pool(2)
	under := pick(t, p, "m")
	for under.Index != 0 {
		under = pick(t, p, "m")
	}
	p.Remove(0)
	under.Report(quota)
	for range 20 {
		require.Equal(t, 1, pick(t, p, "m").Index)
	}
	require.Equal(t, 1, p.Len())
	require.Len(t, p.Snapshot(), 1)
	require.Equal(t, 1, p.Snapshot()[0].Index)
	require.Len(t, p.Quota(nil), 1)
	require.Len(t, p.Samples(), 1)
	require.Equal(t, map[string]int{"unknown": 1}, p.Count(""))
	require.False(t, p.Has("key-0"))
	p.Observe(keypool.Cooldown{Index: 0, Until: time.Now().Add(time.Hour)})
	p.Remove(1)
	require.False(t, p.Usable("m", keypool.AnyKey, nil))
	require.False(t, p.Suits(keypool.AnyKey))
	_, all := p.Resting("m", keypool.AnyKey)
	require.False(t, all, "there is none")
	index, added := p.Add("key-0", "unknown")
	require.True(t, added)
	require.Equal(t, 2, index)
}
