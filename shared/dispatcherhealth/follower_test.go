package dispatcherhealth

import (
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus"
	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/config"
	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

type states = map[string]contract.ProviderState

var assumed = states{"groq": {Keys: map[string]int{contract.TierFree: 1}}}

func free(n int) contract.ProviderState {
	return contract.ProviderState{Keys: map[string]int{contract.TierFree: n}}
}

func opened(s contract.ProviderState) contract.ProviderState {
	s.Open = true
	return s
}

func say(t *testing.T, s contract.DispatcherState) []byte {
	t.Helper()
	data, err := json.Marshal(s)
	require.NoError(t, err)
	return data
}

func (f *Follower) hear(t *testing.T, dispatcher string, s states) {
	t.Helper()
	f.observe(bus.Entry{Key: "dispatcher." + dispatcher, Value: say(t, contract.DispatcherState{ID: dispatcher, Providers: s})})
}

// a provider is usable if any live dispatcher says so.
func TestMerge(t *testing.T) {
	t.Parallel()
	premium := contract.ProviderState{Keys: map[string]int{contract.TierPremium: 2}}
	both := contract.ProviderState{Keys: map[string]int{contract.TierPremium: 2, contract.TierFree: 3}}
	tests := map[string]struct {
		said []states
		want states
	}{
		"nobody speaks":               {nil, assumed},
		"one speaks":                  {[]states{{"groq": free(3)}}, states{"groq": free(3)}},
		"one knows none":              {[]states{{}}, states{}},
		"keys of two":                 {[]states{{"groq": free(3)}, {"groq": premium}}, states{"groq": both}},
		"the larger number":           {[]states{{"groq": free(3)}, {"groq": free(0)}}, states{"groq": free(3)}},
		"each knows another":          {[]states{{"groq": free(3)}, {"gemini": premium}}, states{"groq": free(3), "gemini": premium}},
		"one circuit is open":         {[]states{{"groq": opened(free(3))}, {"groq": free(1)}}, states{"groq": free(1)}},
		"one open, the other no keys": {[]states{{"groq": opened(free(3))}, {"groq": free(0)}}, states{"groq": free(0)}},
		"all circuits are open":       {[]states{{"groq": opened(free(3))}, {"groq": opened(premium)}}, states{"groq": opened(both)}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, order := range [][]int{{0, 1}, {1, 0}} {
				f := newFollower(assumed)
				for _, i := range order {
					if i < len(tt.said) {
						f.hear(t, string(rune('a'+i)), tt.said[i])
					}
				}
				require.Equal(t, tt.want, f.Providers())
			}
		})
	}
}

func TestWhatCantBeReadCountsNot(t *testing.T) {
	t.Parallel()
	f := newFollower(assumed)
	for _, value := range []string{``, `{`, `[]`, `{"id":"a"}`, `{"id":"a","providers":null}`, `{"providers":{"groq":{"keys":[]}}}`} {
		f.hear(t, "a", states{"gemini": free(1)})
		f.observe(bus.Entry{Key: "dispatcher.a", Value: []byte(value)})
		require.Equal(t, assumed, f.Providers(), value)
	}
}

// A dispatcher that says nothing for a while is gone, and with the last one what it said.
func TestSilenceIsAbsence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(assumed)
		f.hear(t, "a", states{"gemini": free(1)})
		<-time.After(10 * time.Second)
		f.hear(t, "b", states{"cerebras": free(1)})
		<-time.After(5*time.Second - 1)
		require.Equal(t, states{"gemini": free(1), "cerebras": free(1)}, f.Providers())
		require.Equal(t, []string{"a", "b"}, f.Dispatchers())
		<-time.After(1)
		require.Equal(t, states{"cerebras": free(1)}, f.Providers())
		require.Equal(t, []string{"b"}, f.Dispatchers())
		require.NotEmpty(t, f.Dispatchers())
		f.hear(t, "a", states{"gemini": free(2)})
		require.Equal(t, states{"gemini": free(2), "cerebras": free(1)}, f.Providers())
		<-time.After(time.Minute)
		require.Equal(t, assumed, f.Providers())
		require.Empty(t, f.reports)
		require.Empty(t, f.Dispatchers())
		f.observe(bus.Entry{Key: "dispatcher.a", Deleted: true})
		require.Equal(t, assumed, f.Providers())
	})
}

func TestAssume(t *testing.T) {
	t.Parallel()
	got := Assume([]config.Provider{
		{ID: "pool", Pooled: true, Keys: []config.Key{{Value: "a", Tier: contract.TierFree}, {Value: "b", Tier: contract.TierPremium}, {Value: "c", Tier: contract.TierFree}}},
		{ID: "no key yet", Pooled: true},
		{ID: "needs none"},
		{ID: "single", Keys: []config.Key{{Value: "d", Tier: contract.TierUnknown}}},
	})
	require.Equal(t, states{
		"pool":       {Keys: map[string]int{contract.TierFree: 2, contract.TierPremium: 1}},
		"no key yet": {Keys: map[string]int{}},
		"needs none": {Keys: map[string]int{contract.TierUnknown: 1}},
		"single":     {Keys: map[string]int{contract.TierUnknown: 1}},
	}, got)
	require.False(t, got["no key yet"].Usable())
	require.True(t, got["needs none"].Usable())
}

func TestFollow(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	bucket, err := b.Bucket(t.Context(), subject.StateBucket)
	require.NoError(t, err)
	put := func(key string, s states) {
		_, err := bucket.Put(t.Context(), key, say(t, contract.DispatcherState{Providers: s}))
		require.NoError(t, err)
	}
	put("dispatcher.before", states{"gemini": free(1)})
	put("circuit.ab", states{"gemini": free(100)})
	f, err := Follow(t.Context(), b, assumed)
	require.NoError(t, err)
	t.Cleanup(f.Stop)
	require.Equal(t, states{"gemini": free(1)}, f.Providers(), "what is there is known at once")
	until := func(want states) {
		await.True(t, func() bool { return equal(want, f.Providers()) })
	}
	put("dispatcher.later", states{"cerebras": free(2)})
	until(states{"gemini": free(1), "cerebras": free(2)})
	put("dispatcher.later", states{"cerebras": opened(free(2))})
	until(states{"gemini": free(1), "cerebras": opened(free(2))})
	require.NoError(t, bucket.Delete(t.Context(), "dispatcher.before", 0))
	until(states{"cerebras": opened(free(2))})
	require.NoError(t, bucket.Delete(t.Context(), "dispatcher.later", 0))
	until(assumed)
}

func equal(a, b states) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	f := newFollower(assumed)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 200 {
				f.hear(t, string(rune('a'+i)), states{"groq": free(n)})
				_ = f.Providers()["groq"].Usable()
				f.refresh()
			}
		})
	}
	wg.Wait()
	require.Equal(t, states{"groq": free(199)}, f.Providers())
}

func TestStopOfNothing(t *testing.T) {
	t.Parallel()
	var f *Follower
	f.Stop()
}

func BenchmarkProviders(b *testing.B) {
	f := newFollower(assumed)
	f.observe(bus.Entry{Key: "dispatcher.a", Value: []byte(`{"providers":{"groq":{"keys":{"free":1}}}}`)})
	b.ReportAllocs()
	for b.Loop() {
		f.Providers()
	}
}
