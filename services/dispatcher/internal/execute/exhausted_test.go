package execute_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/execute"
	"hydrallm/services/dispatcher/internal/keypool"
	"hydrallm/services/dispatcher/internal/slot"
	"hydrallm/shared/contract"
)

// openCircuit opens the breaker of a channel.
func (w *world) openCircuit(id string) {
	w.t.Helper()
	for range 3 {
		permit, ok := w.breakers.Get(id).Acquire()
		require.True(w.t, ok)
		permit.Failure(0)
	}
}

// C-27: without any call, the answer is "busy" if a channel lacked nothing but a slot, and "failed" if none could be called anyway.
func TestBusyOrFailed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		open, full string // channels
		want       string
	}{
		"all open":             {"ab", "", "all upstreams failed"},
		"all full":             {"", "ab", "all upstreams busy"},
		"one open, one full":   {"a", "b", "all upstreams busy"},
		"one full, one open":   {"b", "a", "all upstreams busy"},
		"open and full is one": {"ab", "b", "all upstreams failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, map[string]handler{"a": reply("a"), "b": reply("b")}, func(w *world) {
				t := w.t
				for id := range strings.SplitSeq(tc.full, "") {
					lease, _, err := w.slots.Acquire(t.Context(), []slot.Candidate{{ID: execute.SlotID("p"+id, "real-"+id), Limit: 1}}, nil)
					require.NoError(t, err)
					defer lease.Release()
				}
				for id := range strings.SplitSeq(tc.open, "") {
					w.openCircuit(id)
				}
				got, out := w.routed(t.Context(), plainBody)
				require.Equal(t, http.StatusServiceUnavailable, got.head.Status)
				require.Contains(t, got.text(), tc.want)
				require.NotEmpty(t, got.header("Retry-After"))
				require.Empty(t, out.Usage.Attempts)
				require.Zero(t, w.called("a")+w.called("b"))
			}, single("a"), single("b"))
		})
	}
}

// exhausted is what a client gets from no channel.
type exhausted struct {
	status             int
	code               string
	wait               int64  // error.retry_after
	retryAfter, should string // headers
	message            string // holds it
}

func (w *world) requireExhausted(want exhausted, change ...func(*contract.Decision)) {
	w.t.Helper()
	got, _ := w.routed(w.t.Context(), plainBody, change...)
	body := gjson.Parse(got.text())
	require.Contains(w.t, body.Get("error.message").Str, want.message)
	require.NotContains(w.t, got.text(), "10.0.0.7")
	require.Equal(w.t, want.status, got.head.Status)
	require.Equal(w.t, want.code, body.Get("error.code").Str)
	require.Equal(w.t, want.wait, body.Get("error.retry_after").Int())
	require.Equal(w.t, want.retryAfter, got.header("Retry-After"))
	require.Equal(w.t, want.should, got.header("X-Should-Retry"))
}

const failed = "all_upstreams_failed"

// who asks is told what is in the way of each provider, how long it will be, and whether it is worth coming back.
func TestExhaustedSaysWhy(t *testing.T) {
	t.Parallel()
	slow := func(wait, body string) handler {
		return func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Retry-After", wait)
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, body)
		}
	}
	deny := status(http.StatusUnauthorized, `{"error":{"message":"bad key"}}`)
	google := status(http.StatusForbidden, `{"error":{"code":403,"message":"m","status":"PERMISSION_DENIED"}}`)
	down := status(http.StatusBadGateway, "<html>10.0.0.7</html>")
	for name, tc := range map[string]struct {
		a, b         handler // nil: there is none
		adjust       []func(*execute.Channel)
		first, again exhausted // the answer, and that to a second request
	}{
		"no key": {a: reply("a"), adjust: []func(*execute.Channel){pooled(0)}, first: exhausted{503, failed, 0, "", "", "all upstreams failed: pa has no key"}},
		"a limit": {
			a: slow("7", "{}"), adjust: []func(*execute.Channel){pooled(1)},
			first: exhausted{503, failed, 7, "7", "", "pa: its key rate limited, 7 s. Try again in 7 s (2000-01-01T00:00:07Z)"},
			again: exhausted{503, failed, 7, "7", "", "pa: its key rate limited, 7 s"},
		},
		"a long limit": {
			a: slow("3600", "{}"), adjust: []func(*execute.Channel){pooled(2)},
			first: exhausted{503, failed, 3600, "", "false", "pa: both keys rate limited, 60 min. Try again in 60 min (2000-01-01T01:00:00Z)"},
		},
		"a limit of the only key": {a: slow("7", "{}"), first: exhausted{503, failed, 7, "7", "", "pa: rate limited, 7 s"}},
		"a short and a long limit": {
			a: slow("3600", "{}"), b: slow("30", "{}"), adjust: []func(*execute.Channel){pooled(1)},
			first: exhausted{503, failed, 30, "30", "", "pa: its key rate limited, 60 min; pb: rate limited, 30 s. Try again in 30 s"},
		},
		"a long limit, and one that may be up soon": {
			a: slow("3600", "{}"), b: down, first: exhausted{503, failed, 0, "", "", "pa: rate limited, 60 min; pb: no usable answer (502)"},
		},
		"the one key is refused": {a: deny, first: exhausted{424, "upstream_auth", 0, "", "", "pa refused the gateway's key (401)"}, again: exhausted{424, "upstream_auth", 0, "", "", "pa refused the gateway's key (401)"}},
		"the keys of a pool are refused": {
			a: deny, adjust: []func(*execute.Channel){pooled(3)},
			first: exhausted{424, "upstream_auth", 0, "", "", "pa refused all 3 of the gateway's keys (401)"},
			again: exhausted{424, "upstream_auth", 0, "", "", "pa refused all 3 of the gateway's keys"},
		},
		"more keys than a request may try are refused": {
			a: deny, adjust: []func(*execute.Channel){pooled(5)},
			first: exhausted{503, failed, 1, "1", "", "pa refused the gateway's key (401), other keys are left. Try again in 1 s"},
			again: exhausted{424, "upstream_auth", 0, "", "", "pa refused all 5 of the gateway's keys (401)"},
		},
		"more keys than a request may try are limited": {
			a: slow("3600", "{}"), adjust: []func(*execute.Channel){pooled(5)},
			first: exhausted{503, failed, 60, "60", "", "pa: rate limited, 60 min, other keys are left. Try again in 60 s"}, // the circuit is open
		},
		"keys are refused in two ways": {
			a: func(w http.ResponseWriter, r *http.Request, n int) {
				[]handler{deny, google, slow("7", "{}")}[n-1](w, r, n)
			}, adjust: []func(*execute.Channel){pooled(3)},
			first: exhausted{503, failed, 7, "7", "", "pa: all 3 keys 1 rate limited, 2 refused, 7 s"},
		},
		"refused for the model": {
			a: google, adjust: []func(*execute.Channel){pooled(1)},
			first: exhausted{424, "upstream_auth", 0, "", "", "pa refused the gateway's key (403)"},
			again: exhausted{424, "upstream_auth", 0, "", "", "pa refused the gateway's key"},
		},
		"refused for a moment": {
			a: func(w http.ResponseWriter, _ *http.Request, _ int) {
				w.Header().Set("Retry-After", "20")
				w.WriteHeader(http.StatusForbidden)
			},
			first: exhausted{503, failed, 20, "20", "", "pa refused the gateway's key (403). Try again in 20 s"},
		},
		"an answer of 70 MB": {
			a: func(w http.ResponseWriter, r *http.Request, _ int) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Content-Length", "70000000")
				_, _ = io.WriteString(w, `{"choices":[`)
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			},
			first: exhausted{503, failed, 0, "", "", "pa: an answer that is too large"},
		},
		"both refuse":                 {a: deny, b: google, first: exhausted{424, "upstream_auth", 0, "", "", "pa refused the gateway's key (401); pb refused the gateway's key (403)"}},
		"one refuses, one is down":    {a: deny, b: down, first: exhausted{503, failed, 0, "", "", "pa refused the gateway's key (401); pb: no usable answer (502)"}},
		"one refuses, one has no key": {a: deny, b: reply("b"), adjust: []func(*execute.Channel){withoutKeys("b")}, first: exhausted{424, "upstream_auth", 0, "", "", "pa refused the gateway's key (401); pb has no key"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handlers := map[string]handler{"a": tc.a}
			if tc.b != nil {
				handlers["b"] = tc.b
			}
			bubble(t, handlers, func(w *world) {
				w.requireExhausted(tc.first)
				if tc.again.status != 0 {
					w.requireExhausted(tc.again)
				}
			}, tc.adjust...)
		})
	}
}

// withoutKeys takes the keys of a channel.
func withoutKeys(id string) func(*execute.Channel) {
	return func(c *execute.Channel) {
		if c.ID == id {
			c.Pool = keypool.New(nil, keypool.Cooldowns{}, nil)
		}
	}
}

// a circuit that three short limits opened is told as such, and is open no longer than they stated.
func TestCircuitOfLimitsIsTold(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": func(w http.ResponseWriter, r *http.Request, n int) {
		if n > 3 {
			reply("a")(w, r, n)
			return
		}
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(http.StatusTooManyRequests)
	}}, func(w *world) {
		for range 3 {
			w.requireExhausted(exhausted{503, failed, 2, "2", "", "pa: rate limited, 2 s"})
		}
		w.requireExhausted(exhausted{503, failed, 2, "2", "", "pa: circuit open until 2000-01-01T00:00:02Z. Try again in 2 s"})
		<-time.After(2 * time.Second)
		got, _ := w.routed(w.t.Context(), plainBody)
		require.Equal(w.t, http.StatusOK, got.head.Status)
		require.Equal(w.t, 4, w.called("a"))
	})
}

// a premium model with keys that are known to be free is nothing that comes with time.
func TestPremiumModelWithoutItsKey(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*contract.Decision){"named": named, "strict": strict} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, map[string]handler{"a": reply("a")}, func(w *world) {
				w.plan.chain.Links[0].Channel.Pool = keypool.New([]keypool.Key{{Value: "one", Tier: contract.TierFree}}, keypool.Cooldowns{}, nil)
				w.link("a", func(l *execute.Link) { l.Premium = true })
				w.requireExhausted(exhausted{424, "premium_key_required", 0, "", "", "pa has no key for the premium model `real-a`"}, change)
			})
		})
	}
}

// a model that is gone from one channel may be there at the next one; where it is nowhere, the client learns that.
func TestModelThatIsGone(t *testing.T) {
	t.Parallel()
	gone := status(http.StatusGone, `{"error":{"message":"end of life","type":"t","code":"c"}}`)
	bubble(t, map[string]handler{"a": gone, "b": reply("b")}, func(w *world) {
		got, _ := w.run(w.t.Context(), plainBody)
		require.Equal(w.t, "b", got.header("X-Gateway-Upstream"))
		got, _ = w.routed(w.t.Context(), plainBody)
		require.Equal(w.t, "pb", got.header("X-Gateway-Provider"))
		require.Equal(w.t, []string{"pa/real-a"}, w.plan.absent)
	})
	bubble(t, map[string]handler{"a": gone, "b": gone}, func(w *world) {
		got, _ := w.run(w.t.Context(), plainBody)
		require.Equal(w.t, http.StatusGone, got.head.Status)
		require.Equal(w.t, "end of life", gjson.Get(got.text(), "error.message").Str)
		require.Equal(w.t, 2, w.called("a")+w.called("b"))
	})
}

// many requests at once, each with a key of its own; what is told of it is its index.
func TestEachCallHasItsKey(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	used := map[string]string{} // by user of the request
	noting := func(w http.ResponseWriter, r *http.Request, n int) {
		var body struct{ User string }
		if json.NewDecoder(r.Body).Decode(&body) != nil {
			return
		}
		mu.Lock()
		used[body.User] = r.Header.Get("Authorization")
		mu.Unlock()
		reply("a")(w, r, n)
	}
	bubble(t, map[string]handler{"a": noting}, func(w *world) {
		const requests = 100
		var wg sync.WaitGroup
		told := make([]int, requests)
		for i := range requests {
			wg.Go(func() {
				var a answer
				j := job(`{"model":"m","user":"` + strconv.Itoa(i) + `","messages":[{"role":"user","content":"hi"}]}`)
				j.Request.Decision = &contract.Decision{Provider: "pa", Reason: contract.ReasonTokenCount}
				out := w.exec.Run(w.t.Context(), j, &a)
				told[i] = out.Usage.KeyIndex
			})
		}
		wg.Wait()
		seen := map[int]bool{}
		for i, index := range told {
			require.Equal(w.t, "Bearer key-"+strconv.Itoa(index), used[strconv.Itoa(i)])
			seen[index] = true
		}
		require.Len(w.t, seen, 5)
	}, pooled(5))
}
