package keypool_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/keypool"
	"hydrallm/shared/query"
)

// calls are counted by minute and day of UTC, for the key and for each model.
func TestQuota(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // begins at a midnight of UTC
		midnight := time.Now().UTC()
		p := tiered("free")
		<-time.After(30 * time.Second)
		for _, model := range []string{"m", "m", "n"} {
			pick(t, p, model).Report(success)
		}
		limits := func(tier, model string) keypool.Limits {
			require.Equal(t, "free", tier)
			if model == "m" {
				return keypool.Limits{PerMinute: 10, PerDay: 250}
			}
			return keypool.Limits{}
		}
		usage := func(minute, day int, l keypool.Limits, minuteReset time.Duration) query.QuotaUse {
			return query.QuotaUse{
				Minute: query.Window{Used: minute, Limit: l.PerMinute, Reset: midnight.Add(minuteReset)},
				Day:    query.Window{Used: day, Limit: l.PerDay, Reset: midnight.Add(24 * time.Hour)},
			}
		}
		require.Equal(t, []query.KeyQuota{{
			ID: "...", Tier: "free", QuotaUse: usage(3, 3, keypool.Limits{}, time.Minute),
			Models: []query.ModelQuota{
				{Model: "m", QuotaUse: usage(2, 2, limits("free", "m"), time.Minute)},
				{Model: "n", QuotaUse: usage(1, 1, keypool.Limits{}, time.Minute)},
			},
		}}, p.Quota(limits))

		<-time.After(30 * time.Second) // the next minute
		require.Equal(t, usage(0, 3, keypool.Limits{}, 2*time.Minute), p.Quota(nil)[0].QuotaUse)
		hit := time.Now()
		v := quota
		v.PerModel, v.Wait, v.Stated = true, 90*time.Second, true
		pick(t, p, "n").Report(v)
		key := p.Quota(nil)[0]
		require.Equal(t, 1, key.Minute.Used)
		require.Zero(t, key.Cooldown) // it works for other models
		require.Equal(t, hit, key.Last429)
		require.Equal(t, 90, key.Models[1].Cooldown)
		require.Equal(t, hit, key.Models[1].Last429)
		require.Zero(t, key.Models[0].Last429)

		<-time.After(24 * time.Hour)
		key = p.Quota(nil)[0]
		require.Zero(t, key.Day.Used)
		require.Equal(t, midnight.Add(48*time.Hour), key.Day.Reset)
		require.Equal(t, hit, key.Last429)
	})
}

// a cooldown of which another dispatcher told is shown, though the model was not used here.
func TestQuotaOfAModelUsedElsewhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := pool(1)
		p.Observe(keypool.Cooldown{Model: "m", Until: time.Now().Add(1500 * time.Millisecond)})
		models := p.Quota(nil)[0].Models
		require.Len(t, models, 1)
		require.Equal(t, "m", models[0].Model)
		require.Equal(t, 2, models[0].Cooldown)
		<-time.After(2 * time.Second)
		require.Empty(t, p.Quota(nil)[0].Models)
	})
}

// The view knows a bounded number of models: those used last. The key's own counters miss nothing.
func TestQuotaForgetsOldModels(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := pool(1)
		const models = 100
		for i := range models {
			pick(t, p, fmt.Sprintf("m%02d", i)).Report(success)
			pick(t, p, "often").Report(success)
			<-time.After(time.Millisecond)
		}
		key := p.Quota(nil)[0]
		require.Len(t, key.Models, 64)
		require.Equal(t, "m37", key.Models[0].Model)
		require.Equal(t, "often", key.Models[63].Model)
		require.Equal(t, models, key.Models[63].Day.Used)
		require.Equal(t, 2*models, key.Day.Used)
	})
}
