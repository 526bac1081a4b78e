package ingress_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/ingress"
	"hydrallm/shared/contract"
	"hydrallm/shared/query"
	"hydrallm/shared/testkit/await"
)

// using is echo whose answers have used so many tokens, and whose upstream tells of limits of its own.
func using(prompt, completion, nanos int64) func(context.Context, *reply) {
	return func(ctx context.Context, r *reply) {
		kind, body := "application/json", answerJSON
		if r.work.Request.Stream {
			kind, body = "text/event-stream", "data: [DONE]\n\n"
		}
		_ = r.Head(contract.Head{Status: http.StatusOK, Header: [][2]string{
			{"Content-Type", kind}, {"X-Ratelimit-Limit-Requests", "77777"}, {"Anthropic-Ratelimit-Tokens-Remaining", "77777"},
		}})
		_ = r.Data(ctx, []byte(body))
		_ = r.End(contract.End{Outcome: contract.OutcomeSuccess, Prompt: prompt, Completion: completion, Total: prompt + completion, CostNanos: nanos})
		_ = r.Flush()
	}
}

// inOneMinute makes an ingress whose limits know one moment only: a minute never ends, however slow the machine.
func inOneMinute(c *ingress.Config) {
	moment := time.Unix(1_800_000_000, 0)
	c.Clock = func() time.Time { return moment }
}

// two ingresses hold one limit together, and tell how it stands.
func TestRequestsPerMinute(t *testing.T) {
	t.Parallel()
	g, other := two(t, inOneMinute)
	k := g.makeKey("limited", `"limits":{"rpm":20}`)
	await.True(t, func() bool {
		return other.do(http.MethodGet, "/v1/models", nil, k.header()...).StatusCode == http.StatusOK
	}, "the other ingress knows the key")
	var passed, refused atomic.Int64
	var wg sync.WaitGroup
	for i := range 40 {
		at := []*gateway{g, other}[i%2]
		wg.Go(func() {
			a, err := at.try(t.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader([]string{chatBody, streamBody}[i/2%2]), k.header()...)
			switch {
			case err != nil:
				t.Error(err)
			case a.StatusCode == http.StatusOK:
				passed.Add(1)
			case a.StatusCode == http.StatusTooManyRequests:
				refused.Add(1)
			}
		})
	}
	wg.Wait()
	a := g.chat(chatBody, k.header()...)
	b := other.do(http.MethodPost, "/v1/messages", strings.NewReader(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}`), k.header()...)
	list := g.do(http.MethodGet, "/v1/models", nil, k.header()...)
	require.Equal(t, int64(20), passed.Load())
	require.Equal(t, int64(20), refused.Load())

	_, code := requireError(t, a, http.StatusTooManyRequests)
	require.Equal(t, "rate_limit_exceeded", code)
	require.Equal(t, "requests", gjson.Get(a.body, "error.type").String())
	require.NotEmpty(t, a.Header.Get("Retry-After"))
	require.Equal(t, []string{"20", "0"}, []string{a.Header.Get("X-Ratelimit-Limit-Requests"), a.Header.Get("X-Ratelimit-Remaining-Requests")})
	reset, err := time.ParseDuration(a.Header.Get("X-Ratelimit-Reset-Requests"))
	require.NoError(t, err)
	require.Positive(t, reset)
	require.Empty(t, a.Header.Get("X-Ratelimit-Limit-Tokens"))
	require.Equal(t, http.StatusTooManyRequests, b.StatusCode)
	require.Equal(t, "rate_limit_error", gjson.Get(b.body, "error.type").String())
	require.Equal(t, "0", b.Header.Get("Anthropic-Ratelimit-Requests-Remaining"))
	require.Equal(t, http.StatusOK, list.StatusCode, "only what goes to a model counts")
}

// tokens that were used count, of whole answers and of streams; the limits of the upstream are not the client's.
func TestTokensPerMinute(t *testing.T) {
	t.Parallel()
	g, _ := twoFor(t, inOneMinute, using(30, 12, 0))
	limited, free := g.makeKey("limited", `"limits":{"tpm":1000000}`), g.makeKey("free")
	a := g.chat(chatBody, free.header()...)
	require.Equal(t, "77777", a.Header.Get("X-Ratelimit-Limit-Requests"), "without limits of its own a client sees those of the upstream")
	remaining := func() int64 {
		a := g.do(http.MethodGet, "/v1/models", nil, limited.header()...)
		return gjson.Parse(a.Header.Get("X-Ratelimit-Remaining-Tokens")).Int()
	}
	for i, body := range []string{chatBody, streamBody} {
		a := g.chat(body, limited.header()...)
		require.Equal(t, http.StatusOK, a.StatusCode, a.body)
		require.Empty(t, a.Header.Get("X-Ratelimit-Limit-Requests"))
		require.Empty(t, a.Header.Get("Anthropic-Ratelimit-Tokens-Remaining"))
		require.Equal(t, "1000000", a.Header.Get("X-Ratelimit-Limit-Tokens"))
		await.True(t, func() bool { return remaining() == 1000000-int64(i+1)*42 }, "the tokens count")
	}
	requireError(t, g.chat(wrap(strings.Repeat("many words ", 1000000)), limited.header()...), http.StatusTooManyRequests)
}

// a budget that is used up ends the requests of a key on every ingress, and is shown; one that is raised goes on.
func TestBudgetRunsOut(t *testing.T) {
	t.Parallel()
	g, other := twoFor(t, nil, using(30, 12, 2_000_000_000))
	var mu sync.Mutex
	stored := query.ClientUsage{}
	h := query.Handlers{}
	query.GetClientUsage.Handle(h, func(_ context.Context, clients []query.ClientSince) ([]query.ClientUsage, error) {
		mu.Lock()
		defer mu.Unlock()
		all := make([]query.ClientUsage, len(clients))
		for i := range all {
			all[i] = stored
		}
		return all, nil
	})
	g.answers(query.SessionWriter, h)
	k := g.makeKey("poor", `"budget":{"amount":3,"unit":"money","period":"month"}`)
	require.Equal(t, http.StatusOK, g.chat(chatBody, k.header()...).StatusCode)
	require.Equal(t, http.StatusOK, g.chat(chatBody, k.header()...).StatusCode)
	var a answer
	await.True(t, func() bool { a = g.chat(chatBody, k.header()...); return a.StatusCode == http.StatusTooManyRequests }, "the budget is used up")
	_, code := requireError(t, a, http.StatusTooManyRequests)
	require.Equal(t, "insufficient_quota", code)
	require.Equal(t, "insufficient_quota", gjson.Get(a.body, "error.type").String())

	mu.Lock()
	stored = query.ClientUsage{Tokens: 84, CostNanos: 4_000_000_000, LastUsed: query.Time{Time: time.Unix(1_800_000_000, 0)}}
	mu.Unlock()
	await.True(t, func() bool { return other.chat(chatBody, k.header()...).StatusCode == http.StatusTooManyRequests }, "the other ingress hears of it")
	list := other.do(http.MethodGet, clientKeysPath, nil, "X-Admin-Key", adminKey)
	require.InDelta(t, 4, gjson.Get(list.body, "0.budget.used").Float(), 1e-9)
	require.Equal(t, "2027-01-15T08:00:00Z", gjson.Get(list.body, "0.last_used").String())
	a = g.do(http.MethodPatch, clientKeysPath+"/"+k.ID, strings.NewReader(`{"budget":{"amount":9,"unit":"money","period":"month"}}`), "X-Admin-Key", adminKey)
	require.Equal(t, http.StatusOK, a.StatusCode, a.body)
	require.Equal(t, http.StatusOK, g.chat(chatBody, k.header()...).StatusCode)
	text := g.do(http.MethodGet, "/metrics", nil).body
	require.Contains(t, text, `hydrallm_client_requests_total{class="2xx",client_key="poor"} 3`)
	require.Contains(t, text, `hydrallm_client_tokens_total{client_key="poor",type="input"}`)
}
