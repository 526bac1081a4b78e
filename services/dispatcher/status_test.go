package dispatcher_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
	"hydrallm/shared/query"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
)

// status asks a dispatcher, whichever answers.
func (p *pipeline) status() query.Status {
	p.t.Helper()
	s, err := query.GetStatus.Ask(p.t.Context(), p.bus, query.None{})
	require.NoError(p.t, err)
	return s
}

// rawStatus is status as an operator gets it.
func (p *pipeline) rawStatus() string {
	p.t.Helper()
	raw, err := query.GetStatus.AskRaw(p.t.Context(), p.bus, query.None{})
	require.NoError(p.t, err)
	return string(raw)
}

// C-39: the status shows providers, keys, chains, circuits and slots, and no key.
func TestStatusQuery(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.start("d", `
providers:
  - {id: p, url: "`+p.upstream.URL()+`/v1", keys: [key-number-one-of-p, key-number-two-of-p]}
  - {id: q, url: "`+p.upstream.URL()+`/v1", key: only-key-of-q}
upstreams:
  - {id: u, provider: p, model: real, max_concurrency: 4}
  - {id: v, provider: q, model: real}
models:
  - {name: m, upstreams: [u, v]}
  - {name: n, upstreams: [v, u]}
`)
	p.settled()
	raw := p.rawStatus()
	require.NotContains(t, raw, "key-number-one-of-p")
	require.NotContains(t, raw, "key-number-two-of-p")
	require.NotContains(t, raw, "only-key-of-q")
	s := p.status()
	require.Equal(t, "online", s.Status)
	require.True(t, s.Providers["p"].Healthy)
	require.Len(t, s.Providers, 2)
	require.Equal(t, map[string][]string{"m": {"u", "v"}, "n": {"v", "u"}}, s.Chains)
	require.Equal(t, "closed", s.Circuits["u"].State)
	require.Equal(t, "closed", s.Circuits["v"].State)
	require.Len(t, s.Slots, 2)
	require.Equal(t, 4, s.Slots[0].Limit)
	require.Zero(t, s.Slots[0].Active)
}

// A status that is too large for a message leaves details out, not itself.
func TestStatusOfManyKeys(t *testing.T) {
	t.Parallel()
	var keys strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&keys, "\n      - key-%d-of-many", i)
	}
	p := setup(t)
	p.start("d", `
providers:
  - {id: p, url: "`+p.upstream.URL()+`/v1", keys: [key-of-p]}
  - id: many
    url: "`+p.upstream.URL()+`/v1"
    keys: `+keys.String()+`
`)
	s := p.status()
	many := s.KeyStatistics["many"]
	require.Equal(t, 4000, many.Total)
	require.Equal(t, 4000, many.Active)
	require.Len(t, many.Keys, 100)
	require.Len(t, many.Quota, 100)
	require.Len(t, many.Usage, 100)
	require.Len(t, s.KeyStatistics["p"].Keys, 1)
}

// a provider that would answer with 503 is not healthy, and the status says why: keys that rest for its models, and no connection.
func TestStatusTellsWhatIsInTheWay(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.upstream.Offer("model-a")
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	p.start("d", `
providers:
  - {id: groq, url: "`+p.upstream.URL()+`/v1", keys: [key-number-one-of-p, key-number-two-of-p]}
  - {id: away, url: "`+closed.URL+`/v1", key: only-key-of-q}
upstreams: [{id: u, provider: away, model: real}]
models: [{name: m, upstreams: [u]}]
`)
	auto := func(r *contract.Request) {
		r.Model = "groq/auto"
		r.Decision = &contract.Decision{Provider: "groq", Reason: contract.ReasonModelHint, PinProvider: true}
	}
	await.True(t, func() bool {
		s := p.status()
		return s.Providers["groq"].Healthy && s.Providers["groq"].Models == 1 && !s.Providers["away"].Unreachable.IsZero()
	}, "nobody has called it, but it did not list its models")

	limit := fakellm.Error(http.StatusTooManyRequests, "slow down")
	limit.Header = map[string]string{"Retry-After": "600"}
	p.upstream.Handle(func(fakellm.Request) fakellm.Answer { return limit })
	p.ask("r", plainBody, auto)
	require.Equal(t, http.StatusServiceUnavailable, p.await("r").status)
	p.settled()
	s := p.status()
	groq := s.Providers["groq"]
	require.False(t, groq.Healthy)
	require.Equal(t, 2, groq.ActiveKeys)
	require.Zero(t, groq.UsableKeys)
	require.Contains(t, groq.Problem, "both keys rate limited")
	require.Zero(t, groq.Unreachable)
	channel := s.Channels["provider:groq"]
	require.False(t, channel.Usable)
	require.Equal(t, groq.Problem, channel.Problem)
	require.Equal(t, "rate_limit", channel.LastError.Class)
	require.Equal(t, http.StatusTooManyRequests, channel.LastError.Status)
	require.Equal(t, "model-a", channel.LastError.Model)
	for _, k := range s.KeyStatistics["groq"].Keys {
		require.Len(t, k.Cooldowns, 1)
		require.Equal(t, "model-a", k.Cooldowns[0].Model)
		require.InDelta(t, 600, k.Cooldowns[0].Remaining, 60)
		require.Equal(t, "rate_limit", k.LastError.Class)
	}
	away := s.Providers["away"]
	require.False(t, away.Healthy)
	require.Equal(t, "no connection", away.Problem)

	p.ask("s", plainBody)
	require.Equal(t, http.StatusServiceUnavailable, p.await("s").status)
	p.settled()
	require.Equal(t, "upstream", p.status().Channels["u"].LastError.Class)
}
