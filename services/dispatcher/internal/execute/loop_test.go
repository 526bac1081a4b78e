package execute_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/execute"
	"hydrallm/shared/contract"
	"hydrallm/shared/testkit/fixtures"
)

// keyless takes all keys away from the pools of the channels but those named.
func keyless(but string) func(*execute.Channel) {
	none := pooled(0)
	return func(c *execute.Channel) {
		if strings.Contains(but, c.ID) {
			return
		}
		id := c.ID
		c.ID = "a"
		none(c)
		c.ID = id
	}
}

// three calls through one pool, each with another key.
func TestEachRetryHasAnotherKey(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	keys := map[string]int{}
	noting := func(w http.ResponseWriter, r *http.Request, n int) {
		mu.Lock()
		keys[r.Header.Get("Authorization")]++
		mu.Unlock()
		status(503, "{}")(w, r, n)
	}
	bubble(t, map[string]handler{"a": noting, "b": reply("b")}, func(w *world) {
		t := w.t
		got, _ := w.routed(t.Context(), plainBody)
		require.Equal(t, "pb", got.header("X-Gateway-Provider"))
		require.Len(t, keys, 3)
		for key, n := range keys {
			require.Equal(t, 1, n, key)
		}
	}, pooled(9))
}

// another key or another channel is called at once. No call is made twice with one key, so that nothing waits in between.
func TestNothingWaitsBetweenAttempts(t *testing.T) {
	t.Parallel()
	later := func(w http.ResponseWriter, r *http.Request, n int) {
		w.Header().Set("Retry-After", "7")
		status(429, "{}")(w, r, n)
	}
	bubble(t, map[string]handler{"a": later, "b": status(503, "{}"), "c": reply("c")}, func(w *world) {
		t := w.t
		start := time.Now()
		got, out := w.routed(t.Context(), plainBody)
		require.Equal(t, "pc", got.header("X-Gateway-Provider"))
		require.Len(t, out.Usage.Attempts, 5)
		require.Zero(t, time.Since(start))
	}, pooled(5))
}

// a provider without active keys left makes way for the next one; what it said counts for keys and breaker.
func TestNoKeyLeft(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": status(429, "{}"), "b": reply("b")}, func(w *world) {
		t := w.t
		got, out := w.routed(t.Context(), plainBody)
		require.Equal(t, "pb", got.header("X-Gateway-Provider"))
		require.Equal(t, "RATE_LIMIT", got.header("X-Routing-Reason"))
		require.Equal(t, 2, w.called("a"))
		require.Equal(t, 2, w.breakers.Get("a").Snapshot().Failures)
		require.Len(t, out.Usage.Attempts, 3)
		w.routed(t.Context(), plainBody)
		require.Equal(t, 2, w.called("a"))
	}, pooled(2))
}

// R-134, C-18, C-19: strict stays with its provider, whatever happens there: all keys refused, an open circuit, a failure, no key. The error
// is the gateway's.
func TestStrictCallsNobodyElse(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		a      handler
		keys   int
		before int // failures that open the circuit
		calls  int
	}{
		"keys refused": {status(401, `{"error":{"message":"bad key"}}`), 2, 0, 2},
		"rate limit":   {status(429, "{}"), 3, 0, 3},
		"failure":      {status(500, "{}"), 1, 0, 1},
		"no key":       {reply("a"), 0, 0, 0},
		"open circuit": {reply("a"), 1, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, map[string]handler{"a": tc.a, "b": reply("b"), "c": reply("c")}, func(w *world) {
				t := w.t
				w.link("c", lastResort)
				w.plan.chain = execute.NewChain(w.plan.chain.Links[:1]) // as the planner does for strict decisions
				for range tc.before {
					permit, ok := w.breakers.Get("a").Acquire()
					require.True(t, ok)
					permit.Failure(0)
				}
				got, _ := w.routed(t.Context(), plainBody, strict)
				want := http.StatusServiceUnavailable
				if name == "keys refused" {
					want = http.StatusFailedDependency
				}
				require.Equal(t, want, got.head.Status)
				require.Equal(t, tc.calls, w.called("a"))
				require.Zero(t, w.called("b")+w.called("c"))
				require.NotContains(t, got.text(), "bad key")
			}, pooled(tc.keys))
		})
	}
}

// as long as a key of the provider works, strict gets its answer.
func TestStrictTriesAllKeys(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": byKey(map[string]handler{"key-0": status(429, "{}"), "key-1": reply("a")})}, func(w *world) {
		for range 10 {
			got, _ := w.routed(w.t.Context(), plainBody, strict)
			require.Equal(w.t, http.StatusOK, got.head.Status)
		}
	}, pooled(2))
}

// Scenario 15, R-114, R-132, R-155: without a cloud key the local model answers at once, with all that the request holds, web text and history
// too; nobody in the cloud is called.
func TestStraightToTheLocalModel(t *testing.T) {
	t.Parallel()
	var sent string
	local := func(w http.ResponseWriter, r *http.Request, n int) {
		body, _ := io.ReadAll(r.Body)
		sent = string(body)
		reply("local")(w, r, n)
	}
	bubble(t, map[string]handler{"a": reply("a"), "b": reply("b"), "c": reply("c"), "d": local}, func(w *world) {
		t := w.t
		w.link("d", lastResort)
		body := `{"model":"auto","messages":[{"role":"system","content":"[SYSTEM CONTEXT] x"},{"role":"user","content":"before"},{"role":"assistant","content":"yes"},` +
			`{"role":"user","name":"web_context","content":"web text"},{"role":"user","content":"now"}],"tools":[{"type":"function","function":{"name":"f"}}]}`
		start := time.Now()
		got, out := w.routed(t.Context(), body)
		require.Equal(t, http.StatusOK, got.head.Status)
		require.Zero(t, time.Since(start))
		require.Zero(t, w.called("a")+w.called("b")+w.called("c"))
		require.Len(t, out.Usage.Attempts, 1)
		require.Equal(t, gjson.Get(body, "messages").Raw, gjson.Get(sent, "messages").Raw)
		require.Equal(t, gjson.Get(body, "tools").Raw, gjson.Get(sent, "tools").Raw)
		require.Equal(t, "real-d", gjson.Get(sent, "model").Str)
		require.Equal(t, "KEY_AVAILABILITY", got.header("X-Routing-Reason"))
	}, keyless("d"))
}

// Scenario 16: with the local model down too, the client gets a clean 503.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	for name, local := range map[string]handler{
		"broken":       status(500, `{"error":{"message":"secret detail of an engine"}}`),
		"not there":    func(http.ResponseWriter, *http.Request, int) { panic(http.ErrAbortHandler) },
		"no such name": status(404, `{"error":{"message":"secret detail: model not found","code":"model_not_found"}}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, map[string]handler{"a": reply("a"), "d": local}, func(w *world) {
				t := w.t
				w.link("d", lastResort)
				got, _ := w.routed(t.Context(), plainBody)
				require.Equal(t, http.StatusServiceUnavailable, got.head.Status)
				require.Zero(t, w.called("a"))
				require.True(t, gjson.Valid(got.text()))
				require.NotEmpty(t, gjson.Get(got.text(), "error.message").Str)
				require.NotEmpty(t, gjson.Get(got.text(), "detail").Str)
				require.NotContains(t, got.text(), "secret detail")
				require.NotContains(t, got.text(), "http://")
			}, keyless("d"))
		})
	}
}

// whether a request is strict is what the decision says, not what its model looks like.
func TestStrictIsNotJudgedAgain(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": status(429, "{}"), "b": reply("b")}, func(w *world) {
		t := w.t
		got, _ := w.routed(t.Context(), plainBody, func(d *contract.Decision) { d.Model = "gemini/x" })
		require.Equal(t, http.StatusOK, got.head.Status)
		require.Equal(t, "pb", got.header("X-Gateway-Provider"))
	})
}

// scenario 17: a premium model is called with a premium key, and with no free one in its place.
func TestPremiumModelHasPremiumKey(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	keys := map[string]int{}
	noting := func(w http.ResponseWriter, r *http.Request, n int) {
		mu.Lock()
		keys[r.Header.Get("Authorization")]++
		mu.Unlock()
		reply("a")(w, r, n)
	}
	tiers := func(list ...string) func(*execute.Channel) {
		return func(c *execute.Channel) {
			pooled(0)(c)
			for _, tier := range list {
				if c.Pool != nil {
					c.Pool.Add("key-"+tier, tier)
				}
			}
		}
	}
	bubble(t, map[string]handler{"a": noting, "b": reply("b")}, func(w *world) {
		w.link("a", func(l *execute.Link) { l.Premium = true })
		for range 30 {
			w.routed(w.t.Context(), plainBody)
		}
		require.Equal(w.t, map[string]int{"Bearer key-premium": 30}, keys)
	}, tiers("free", "premium", "unknown"))
	clear(keys)
	bubble(t, map[string]handler{"a": noting, "b": reply("b")}, func(w *world) {
		w.link("a", func(l *execute.Link) { l.Premium = true })
		got, _ := w.routed(w.t.Context(), plainBody)
		require.Equal(w.t, "pb", got.header("X-Gateway-Provider"))
		require.Empty(w.t, keys)
	}, tiers("free"))
}

// not more than three keys of one channel are tried, though none of its failures counts for the breaker.
func TestAttemptsOfAPoolAreBounded(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": status(401, `{"error":{"message":"bad key"}}`), "b": reply("b")}, func(w *world) {
		t := w.t
		got, _ := w.routed(t.Context(), plainBody)
		require.Equal(t, "pb", got.header("X-Gateway-Provider"))
		require.Equal(t, 3, w.called("a"))
		require.Zero(t, w.breakers.Get("a").Snapshot().Failures)
	}, pooled(9))
}

// a key that failed without having to rest is not tried a second time by the same request.
func TestKeyIsTriedOnce(t *testing.T) {
	t.Parallel()
	slow := fixtures.Get("openai/error-429-slow-down.json")
	var mu sync.Mutex
	keys := map[string]int{}
	noting := func(w http.ResponseWriter, r *http.Request, n int) {
		mu.Lock()
		keys[r.Header.Get("Authorization")]++
		mu.Unlock()
		status(slow.Status, string(slow.Body))(w, r, n)
	}
	bubble(t, map[string]handler{"a": noting, "b": reply("b")}, func(w *world) {
		t := w.t
		got, _ := w.routed(t.Context(), plainBody)
		require.Equal(t, "pb", got.header("X-Gateway-Provider"))
		require.Equal(t, map[string]int{"Bearer key-0": 1, "Bearer key-1": 1}, keys)
	}, pooled(2))
}

// a model that misfires is asked once more, by the same channel where there is no other, with the same key if need be. The second
// misfire is final, and its message may help the client.
func TestMisfireIsRepeatedOnce(t *testing.T) {
	t.Parallel()
	bad := serve(fixtures.Get("groq/error-400-tool-use-failed.json"))
	for name, keys := range map[string]int{"one key": 1, "two keys": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, map[string]handler{"a": inTurn(bad, reply("a"), bad)}, func(w *world) {
				t := w.t
				got, _ := w.run(t.Context(), plainBody)
				require.Equal(t, http.StatusOK, got.head.Status)
				require.Equal(t, 2, w.called("a"))
				got, _ = w.run(t.Context(), plainBody)
				require.Equal(t, http.StatusBadRequest, got.head.Status)
				require.Equal(t, 4, w.called("a"))
				require.Zero(t, w.breakers.Get("a").Snapshot().Failures)
			}, pooled(keys))
		})
	}
	t.Run("no pool", func(t *testing.T) {
		t.Parallel()
		bubble(t, map[string]handler{"a": inTurn(bad, reply("a"))}, func(w *world) {
			got, _ := w.run(w.t.Context(), plainBody)
			require.Equal(w.t, http.StatusOK, got.head.Status)
		})
	})
	t.Run("another channel", func(t *testing.T) {
		t.Parallel()
		bubble(t, map[string]handler{"a": bad, "b": reply("b")}, func(w *world) {
			got, _ := w.run(w.t.Context(), plainBody)
			require.Equal(w.t, "pb", got.header("X-Gateway-Provider"))
			require.Equal(w.t, 1, w.called("a"))
		})
	})
}
