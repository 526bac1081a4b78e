package execute_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/execute"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/config"
	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
)

// priced gives every link a price of 2 and 10 for a million tokens.
func (w *world) priced() {
	for i := range w.plan.chain.Links {
		w.plan.chain.Links[i].Price = &config.Price{Input: 2, Output: 10, CachedInput: 1}
	}
}

const spent = `"usage":{"prompt_tokens":100,"completion_tokens":10,"total_tokens":110,"prompt_tokens_details":{"cached_tokens":40}}`

// the ledger hears of each call before it is made, and its end has what it cost.
func TestCallsAreBooked(t *testing.T) {
	t.Parallel()
	var w *world
	told := func(n int, h handler) handler {
		return func(rw http.ResponseWriter, r *http.Request, k int) {
			w.ledger.mu.Lock()
			facts := w.ledger.facts
			w.ledger.mu.Unlock()
			if len(facts) != n {
				t.Errorf("the upstream is called after %d facts, not %d", len(facts), n)
			}
			h(rw, r, k)
		}
	}
	whole := `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],` + spent + `}`
	bubble(t, map[string]handler{"a": told(1, status(500, "{}")), "b": told(2, status(200, whole))}, func(world *world) {
		t := world.t
		w = world
		w.priced()
		j := job(plainBody)
		j.Delivery, j.Lost, j.Request.Principal = 4, []uint64{1}, "k:1"
		begun := time.Now().UTC()
		var got answer
		span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{15: 0xaf}, SpanID: trace.SpanID{1}})
		out := w.exec.Run(trace.ContextWithRemoteSpanContext(t.Context(), span), j, &got)

		lost := contract.Attempt{Delivery: 1, Ordinal: 1, Outcome: contract.CallLost, Reason: "worker died"}
		first := contract.Attempt{
			Delivery: 4, Ordinal: 1, Upstream: "a", Provider: "pa", Model: "real-a", Outcome: contract.CallBegun, At: begun,
			Until: begun.Add(330 * time.Second), // the time of a call, and half a minute for what tells its end
		}
		second := first
		second.Ordinal, second.Upstream, second.Provider, second.Model = 2, "b", "pb", "real-b"
		require.Len(t, w.ledger.facts, 2)
		require.Equal(t, []contract.Attempt{lost, first}, w.ledger.facts[0].Attempts)
		first.Outcome, first.Reason, first.Status, first.Until = contract.CallFailed, out.Usage.Attempts[1].Reason, 500, time.Time{}
		first.Headers = [][2]string{{"Content-Type", "application/json"}}
		require.Equal(t, []contract.Attempt{lost, first, second}, w.ledger.facts[1].Attempts)
		for _, f := range w.ledger.facts {
			require.False(t, f.Over())
			require.Equal(t, "000000000000000000000000000000af", f.TraceID) // also of a trace that is not recorded
			require.Equal(t, []string{"r1", "k:1", "m", "chat.completions"}, []string{f.RequestID, f.Principal, f.Model, string(f.Endpoint)})
		}
		second.Outcome, second.Status, second.Until = contract.CallSuccess, 200, time.Time{}
		second.Headers = first.Headers
		second.Prompt, second.Completion, second.Total, second.Cached, second.CostNanos = 100, 10, 110, 40, new(int64(60*2000+40*1000+10*10_000))
		require.Equal(t, []contract.Attempt{lost, first, second}, out.Usage.Attempts)
		require.Equal(t, []int64{100, 10, 110}, []int64{out.Usage.Prompt, out.Usage.Completion, out.Usage.Total})
		require.Equal(t, "success", out.Usage.Status)
	})
}

// totals is a stream whose upstream tells its usage all the time.
func totals(n string) string {
	return `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"x"},"finish_reason":null}],` +
		`"usage":{"prompt_tokens":7,"completion_tokens":` + n + `}}` + "\n\n"
}

// R-553, STR-15: what a call that failed or was cancelled has told of its tokens counts for it, and for nobody else.
func TestTokensOfCallsWithoutAnEnd(t *testing.T) {
	t.Parallel()
	empty := status(200, `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[],`+spent+`}`)
	brokenOff := events(totals("1"), totals("2"), pause(time.Second), errorLine)
	early := events(`data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":0}}`+"\n\n", errorLine)
	type want struct {
		outcome contract.Outcome
		tokens  int64
	}
	for name, tt := range map[string]struct {
		a      handler
		stream bool
		want   []want
	}{
		"a whole answer that is none":      {empty, false, []want{{contract.CallFailed, 110}, {contract.CallSuccess, 3}}},
		"a stream that is put together":    {brokenOff, false, []want{{contract.CallFailed, 9}, {contract.CallSuccess, 3}}},
		"a stream that the client has not": {early, true, []want{{contract.CallFailed, 7}, {contract.CallSuccess, 0}}},
		"a stream that the client has":     {brokenOff, true, []want{{contract.CallFailed, 9}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, map[string]handler{"a": tt.a, "b": reply("b")}, func(w *world) {
				body := plainBody
				if tt.stream {
					body = streamBody
				}
				_, out := w.run(w.t.Context(), body)
				var got []want
				for _, a := range out.Usage.Attempts {
					got = append(got, want{a.Outcome, a.Total})
				}
				require.Equal(w.t, tt.want, got)
				require.Equal(w.t, tt.want[len(tt.want)-1].tokens, out.Usage.Total, "the record has those of the last call")
			})
		})
	}
}

// the call for a client that left is booked as cancelled, with the tokens that are known.
func TestCancelledCallsAreBooked(t *testing.T) {
	t.Parallel()
	for name, stream := range map[string]bool{"stream": true, "whole": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, map[string]handler{"a": events(totals("1"), totals("2"), pause(time.Hour))}, func(w *world) {
				w.priced()
				body := plainBody
				if stream {
					body = streamBody
				}
				ctx, cancel := context.WithCancelCause(w.t.Context())
				done := make(chan execute.Outcome, 1)
				go func() {
					_, out := w.run(ctx, body)
					done <- out
				}()
				<-time.After(time.Second)
				synctest.Wait()
				cancel(classify.ErrClientGone)
				out := <-done
				require.Equal(w.t, "cancelled", out.Usage.Status)
				require.Len(w.t, out.Usage.Attempts, 1)
				a := out.Usage.Attempts[0]
				require.Equal(w.t, contract.CallCancelled, a.Outcome)
				require.Equal(w.t, []int64{7, 2, 9}, []int64{a.Prompt, a.Completion, a.Total})
				require.Equal(w.t, int64(7*2000+2*10_000), *a.CostNanos)
			})
		})
	}
}

// untranslatable is a dialect that a request can't be put into.
type untranslatable struct{ dialect.Dialect }

func (untranslatable) Chat(context.Context, upstream.Call) (*dialect.Response, error) {
	return nil, &openai.RequestError{Message: "no"}
}

// A request that can't be put into the dialect is no call.
func TestWhatIsNoCall(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": reply("a")}, func(w *world) {
		w.plan.chain.Links[0].Channel.Dialect = untranslatable{w.plan.chain.Links[0].Channel.Dialect}
		_, out := w.run(w.t.Context(), plainBody)
		require.Len(w.t, out.Usage.Attempts, 1)
		require.Equal(w.t, contract.CallNone, out.Usage.Attempts[0].Outcome)
		require.Zero(w.t, w.called("a"))
	})
}

// Embeddings are booked like chat.
func TestEmbeddingsAreBooked(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": status(200, vectors)}, func(w *world) {
		w.priced()
		_, out := w.embed(`{"model":"m","input":"hi"}`, contract.Decision{Model: "m", Configured: true})
		require.Len(w.t, w.ledger.facts, 1)
		require.Equal(w.t, contract.EndpointEmbeddings, w.ledger.facts[0].Endpoint)
		require.Equal(w.t, int64(4*2000), *out.Usage.Attempts[0].CostNanos)
	})
}
