package execute_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/execute"
	"hydrallm/shared/contract"
	"hydrallm/shared/testkit/fixtures"
)

// serve answers with a sample.
func serve(f fixtures.Fixture) handler {
	return func(w http.ResponseWriter, _ *http.Request, _ int) {
		for name := range f.Header {
			w.Header().Set(name, f.Header.Get(name))
		}
		w.WriteHeader(f.Status)
		_, _ = w.Write(f.Body) // to memory
	}
}

// vendor lets channel a be of the vendor of a sample, with one key.
func vendor(f fixtures.Fixture) func(*execute.Channel) {
	key := pooled(1)
	return func(c *execute.Channel) {
		if c.ID == "a" {
			key(c)
			c.Vendor = strings.TrimSuffix(f.Provider(), "-native")
		}
	}
}

// C-09, C-18: every recorded failure of every provider, under automatic routing. Another provider answers, unless the
// client is at fault; breaker and key pay what the table says; the client never sees what is between the gateway and its providers.
func TestRecordedFailures(t *testing.T) {
	t.Parallel()
	for _, f := range fixtures.For(fixtures.Failure) {
		t.Run(f.File, func(t *testing.T) {
			t.Parallel()
			bubble(t, map[string]handler{"a": serve(f), "b": reply("b")}, func(w *world) {
				t := w.t
				got, out := w.routed(t.Context(), plainBody)
				pool := w.plan.chain.Links[0].Channel.Pool
				a := classify.Answer{Provider: w.plan.chain.Links[0].Channel.Vendor, Status: f.Status, Header: f.Header, Body: f.Body}
				v := classify.Of(a)
				if f.Status == http.StatusOK && v.Class == classify.Success {
					t.Fatal("a failure must not pass for an answer")
				}
				switch class := classify.Class(f.Class); class {
				case classify.Client, classify.Size:
					require.Contains(t, []int{400, 413, 415, 422}, got.head.Status)
					require.NotEmpty(t, gjson.Get(got.text(), "error.message").Str)
					require.Zero(t, w.called("b"))
				default:
					require.Equal(t, http.StatusOK, got.head.Status, got.text())
					require.Equal(t, "pb", got.header("X-Gateway-Provider"))
					require.Equal(t, class == classify.Model, len(w.plan.absent) == 1)
				}
				require.Equal(t, 1, w.called("a"))
				require.Equal(t, v.Breaker, w.breakers.Get("a").Snapshot().Failures == 1)
				require.Equal(t, v.Cooldown != classify.NoCooldown, pool.Wait("real-a", 0) > 0)
				require.Equal(t, v.Cooldown != classify.NoCooldown && !v.PerModel, pool.Wait("another", 0) > 0)
				require.Equal(t, v.Class.Category() == "", out.Usage.Attempts[0].Outcome == contract.CallSuccess)
			}, vendor(f))
		})
	}
}

// the same, when the client insists on this provider: one call, or two after bad output, and what is the
// gateway's affair stays its own.
func TestRecordedFailuresOfNamedModels(t *testing.T) {
	t.Parallel()
	passes := map[classify.Class]bool{classify.Client: true, classify.Size: true, classify.Model: true, classify.Payment: true, classify.Incapable: true, classify.BadOutput: true}
	refuses := map[classify.Class]bool{classify.Auth: true, classify.Forbidden: true}
	for _, f := range fixtures.For(fixtures.Failure) {
		t.Run(f.File, func(t *testing.T) {
			t.Parallel()
			bubble(t, map[string]handler{"a": serve(f), "b": reply("b")}, func(w *world) {
				t := w.t
				w.plan.chain = execute.NewChain(w.plan.chain.Links[:1])
				got, _ := w.routed(t.Context(), plainBody, strict, named)
				want := map[bool]int{true: http.StatusFailedDependency, false: http.StatusServiceUnavailable}[refuses[classify.Class(f.Class)] && f.Header.Get("Retry-After") == ""]
				require.Equal(t, !passes[classify.Class(f.Class)], got.head.Status == want, got.text())
				require.NotContains(t, []int{401, 403, 429, 500, 502, 529}, got.head.Status)
				require.NotEmpty(t, gjson.Get(got.text(), "detail").Str)
				require.Empty(t, w.plan.absent, "the client named it")
				calls := 1
				if f.Class == string(classify.BadOutput) {
					calls = 2
				}
				require.Equal(t, calls, w.called("a"))
			}, vendor(f))
		})
	}
}

// a stream that fails is either replaced, and nothing of it is seen, or it ends in an error event.
func TestRecordedFailuresInStreams(t *testing.T) {
	t.Parallel()
	ends := map[string]int{}
	for _, f := range fixtures.For(fixtures.Stream) {
		if f.Class == "" {
			continue
		}
		bubble(t, map[string]handler{"a": serve(f), "b": reply("b")}, func(w *world) {
			t := w.t
			got, _ := w.routed(t.Context(), streamBody)
			provider := got.header("X-Gateway-Provider")
			ends[provider]++
			require.Equal(t, provider == "pb", strings.Contains(got.text(), "[DONE]"), f.File)
			require.Equal(t, provider == "pa", strings.Contains(got.text(), `data: {"error":`), f.File)
			if provider == "pb" {
				require.Equal(t, 1, w.called("b"), f.File)
				require.NotContains(t, got.text(), "fx", f.File) // the samples' ids have it
				require.Equal(t, contract.OutcomeSuccess, got.end.Outcome, f.File)
			} else {
				require.Equal(t, contract.OutcomeError, got.end.Outcome, f.File)
			}
			require.Equal(t, 1, w.breakers.Get("a").Snapshot().Failures, f.File)
		}, vendor(f))
	}
	require.Greater(t, ends["pa"], 3)
	require.Greater(t, ends["pb"], 3)
}
