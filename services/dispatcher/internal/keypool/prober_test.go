package keypool_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/keypool"
	"hydrallm/shared/query"
)

// probed is a provider to probe. Its answers are by index; it says that all is well where there is none.
type probed struct {
	mu      sync.Mutex
	verdict map[int]classify.Verdict
	tier    string
	asked   []string
}

func (p *probed) probe(_ context.Context, provider string, index int, key string) (classify.Verdict, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, fmt.Sprint(provider, "/", index, "/", key))
	if v, ok := p.verdict[index]; ok {
		return v, p.tier
	}
	return success, p.tier
}

// seen gives the probes so far.
func (p *probed) seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

func prober(probe keypool.Probe, p *keypool.Pool) *keypool.Prober {
	return keypool.NewProber(map[string]*keypool.Pool{"p": p}, probe, time.Minute, slog.New(slog.DiscardHandler))
}

func round(t *testing.T, h *keypool.Prober, force bool) query.Probed {
	t.Helper()
	r, err := h.Round(t.Context(), force)
	require.NoError(t, err)
	return r
}

// fail lets a key cool down for every model.
func fail(t *testing.T, p *keypool.Pool, index int, v classify.Verdict) {
	t.Helper()
	l, ok := p.Pick("m", keypool.AnyKey, func(i int) bool { return i != index })
	require.True(t, ok)
	l.Report(v)
}

// R-164, B-18: in each minute only those keys are probed that failed and whose cooldown is over. R-165: a good probe makes them active.
func TestHealing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var provider probed
		provider.tier = "premium"
		p := pool(3)
		h := prober(provider.probe, p)
		require.NoError(t, h.Start(t.Context()))
		defer func() { require.NoError(t, h.Stop(t.Context())) }()
		passes := func(d time.Duration) {
			<-time.After(d)
			synctest.Wait()
		}
		passes(time.Hour)
		require.Empty(t, provider.seen()) // nothing failed

		fail(t, p, 1, classify.Verdict{Class: classify.Upstream, Cooldown: classify.OtherCooldown, Wait: 90 * time.Second, Stated: true})
		fail(t, p, 2, quota)
		passes(time.Minute + time.Second)
		require.Empty(t, provider.seen())
		passes(time.Minute)
		require.Equal(t, []string{"p/1/key-1"}, provider.seen())
		s := p.Snapshot()
		require.Equal(t, query.KeyActive, s[1].State)
		require.Equal(t, "premium", s[1].Tier)
		require.Equal(t, time.Second, time.Since(s[1].LastProbed))
		require.Equal(t, query.KeyFailed, s[2].State)
		require.Equal(t, "unknown", s[2].Tier)
		require.Zero(t, s[2].LastProbed)

		passes(2 * time.Hour)
		require.Equal(t, []string{"p/1/key-1", "p/2/key-2"}, provider.seen())
	})
}

// R-165, B-05: a verdict about the key is a failure with a cooldown of its own. Anything else leaves the key to the next call, also on demand, but
// never ends a cooldown early.
func TestBadProbes(t *testing.T) {
	t.Parallel()
	of := func(status int, body string) classify.Verdict {
		return classify.Of(classify.Answer{Status: status, Body: []byte(body)})
	}
	for name, tc := range map[string]struct {
		v    classify.Verdict
		want time.Duration // 0 = the key is active
	}{
		"wrong key":          {classify.Verdict{Class: classify.Auth, Cooldown: classify.ForbiddenCooldown}, 24 * time.Hour},
		"limit":              {quota, time.Hour},
		"limit of a model":   {classify.Verdict{Class: classify.Rate, Cooldown: classify.QuotaCooldown, PerModel: true, Wait: time.Minute, Stated: true}, time.Minute},
		"closed account":     {of(403, `{"error":{"message":"Your project has been denied access","status":"PERMISSION_DENIED"}}`), 24 * time.Hour},
		"no scope for lists": {of(403, `{"error":{"message":"You have insufficient permissions for this operation. Missing scopes: api.model.read"}}`), 0},
		"no connection":      {classify.Transport(context.Background(), context.DeadlineExceeded), 0},
		"error with 200":     {of(200, `{"error":{"message":"no"}}`), 0},
		"page with 200":      {of(200, `<html>`), 0},
		"no such path":       {of(404, `{"detail":"Not Found"}`), 0},
		"no such method":     {of(405, ``), 0},
		"not implemented":    {of(501, ``), 0},
		"bad request":        {of(400, `{}`), 0},
		"overload, innocent": {classify.Verdict{Class: classify.Upstream, Wait: 30 * time.Second, Stated: true}, 0},
		"cancelled":          {classify.Verdict{Class: classify.Cancelled}, 0},
		"nothing":            {classify.Verdict{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				provider := probed{verdict: map[int]classify.Verdict{0: tc.v}, tier: "free"}
				var told []keypool.Cooldown
				p := keypool.New([]keypool.Key{{Value: "key", Tier: "premium"}}, cooldowns, func(r keypool.Cooldown) { told = append(told, r) })
				fail(t, p, 0, quota)
				if tc.want == 0 {
					round(t, prober(provider.probe, p), true)
					require.Equal(t, time.Hour, p.Wait("any", keypool.AnyKey), "nothing is known yet")
				}
				<-time.After(time.Hour)
				if tc.want == 0 {
					require.Equal(t, query.Probed{Probed: 1, Recovered: 1}, round(t, prober(provider.probe, p), false))
					require.Equal(t, query.KeyActive, p.Snapshot()[0].State)
					require.Len(t, told, 1)
					return
				}
				require.Equal(t, query.Probed{Probed: 1, Failed: 1}, round(t, prober(provider.probe, p), false))
				require.Equal(t, tc.want, p.Wait("any", keypool.AnyKey))
				s := p.Snapshot()[0]
				require.Equal(t, query.KeyFailed, s.State)
				require.Equal(t, string(tc.v.Class), s.Reason)
				require.Equal(t, "premium", s.Tier)
				require.Equal(t, time.Now(), s.LastProbed)
				require.Len(t, told, 2)
				require.Equal(t, keypool.Cooldown{Class: tc.v.Class, Until: s.Until}, told[1])
			})
		})
	}
}

// A cooldown for one model is none of the prober's business: no probe can tell when it is over.
func TestModelsAreNotProbed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var provider probed
		p := pool(1)
		perModel := quota
		perModel.PerModel = true
		fail(t, p, 0, perModel)
		require.Zero(t, round(t, prober(provider.probe, p), true))
		require.Empty(t, provider.seen())
		require.Equal(t, time.Hour, p.Wait("m", keypool.AnyKey))
	})
}

// R-167, C-36: an asked round leaves keys alone that cool down, unless it is forced, which is logged.
func TestForcedRound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var provider probed
		var log strings.Builder
		p := pool(2)
		h := keypool.NewProber(map[string]*keypool.Pool{"p": p}, provider.probe, time.Minute, slog.New(slog.NewTextHandler(&log, nil)))
		fail(t, p, 0, quota)
		require.Equal(t, query.Probed{Resting: 1}, round(t, h, false))
		require.Empty(t, log.String())
		require.Equal(t, query.Probed{Probed: 1, Recovered: 1}, round(t, h, true))
		require.Contains(t, log.String(), "although they cool down")
		require.NotContains(t, log.String(), "key-0")
		require.Equal(t, []string{"p/0/key-0"}, provider.seen())
		require.Equal(t, query.KeyActive, p.Snapshot()[0].State)

		fail(t, p, 1, classify.Verdict{Class: classify.Auth, Cooldown: classify.ForbiddenCooldown})
		provider.verdict = map[int]classify.Verdict{1: quota}
		require.Equal(t, query.Probed{Probed: 1, Failed: 1}, round(t, h, true))
		require.Equal(t, 86400, p.Snapshot()[1].Remaining) // a bad probe never shortens a cooldown
		require.Equal(t, string(classify.Auth), p.Snapshot()[1].Reason)
	})
}

// there is one round at a time.
func TestOneRoundAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked, answer := make(chan struct{}), make(chan struct{})
		p := pool(1)
		h := prober(func(context.Context, string, int, string) (classify.Verdict, string) {
			asked <- struct{}{}
			<-answer
			return success, ""
		}, p)
		require.NoError(t, h.Start(t.Context()))
		require.ErrorIs(t, h.Start(t.Context()), keypool.ErrRunning)
		fail(t, p, 0, classify.Verdict{Class: classify.Rate, Cooldown: classify.QuotaCooldown, Wait: time.Second, Stated: true})
		<-asked // the prober's own round
		_, err := h.Round(t.Context(), false)
		require.ErrorIs(t, err, keypool.ErrRunning)
		_, err = h.Round(t.Context(), true)
		require.ErrorIs(t, err, keypool.ErrRunning)
		<-time.After(10 * time.Minute) // no other round of its own either
		close(answer)
		synctest.Wait()
		require.Zero(t, round(t, h, true))
		require.NoError(t, h.Stop(t.Context()))
	})
}

// The second of several rounds at once fails, for any number of callers.
func TestRoundsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var under, most int
		var mu sync.Mutex
		p := pool(20)
		for i := range 20 {
			fail(t, p, i, quota)
		}
		h := prober(func(context.Context, string, int, string) (classify.Verdict, string) {
			mu.Lock()
			under++
			most = max(most, under)
			mu.Unlock()
			<-time.After(time.Second)
			mu.Lock()
			under--
			mu.Unlock()
			return quota, ""
		}, p)
		var rounds, refused int
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				_, err := h.Round(t.Context(), true)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					rounds++
				} else {
					refused++
				}
			})
		}
		wg.Wait()
		require.Equal(t, 1, rounds)
		require.Equal(t, 49, refused)
		require.Equal(t, 4, most) // probes at a time
	})
}

// A probe without an answer ends after 20 seconds, and is a failure.
func TestSlowProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := pool(1)
		h := prober(func(ctx context.Context, _ string, _ int, _ string) (classify.Verdict, string) {
			<-ctx.Done()
			return classify.Transport(ctx, ctx.Err()), ""
		}, p)
		fail(t, p, 0, quota)
		<-time.After(time.Hour)
		began := time.Now()
		require.Equal(t, query.Probed{Probed: 1, Recovered: 1}, round(t, h, false))
		require.Equal(t, 20*time.Second, time.Since(began))
		require.Zero(t, p.Wait("m", keypool.AnyKey), "it says nothing of the key")
	})
}

// Stopping cuts probes short, also those of an asked round; what they say then changes nothing.
func TestStopTheHealer(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, h *keypool.Prober, caller context.CancelFunc){
		"stopped": func(t *testing.T, h *keypool.Prober, _ context.CancelFunc) {
			t.Helper()
			require.NoError(t, h.Stop(t.Context()))
		},
		"caller has left": func(_ *testing.T, _ *keypool.Prober, leave context.CancelFunc) { leave() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := pool(9)
				asked := make(chan struct{}, 9)
				h := prober(func(ctx context.Context, _ string, _ int, _ string) (classify.Verdict, string) {
					asked <- struct{}{}
					<-ctx.Done()
					return classify.Transport(ctx, ctx.Err()), ""
				}, p)
				for i := range 9 {
					fail(t, p, i, quota)
				}
				before := p.Snapshot()
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				done := make(chan error)
				go func() {
					_, err := h.Round(ctx, true)
					done <- err
				}()
				<-asked
				end(t, h, leave)
				require.ErrorIs(t, <-done, context.Canceled)
				require.Equal(t, before, p.Snapshot())
				require.Less(t, len(asked), 4)

				require.NoError(t, h.Stop(t.Context()))
				require.NoError(t, h.Stop(t.Context()))
				_, err := h.Round(t.Context(), false)
				require.ErrorIs(t, err, keypool.ErrStopped)
				require.ErrorIs(t, h.Start(t.Context()), keypool.ErrStopped)
			})
		})
	}
}

// A probe ends the failure that it was made for, and none that came while it was under way.
func TestFailureDuringAProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := pool(1)
		h := prober(func(context.Context, string, int, string) (classify.Verdict, string) {
			fail(t, p, 0, quota)
			return success, ""
		}, p)
		fail(t, p, 0, quota)
		<-time.After(time.Hour)
		require.Equal(t, query.Probed{Probed: 1, Failed: 1}, round(t, h, false))
		require.Equal(t, time.Hour, p.Wait("m", keypool.AnyKey))
	})
}

// keys that come later are healed too, also in a pool that began empty.
func TestAddedKeysAreProbed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var provider probed
		p := keypool.New(nil, cooldowns, nil)
		h := prober(provider.probe, p)
		require.Zero(t, round(t, h, false))
		p.Add("late", "")
		fail(t, p, 0, quota)
		<-time.After(time.Hour)
		require.Equal(t, query.Probed{Probed: 1, Recovered: 1}, round(t, h, false))
		require.Equal(t, []string{"p/0/late"}, provider.seen())
	})
}
