package keypool_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/keypool"
)

// a mark names the same key in every process, and nothing else; what is on disk depends on it.
func TestMarks(t *testing.T) {
	t.Parallel()
	require.Equal(t, "32d5d062", keypool.Mark("key-0"), "kept rests would be forgotten")
	seen := map[string]bool{}
	for _, secrets := range [][]string{{"key-0"}, {"key-1"}, {"key-0", ""}, {"key", "-0"}, {""}, nil} {
		m := keypool.Mark(secrets...)
		require.Regexp(t, "^[0-9a-f]{8}$", m)
		seen[m] = true
	}
	require.Len(t, seen, 5, "nothing and an empty secret are alike")

	p := pool(3)
	index, _ := p.Add("later", "")
	require.Equal(t, index, p.Find(keypool.Mark("later")))
	require.Equal(t, keypool.Mark("key-2"), p.MarkOf(2))
	require.Equal(t, -1, p.Find(keypool.Mark("key-3")))
	require.Equal(t, -1, p.Find(""))
}

// begins and ends of rests are told, the latter only by what ended them, and how a rest is now can be read.
func TestEndsOfRestsAreTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told []keypool.Cooldown
		p := keypool.New([]keypool.Key{{Value: "a"}}, cooldowns, func(c keypool.Cooldown) { told = append(told, c) })
		early := pick(t, p, "m")
		pick(t, p, "m").Report(success)
		require.Empty(t, told, "there was nothing to end")

		perModel := quota
		perModel.PerModel = true
		pick(t, p, "m").Report(perModel)
		until := time.Now().Add(cooldowns.Quota)
		rest := keypool.Cooldown{Model: "m", Class: classify.Rate, Until: until}
		c, ok := p.Cooling(0, "m")
		require.True(t, ok)
		require.Equal(t, rest, c)
		_, ok = p.Cooling(0, "")
		require.False(t, ok)
		early.Report(success) // it began before
		require.Equal(t, []keypool.Cooldown{rest}, told)

		<-time.After(cooldowns.Quota)
		_, ok = p.Cooling(0, "m")
		require.False(t, ok)
		pick(t, p, "m").Report(quota)
		<-time.After(cooldowns.Quota)
		told = nil
		pick(t, p, "m").Report(success)
		require.Equal(t, []keypool.Cooldown{{}, {Model: "m"}}, told)
	})
}
