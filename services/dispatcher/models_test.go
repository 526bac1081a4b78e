package dispatcher_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/fault"
	"hydrallm/shared/modelindex"
	"hydrallm/shared/query"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/startstoptest"
)

func (p *pipeline) models() *modelindex.Copy {
	p.t.Helper()
	c, err := modelindex.Follow(p.t.Context(), p.bus, nil)
	require.NoError(p.t, err)
	p.t.Cleanup(c.Stop)
	return c
}

// models are found at the start and on demand; a provider that does not answer keeps nobody waiting.
func TestModelsAreDiscovered(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.upstream.Offer("first", "pro-model", "text-embedding-x")
	models := p.models()
	p.start("d", fmt.Sprintf(`
providers: [{id: a, url: "%s/v1", key: key-of-a-1234}, {id: gone, url: "http://127.0.0.1:1/v1", key: k}, {id: empty, url: "%[1]s/v1", keys: []}]
`, p.upstream.URL()))
	p.eventually(func() bool {
		l, ok := models.Book().Listing("a")
		return ok && len(l.Models) == 3
	})
	m, ok := models.Book().Find("a", "text-embedding-x")
	require.True(t, ok)
	require.True(t, m.Embedding)
	_, ok = models.Book().Listing("empty")
	require.False(t, ok, "without a key nobody is asked")

	p.upstream.Offer("first", "second")
	answer, err := query.RefreshModels.Ask(t.Context(), p.bus, query.None{})
	require.NoError(t, err)
	require.Equal(t, query.Success, answer.Status)
	p.eventually(func() bool { return len(models.Book().Providers("second")) == 1 })
	require.Equal(t, map[string]int{"Bearer key-of-a-1234": 2}, p.upstream.Listings())
}

// the models of a provider whose first key comes while the gateway runs are found at once.
func TestModelsAreDiscoveredWithTheFirstKey(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.upstream.Offer("first")
	models := p.models()
	p.start("d", p.emptyPool(adminKey))
	p.eventually(func() bool { return len(models.Book().Providers("first")) == 1 }) // of the other provider
	_, err := p.addKeys(adminKey, "groq", newKey)
	require.NoError(t, err)
	p.eventually(func() bool { return len(models.Book().Providers("first")) == 2 })
	require.Equal(t, 1, p.upstream.Listings()["Bearer "+newKey])
}

// A list that a provider gave at another address is not believed any more, even if the new address does not answer.
func TestModelsOfAnotherAddressAreForgotten(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.upstream.Offer("first")
	models := p.models()
	const text = `
providers: [{id: a, url: "%s/v1", key: key-of-a-1234}, {id: b, url: "%s/v1", key: key-of-b-1234}]
`
	first := p.start("d1", fmt.Sprintf(text, p.upstream.URL(), p.upstream.URL()))
	p.eventually(func() bool { return len(models.Book().Providers("first")) == 2 })
	startstoptest.Stop(t, first)
	p.start("d2", fmt.Sprintf(text, p.upstream.URL(), "http://127.0.0.1:1"))
	p.eventually(func() bool { return len(models.Book().Providers("first")) == 1 })
	require.Equal(t, 1, p.upstream.Listings()["Bearer key-of-a-1234"], "a fresh list of the same address is good")
}

// lists that vanish, as they do when NATS loses its disk, are made again.
func TestModelsAreListedAgainWhenTheirListVanishes(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.upstream.Offer("first")
	models := p.models()
	p.start("d", fmt.Sprintf(`
providers: [{id: a, url: "%s/v1", key: key-of-a-1234}]
`, p.upstream.URL()))
	p.eventually(func() bool { return len(models.Book().Providers("first")) == 1 })
	require.NoError(t, modelindex.Remove(t.Context(), p.bus, "a"))
	p.eventually(func() bool { return p.upstream.Listings()["Bearer key-of-a-1234"] == 2 })
	p.eventually(func() bool { return len(models.Book().Providers("first")) == 1 })
}

// a failed key is probed on demand once its rest is over, and comes back when the provider takes it.
func TestKeysAreProbed(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.start("d", fmt.Sprintf(`
providers: [{id: a, url: "%s/v1", keys: [key-number-one-of-a]}]
upstreams: [{id: u, provider: a, model: real}]
models: [{name: m, upstreams: [u]}]
resilience: {cooldowns: {forbidden: 1h}}
`, p.upstream.URL()))
	p.upstream.Queue(fakellm.Error(401, "bad key"))
	p.ask("r1", plainBody)
	require.Equal(t, 424, p.await("r1").status)
	p.eventually(func() bool { return p.keysOf("d", "a") == 0 }) // the others are told soon
	probe := func(force bool) query.Probed {
		r, err := query.ProbeKeys.Ask(t.Context(), p.bus, query.Probe{Force: force})
		require.NoError(t, err)
		return r
	}
	r := probe(false)
	require.Zero(t, r.Probed, "R-167")
	require.Equal(t, 1, r.Resting)
	r = probe(true)
	require.Equal(t, 1, r.Recovered)
	p.ask("r2", plainBody)
	require.Equal(t, 200, p.await("r2").status)

	_, err := p.bus.Query(t.Context(), query.Dispatcher, query.ProbeKeys.Name, []byte(`"nonsense"`))
	require.ErrorIs(t, err, fault.New(fault.Invalid, ""))
}
