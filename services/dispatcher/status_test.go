package dispatcher_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/query"
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
