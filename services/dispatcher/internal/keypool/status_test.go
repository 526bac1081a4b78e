package keypool_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/keypool"
	"hydrallm/shared/query"
)

// R-163, KEY-01: a failed key may be used again when its cooldown is over, counts as failed until a success, and then is active.
func TestFailedUntilASuccess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := pool(1)
		require.Equal(t, query.KeyActive, p.Snapshot()[0].State)
		failed := time.Now()
		pick(t, p, "m").Report(quota)
		s := p.Snapshot()[0]
		require.Equal(t, query.KeyFailed, s.State)
		require.False(t, s.Active)
		require.Equal(t, 3600, s.Remaining)

		<-time.After(time.Hour)
		s = p.Snapshot()[0]
		require.Equal(t, query.KeyFailed, s.State)
		require.True(t, s.Active)
		require.Zero(t, s.Remaining)
		require.Equal(t, failed, s.FailedAt)
		require.Equal(t, failed.Add(time.Hour), s.Until)

		l := pick(t, p, "m")
		<-time.After(time.Second)
		l.Report(success)
		last := &query.CallError{At: failed, Class: "rate_limit", Model: "m"} // it stays
		require.Equal(t, query.KeyStatus{ID: "...", Tier: "unknown", State: query.KeyActive, Active: true, Calls: 2, Failures: 1, LastError: last}, p.Snapshot()[0])
	})
}

// a failure of a key that rests for longer already changes nothing.
func TestFailureOfARestingKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		told := 0
		p := keypool.New([]keypool.Key{{Value: "key"}}, cooldowns, func(keypool.Cooldown) { told++ })
		first, second := pick(t, p, "m"), pick(t, p, "m")
		first.Report(classify.Verdict{Class: classify.Auth, Cooldown: classify.ForbiddenCooldown})
		before := p.Snapshot()[0]
		<-time.After(time.Minute)
		second.Report(quota)
		after := p.Snapshot()[0]
		before.Failures, before.Remaining = 2, 86400-60
		before.LastError = &query.CallError{At: time.Now(), Class: "rate_limit", Model: "m"}
		require.Equal(t, before, after)
		require.Equal(t, 1, told)
	})
}

// the cooldowns for single models are shown with why and until when.
func TestCooldownsOfModels(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := keypool.New([]keypool.Key{{Value: "key"}}, cooldowns, nil)
		for _, model := range []string{"n", "m"} {
			v := quota
			v.PerModel, v.Stated, v.Wait = true, true, 90*time.Second
			pick(t, p, model).Report(v)
		}
		until := time.Now().Add(90 * time.Second)
		<-time.After(time.Minute)
		s := p.Snapshot()[0]
		require.True(t, s.Active)
		require.Zero(t, s.Remaining)
		require.Equal(t, []string{"m", "n"}, s.Models)
		require.Equal(t, []query.ModelCooldown{
			{Model: "m", Reason: "rate_limit", Until: until, Remaining: 30}, {Model: "n", Reason: "rate_limit", Until: until, Remaining: 30},
		}, s.Cooldowns)
		<-time.After(time.Minute)
		s = p.Snapshot()[0]
		require.Empty(t, s.Cooldowns)
		require.Equal(t, "m", s.LastError.Model)
	})
}

// what is known of a failure is its class, never a text of the provider.
func TestMetadata(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		class            classify.Class
		cooldown         classify.Cooldown
		quota, forbidden bool
	}{
		{classify.Rate, classify.QuotaCooldown, true, false},
		{classify.Quota, classify.QuotaCooldown, true, false},
		{classify.Payment, classify.QuotaCooldown, true, false},
		{classify.Auth, classify.ForbiddenCooldown, false, true},
		{classify.Forbidden, classify.ForbiddenCooldown, false, true},
		{classify.Upstream, classify.OtherCooldown, false, false},
	} {
		p := keypool.New([]keypool.Key{{Value: "secret-key-of-some-length"}}, cooldowns, nil)
		pick(t, p, "m").Report(classify.Verdict{Class: tc.class, Cooldown: tc.cooldown, Reason: "secret reason", Message: "secret message"})
		s := p.Snapshot()[0]
		require.Equal(t, string(tc.class), s.Reason)
		require.Equal(t, tc.quota, s.QuotaLimit)
		require.Equal(t, tc.forbidden, s.Forbidden)
		text, err := json.Marshal([]any{p.Snapshot(), p.Quota(nil)})
		require.NoError(t, err)
		require.NotContains(t, string(text), "secret ")
		require.NotContains(t, string(text), "secret-key")
		require.Contains(t, string(text), "secret-k...")
	}
}

// KEY-05, R-103: a failure of one model, or of the client, is no failure of the key.
func TestNoFailureOfTheKey(t *testing.T) {
	t.Parallel()
	p := pool(1)
	pick(t, p, "x").Report(classify.Verdict{Class: classify.Upstream, Cooldown: classify.OtherCooldown, PerModel: true})
	pick(t, p, "y").Report(classify.Verdict{Class: classify.Client})
	s := p.Snapshot()[0]
	require.Equal(t, query.KeyActive, s.State)
	require.Equal(t, []string{"x"}, s.Models)
	require.Empty(t, s.Reason)
	pick(t, p, "y").Report(success)
}
