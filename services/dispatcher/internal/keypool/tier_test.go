package keypool_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/keypool"
)

func tiered(tiers ...string) *keypool.Pool {
	p := keypool.New(nil, cooldowns, nil)
	for i, tier := range tiers {
		p.Add(string(rune('a'+i)), tier)
	}
	return p
}

// B-22: premium models get a premium key, else one that is not known to be free; other models get any.
func TestTiers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		tiers []string
		want  keypool.Want
		get   []int // all keys that may be chosen
	}{
		"any key for others":         {[]string{"free", "premium", "unknown"}, keypool.AnyKey, []int{0, 1, 2}},
		"premium first":              {[]string{"free", "premium", "unknown", "premium"}, keypool.PremiumKey, []int{1, 3}},
		"premium first, whatever at": {[]string{"premium", "unknown"}, keypool.PremiumKey, []int{0}},
		"then what is not known":     {[]string{"free", "unknown", "standard", "experimental", ""}, keypool.PremiumKey, []int{1, 2, 3, 4}},
		"never a free one":           {[]string{"free", "free"}, keypool.PremiumKey, nil},
		"no key":                     {nil, keypool.PremiumKey, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := tiered(tc.tiers...)
			require.Equal(t, tc.get != nil, p.Usable("m", tc.want, nil))
			require.Zero(t, p.Wait("m", tc.want))
			const rounds = 3000
			counts := map[int]int{}
			for range rounds {
				if l, ok := p.Pick("m", tc.want, nil); ok {
					counts[l.Index]++
				}
			}
			require.Len(t, counts, len(tc.get))
			for _, i := range tc.get { // with the same chance
				even := rounds / len(tc.get)
				require.InDelta(t, even, counts[i], float64(even)/5)
			}
		})
	}
}

// a premium key that rests or was tried makes way for those of which it is not known, and the wait is for keys that suit.
func TestTierWhileKeysRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := tiered("free", "premium", "unknown")
		triedPremium := func(index int) bool { return index == 1 }
		l, ok := p.Pick("m", keypool.PremiumKey, triedPremium)
		require.True(t, ok)
		require.Equal(t, 2, l.Index)
		l.Report(classify.Verdict{Class: classify.Auth, Cooldown: classify.ForbiddenCooldown})
		require.False(t, p.Usable("m", keypool.PremiumKey, triedPremium))

		l, ok = p.Pick("m", keypool.PremiumKey, nil)
		require.True(t, ok)
		require.Equal(t, 1, l.Index)
		l.Report(quota)
		_, ok = p.Pick("m", keypool.PremiumKey, nil)
		require.False(t, ok)
		require.Equal(t, time.Hour, p.Wait("m", keypool.PremiumKey))
		require.Zero(t, p.Wait("m", keypool.AnyKey))
	})
}

// a key that is known to be free is none for a premium model, and resting changes nothing about that.
func TestSuits(t *testing.T) {
	t.Parallel()
	require.False(t, tiered().Suits(keypool.AnyKey))
	require.True(t, tiered("free").Suits(keypool.AnyKey))
	require.False(t, tiered("free", "free").Suits(keypool.PremiumKey))
	require.True(t, tiered("free", "").Suits(keypool.PremiumKey))
	p := tiered("free", "premium")
	l, _ := p.Pick("m", keypool.PremiumKey, nil)
	l.Report(quota)
	require.True(t, p.Suits(keypool.PremiumKey))
}

// counting takes nothing.
func TestCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := tiered("free", "free", "premium", "")
		require.Equal(t, map[string]int{"free": 2, "premium": 1, "unknown": 1}, p.Count(""))
		perModel := quota
		perModel.PerModel = true
		l, _ := p.Pick("m", keypool.AnyKey, func(index int) bool { return index != 0 })
		l.Report(perModel)
		l, _ = p.Pick("m", keypool.AnyKey, func(index int) bool { return index != 2 })
		l.Report(quota)
		before := p.Snapshot()
		require.Equal(t, map[string]int{"free": 1, "unknown": 1}, p.Count("m"))
		require.Equal(t, map[string]int{"free": 2, "unknown": 1}, p.Count("other"))
		require.Equal(t, map[string]int{"free": 2, "unknown": 1}, p.Count(""))
		require.Equal(t, before, p.Snapshot())
		<-time.After(time.Hour)
		require.Equal(t, map[string]int{"free": 2, "premium": 1, "unknown": 1}, p.Count("m"))
		require.Empty(t, keypool.New(nil, cooldowns, nil).Count("m"))
	})
}
