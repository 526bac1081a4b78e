package execute_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/execute"
)

// what last came of calling a channel is kept. Failures that are the request's own say nothing about it.
func TestHealth(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": inTurn(status(500, `{}`), reply("a"), status(400, `{"error":{"message":"no"}}`))}, func(w *world) {
		health := w.exec.Health
		require.Equal(w.t, execute.Heard{}, health.Last("a"))
		begun := time.Now()
		w.run(w.t.Context(), plainBody)
		want := execute.Heard{Failure: execute.Failure{At: begun, Class: classify.Upstream, Reason: health.Last("a").Failure.Reason, Status: 500, Model: "real-a"}}
		require.Equal(w.t, want, health.Last("a"))
		<-time.After(time.Minute)
		want.Success = time.Now()
		w.run(w.t.Context(), plainBody)
		require.Equal(w.t, want, health.Last("a"))
		<-time.After(time.Minute)
		w.run(w.t.Context(), plainBody)
		require.Equal(w.t, want, health.Last("a"))
		require.Zero(w.t, health.Unreachable("pa"))
	})
	bubble(t, map[string]handler{"a": reply("a")}, func(w *world) {
		begun := time.Now()
		w.run(w.t.Context(), plainBody)
		<-time.After(time.Minute)
		w.run(w.t.Context(), plainBody)
		require.Equal(w.t, begun, w.exec.Health.Unreachable("pa"))
		w.exec.Health.Reached("pa", true)
		require.Zero(w.t, w.exec.Health.Unreachable("pa"))
	}, away("a"))
}

// the problem of a link is what a request would meet.
func TestProblem(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": reply("a")}, func(w *world) {
		l := w.plan.chain.Links[0]
		require.Empty(w.t, w.exec.Problem(l))
		for range 2 {
			key, ok := l.Channel.Pool.Pick("real-a", 0, nil)
			require.True(w.t, ok)
			key.Report(classify.Verdict{Class: classify.Rate, Cooldown: classify.QuotaCooldown, PerModel: true, Stated: true, Wait: 45 * time.Second})
		}
		require.Equal(w.t, "both keys rate limited, 45 s", w.exec.Problem(l))
		other := l
		other.Model = "other"
		require.Empty(w.t, w.exec.Problem(other))
		for range 3 {
			p, ok := w.breakers.Get("a").Acquire()
			require.True(w.t, ok)
			p.Failure(0)
		}
		require.Equal(w.t, "circuit open until 2000-01-01T00:01:00Z", w.exec.Problem(other))
		other.LastResort = true
		require.Empty(w.t, w.exec.Problem(other))
	}, pooled(2))
}
