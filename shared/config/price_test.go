package config_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// the price of an upstream, and what a call costs by it.
func TestPrices(t *testing.T) {
	t.Parallel()
	c, warnings, err := parse(nil, `
providers: [{id: p, url: "http://h/v1"}]
upstreams:
  - {id: full, provider: p, model: a, price: {input: 3, output: 15, cached_input: 0.3}}
  - {id: short, provider: p, model: b, price: {input: 0.02}}
  - {id: free, provider: p, model: c, price: {input: 0, output: 0}}
  - {id: none, provider: p, model: d, price: null}
models: [{name: m, upstreams: [none]}]
`)
	require.NoError(t, err)
	require.Empty(t, warnings, "an upstream may be there for its price")
	for name, tt := range map[string]struct {
		upstream                   string
		prompt, cached, completion int64
		want                       *int64
	}{
		"all":                 {"full", 1_000_000, 0, 1_000_000, new(int64(18_000_000_000))},
		"a part is cached":    {"full", 1000, 400, 10, new(int64(600*3000 + 400*300 + 10*15000))},
		"more than the whole": {"full", 1000, 5000, 0, new(int64(1000 * 300))},
		"cached as the rest":  {"short", 1000, 400, 7, new(int64(1000 * 20))},
		"no tokens are known": {"full", 0, 0, 0, nil},
		"free":                {"free", 5, 0, 5, new(int64(0))},
		"free, no tokens":     {"free", 0, 0, 0, new(int64(0))},
		"no price":            {"none", 5, 0, 5, nil},
		"nonsense":            {"full", math.MaxInt64, 0, math.MaxInt64, new(int64(1 << 42))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, ok := c.Upstream(tt.upstream)
			require.True(t, ok)
			require.Equal(t, tt.want, u.Price.Nanos(tt.prompt, tt.cached, tt.completion))
		})
	}
}

// upstreams that no list orders are tried by their cost, or by what their price tells of it.
func TestCheapestFirst(t *testing.T) {
	t.Parallel()
	c := sound(t, `
providers: [{id: p, url: "http://h/v1"}]
resilience: {max_hops: 9}
upstreams:
  - {id: unknown, provider: p, model: shared}
  - {id: dear, provider: p, model: shared, cost: 9}
  - {id: by-price, provider: p, model: shared, price: {input: 1, output: 5}}
  - {id: other, provider: p, model: other, cost: 0}
  - {id: both, provider: p, model: shared, cost: 1.5, price: {input: 100}}
  - {id: free, provider: p, model: shared, cost: 0}
  - {id: twin, provider: p, model: shared, cost: 9}
  - {id: unknown-too, provider: p, model: shared}
models:
  - {name: shared}
  - {name: other, upstreams: null}
  - {name: listed, upstreams: [dear, free]}
  - {name: nothing, upstreams: []}
`)
	for name, want := range map[string][]string{
		"shared": {"free", "both", "by-price", "dear", "twin", "unknown", "unknown-too"},
		"other":  {"other"},
		"listed": {"dear", "free"},
	} {
		m, ok := c.Model(name)
		require.True(t, ok)
		require.Equal(t, want, m.Upstreams, name)
	}
	m, _ := c.Model("nothing")
	require.False(t, m.Usable(), "an empty list is a list")
}
