package execute_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/execute"
	"hydrallm/shared/contract"
)

// slowAnswer is a client that takes its time for each piece, 0 for ever.
type slowAnswer struct {
	answer
	pause time.Duration
}

func (a *slowAnswer) Data(ctx context.Context, p []byte) error {
	var over <-chan time.Time
	if a.pause > 0 {
		over = time.After(a.pause)
	}
	select {
	case <-over:
		return a.answer.Data(ctx, p)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// slowly runs a request for a slow client.
func (w *world) slowly(ctx context.Context, body string, pause time.Duration) (*slowAnswer, execute.Outcome) {
	a := &slowAnswer{pause: pause}
	out := w.exec.Run(ctx, job(body), a)
	return a, out
}

// STR-01, CXL-03: the time that a slow client takes is no silence of the upstream, neither before nor after the finish.
func TestSlowClientIsNoSilence(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": events(delta(`{"content":"x"}`), pause(3*time.Second), delta(`{"content":"y"}`), stop, pause(time.Second), doneEvent)},
		func(w *world) {
			t := w.t
			w.exec.Limits.IdleTimeout = 5 * time.Second
			got, out := w.slowly(t.Context(), streamBody, 10*time.Second)
			require.Equal(t, delta(`{"content":"x"}`)+delta(`{"content":"y"}`)+stop+doneEvent, got.text())
			require.Equal(t, "success", out.Usage.Status)
			require.Equal(t, contract.OutcomeSuccess, got.end.Outcome)
		})
}

// STR-01: signs of life do not extend the wait after the finish.
func TestCommentsAfterTheFinish(t *testing.T) {
	t.Parallel()
	steps := []string{delta(`{"content":"x"}`), stop}
	for range 100 {
		steps = append(steps, pause(time.Second/2), ": ping\n\n")
	}
	bubble(t, map[string]handler{"a": events(steps...)}, func(w *world) {
		t := w.t
		start := time.Now()
		got, out := w.run(t.Context(), streamBody)
		require.Equal(t, 2*time.Second, time.Since(start))
		require.Contains(t, got.text(), "[DONE]")
		require.Equal(t, "success", out.Usage.Status)
	})
}

// when the time of a call is over while the client reads, it gets the event at hand whole, and the error behind it.
func TestTimeIsOverWhileTheClientReads(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": events(delta(`{"content":"x"}`), pause(time.Hour))}, func(w *world) {
		t := w.t
		start := time.Now()
		got, out := w.slowly(t.Context(), streamBody, 301*time.Second)
		require.Nil(t, got.end, "the error event takes another 301 s, which are too many")
		require.Equal(t, delta(`{"content":"x"}`), got.text())
		require.Equal(t, 303*time.Second, time.Since(start))
		require.NotEqual(t, "success", out.Usage.Status)

		start = time.Now()
		got, _ = w.slowly(t.Context(), streamBody, 299*time.Second/100)
		require.Equal(t, contract.OutcomeError, got.end.Outcome)
		require.Regexp(t, `^data: .*\n\ndata: {"error":.*}\n\n$`, got.text())
		require.Less(t, time.Since(start), 303*time.Second)
	})
}

// an answer that can't be sent to its end gets no end: with one it would pass for whole. The upstream is not to blame, and its slot
// is free.
func TestClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"stream": streamBody, "JSON": plainBody} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, map[string]handler{"a": reply("a"), "b": reply("b")}, func(w *world) {
				t := w.t
				w.exec.Limits.RequestDeadline = 10 * time.Second
				start := time.Now()
				got, out := w.slowly(t.Context(), body, 0)
				require.Equal(t, 13*time.Second, time.Since(start))
				require.NotNil(t, got.head)
				require.Nil(t, got.end)
				require.Empty(t, got.text())
				require.Equal(t, "cancelled", out.Usage.Status)
				require.False(t, out.HandBack)
				require.Zero(t, w.called("b"))
				require.Zero(t, w.breakers.Get("a").Snapshot().Failures)
			})
		})
	}
}

// a JSON answer that is there is delivered, though the limit of the request comes meanwhile.
func TestDeadlineWhileJSONIsDelivered(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": reply("a")}, func(w *world) {
		t := w.t
		w.exec.Limits.RequestDeadline = 10 * time.Second
		got, out := w.slowly(t.Context(), plainBody, 12*time.Second)
		require.Contains(t, got.text(), `"content":"a"`)
		require.Equal(t, contract.OutcomeSuccess, got.end.Outcome)
		require.Equal(t, "success", out.Usage.Status)
	})
}

// R-012, SLOT-04: what waits for a client ends as soon as the client has left.
func TestClientLeavesWhileItIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"stream": streamBody, "JSON": plainBody} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, map[string]handler{"a": reply("a")}, func(w *world) {
				t := w.t
				ctx, cancel := context.WithCancelCause(t.Context())
				start := time.Now()
				time.AfterFunc(time.Minute, func() { cancel(classify.ErrClientGone) })
				_, out := w.slowly(ctx, body, 0)
				require.Equal(t, time.Minute, time.Since(start))
				require.Equal(t, "cancelled", out.Usage.Status)
			})
		})
	}
}

// flushed is a client that gets what is flushed, and when.
type flushed struct {
	answer
	at []time.Time
}

func (f *flushed) Flush() error {
	f.at = append(f.at, time.Now())
	return f.answer.Flush()
}

// CXL-05: what came is flushed before the upstream is waited for, also when an event came with it that is dropped.
func TestNothingIsHeldWhileTheUpstreamIsAwaited(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": events(delta(`{"content":"x"}`)+"data: {}\n\n", pause(time.Minute), stop, doneEvent)}, func(w *world) {
		t := w.t
		var got flushed
		start := time.Now()
		w.exec.Run(t.Context(), job(streamBody), &got)
		require.Equal(t, start, got.at[0])
	})
}
