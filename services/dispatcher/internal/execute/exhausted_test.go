package execute_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/slot"
	"hydrallm/shared/contract"
)

// openCircuit opens the breaker of a channel.
func (w *world) openCircuit(id string) {
	w.t.Helper()
	for range 3 {
		permit, ok := w.breakers.Get(id).Acquire()
		require.True(w.t, ok)
		permit.Failure()
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
					lease, _, err := w.slots.Acquire(t.Context(), []slot.Candidate{{ID: id, Limit: 1}}, nil)
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
