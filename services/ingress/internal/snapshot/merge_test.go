package snapshot_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/ingress/internal/snapshot"
	"hydrallm/shared/query"
)

// what one dispatcher can use is usable, calls are added, and of what went wrong the newest is shown, whoever answers first.
func TestOneStatusOfSeveral(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 1, 12, 0, 30, 0, time.UTC)
	minute := func(used int, reset time.Time) query.QuotaUse {
		return query.QuotaUse{Minute: query.Window{Used: used, Reset: reset}, Day: query.Window{Used: used, Reset: at.Add(time.Hour)}}
	}
	replies := func() []query.Reply[query.Status] {
		return []query.Reply[query.Status]{
			{Instance: "a", Answer: query.Status{
				Status:    query.Online,
				Providers: map[string]query.ProviderStatus{"p": {Problem: "no connection", TotalKeys: 2, ActiveKeys: 1, UsableKeys: 1, FailedKeys: 1}, "only-a": {Healthy: true}},
				Agents:    map[string]query.AgentStatus{"opencode": {BaseURL: "http://x"}},
				KeyStatistics: map[string]query.KeyStatistics{"p": {
					Total: 2, Active: 1, Failed: 1, Usage: map[int]int64{0: 3, 1: 1},
					Keys:  []query.KeyStatus{{Index: 0, State: query.KeyFailed, FailedAt: at, Calls: 3, Failures: 1, Reason: "quota"}, {Index: 1, State: query.KeyActive, Active: true, Calls: 1}},
					Quota: []query.KeyQuota{{Index: 0, QuotaUse: minute(3, at.Add(time.Minute)), Models: []query.ModelQuota{{Model: "m", QuotaUse: minute(3, at.Add(time.Minute))}}}},
				}},
				Circuits: map[string]query.Circuit{"u": {State: "closed", Failures: 2}, "v": {State: "open", Remaining: time.Second}},
				Channels: map[string]query.Channel{"u": {Problem: "open", LastSuccess: at, LastError: &query.CallError{At: at, Class: "older"}}},
				Slots:    []query.Load{{ID: "u", Active: 1, Limit: 3}},
				Queues:   []query.Queue{{Model: "m", Waiting: 2, Length: 9}, {Model: "only-a"}},
				Chains:   map[string][]string{"m": {"u"}},
			}},
			{Instance: "gone", Err: errors.New("The dispatcher service does not answer")},
			{Instance: "b", Answer: query.Status{
				Status:    query.Online,
				Providers: map[string]query.ProviderStatus{"p": {Healthy: true, TotalKeys: 2, ActiveKeys: 2, UsableKeys: 2}},
				Agents:    map[string]query.AgentStatus{"opencode": {Healthy: true, BaseURL: "http://x"}},
				KeyStatistics: map[string]query.KeyStatistics{"p": {
					Total: 2, Active: 2, Usage: map[int]int64{0: 1},
					Keys:  []query.KeyStatus{{Index: 0, State: query.KeyActive, Active: true, Calls: 1, Models: []string{"m"}, Cooldowns: []query.ModelCooldown{{Model: "m"}}}, {Index: 1, State: query.KeyActive, Active: true}},
					Quota: []query.KeyQuota{{Index: 0, QuotaUse: minute(1, at.Add(time.Minute)), Models: []query.ModelQuota{{Model: "n", QuotaUse: minute(1, at)}}}},
				}},
				Circuits: map[string]query.Circuit{"u": {State: "open", Failures: 1, Remaining: time.Minute}, "v": {State: "half-open"}},
				Channels: map[string]query.Channel{"u": {Usable: true, LastError: &query.CallError{At: at.Add(time.Second), Class: "newer"}}},
				Slots:    []query.Load{{ID: "u", Active: 2, Limit: 3}, {ID: "v", Limit: 1}},
				Queues:   []query.Queue{{Model: "m", Waiting: 3, Length: 9}},
				Chains:   map[string][]string{"m": {"u"}},
			}},
		}
	}
	forward, backward := replies(), replies()
	backward[0], backward[2] = backward[2], backward[0]
	for name, all := range map[string][]query.Reply[query.Status]{"in order": forward, "the other way round": backward} {
		s, ok := snapshot.Of(all)
		require.True(t, ok, name)
		require.Equal(t, query.ProviderStatus{Healthy: true, TotalKeys: 2, ActiveKeys: 1, UsableKeys: 1, FailedKeys: 1}, s.Providers["p"], name)
		require.True(t, s.Providers["only-a"].Healthy, name)
		require.True(t, s.Agents["opencode"].Healthy, name)
		keys := s.KeyStatistics["p"]
		require.Equal(t, []int{2, 1, 1}, []int{keys.Total, keys.Active, keys.Failed}, name)
		require.Equal(t, map[int]int64{0: 4, 1: 1}, keys.Usage, name)
		require.Equal(t, query.KeyStatus{
			Index: 0, State: query.KeyFailed, FailedAt: at, Calls: 4, Failures: 1, Reason: "quota", Models: []string{"m"}, Cooldowns: []query.ModelCooldown{{Model: "m"}},
		}, keys.Keys[0], name)
		require.Equal(t, 4, keys.Quota[0].Minute.Used, name)
		require.Len(t, keys.Quota[0].Models, 2, name)
		require.Equal(t, query.Circuit{State: "open", Failures: 2, Remaining: time.Minute}, s.Circuits["u"], name)
		require.Equal(t, "open", s.Circuits["v"].State, name)
		require.Equal(t, query.Channel{Usable: true, LastSuccess: at, LastError: &query.CallError{At: at.Add(time.Second), Class: "newer"}}, s.Channels["u"], name)
		require.ElementsMatch(t, []query.Load{{ID: "u", Active: 3, Limit: 3}, {ID: "v", Limit: 1}}, s.Slots, name)
		require.ElementsMatch(t, []query.Queue{{Model: "m", Waiting: 3, Length: 9}, {Model: "only-a"}}, s.Queues, name)
		require.Contains(t, s.Dispatchers, snapshot.Dispatcher{ID: "gone", Error: "The dispatcher service does not answer"}, name)
		require.Len(t, s.Dispatchers, 3, name)
	}
	_, ok := snapshot.Of(replies()[1:2])
	require.False(t, ok)
}
