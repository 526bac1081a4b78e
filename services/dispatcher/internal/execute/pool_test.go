package execute_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/execute"
	"hydrallm/services/dispatcher/internal/keypool"
)

// pooled gives channel a a pool of n keys: key-0, key-1, ...
func pooled(n int) func(*execute.Channel) {
	return func(c *execute.Channel) {
		if c.ID != "a" {
			return
		}
		var keys []keypool.Key
		for i := range n {
			keys = append(keys, keypool.Key{Value: "key-" + string(rune('0'+i))})
		}
		c.Pool = keypool.New(keys, keypool.Cooldowns{Forbidden: 24 * time.Hour, Quota: time.Hour, Other: 5 * time.Minute, Max: 24 * time.Hour}, nil)
	}
}

// byKey answers as the key of the call says.
func byKey(answers map[string]handler) handler {
	return func(w http.ResponseWriter, r *http.Request, n int) {
		answers[r.Header.Get("Authorization")[len("Bearer "):]](w, r, n)
	}
}

// a refused key rests, the next one answers, and the client notices nothing.
func TestNextKeyAnswers(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": byKey(map[string]handler{"key-0": status(429, "{}"), "key-1": reply("a")}), "b": reply("b")},
		func(w *world) {
			t := w.t
			for range 20 {
				got, _ := w.run(t.Context(), plainBody)
				require.Contains(t, got.text(), `"content":"a"`)
			}
			require.LessOrEqual(t, w.called("a"), 21)
			require.Zero(t, w.called("b"))
		}, pooled(2))
}

// three keys of one channel are one hop; then the next channel has its turn.
func TestPoolIsOneHop(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": status(500, "{}"), "b": status(500, "{}"), "c": reply("c")}, func(w *world) {
		t := w.t
		got, out := w.run(t.Context(), plainBody)
		require.Contains(t, got.text(), `"content":"c"`)
		require.Equal(t, 3, w.called("a"))
		require.Len(t, out.Usage.Attempts, 5)
	}, pooled(5))
}

// R-171, FO-13: without a usable key nothing is called, and the client learns when it makes sense to come back.
func TestAllKeysRest(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": status(429, "{}")}, func(w *world) {
		t := w.t
		w.run(t.Context(), plainBody)
		require.Equal(t, 1, w.called("a"))
		<-time.After(10 * time.Minute)
		got, out := w.run(t.Context(), plainBody)
		require.Equal(t, http.StatusServiceUnavailable, got.head.Status)
		require.Contains(t, got.text(), `"retry_after":3000}`)
		require.Empty(t, out.Usage.Attempts)
		require.Equal(t, 1, w.called("a"))
	}, pooled(1))
}

// FO-05, R-103: a bad request costs one call, whatever the number of keys.
func TestBadRequestIsNotSprayed(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": status(400, `{"error":{"message":"bad"}}`), "b": reply("b")}, func(w *world) {
		t := w.t
		got, _ := w.run(t.Context(), plainBody)
		require.Equal(t, http.StatusBadRequest, got.head.Status)
		require.Equal(t, 1, w.called("a"))
		require.Zero(t, w.called("b"))
	}, pooled(5))
}
