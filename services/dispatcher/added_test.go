package dispatcher_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus"
	"hydrallm/shared/config"
	"hydrallm/shared/contract"
	"hydrallm/shared/dispatcherhealth"
	"hydrallm/shared/fault"
	"hydrallm/shared/query"
	"hydrallm/shared/seal"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/startstoptest"
)

const (
	adminKey = "admin-key-for-sealing-3f1c"
	newKey   = "a-key-that-came-later-77aa"
)

// emptyPool has a provider whose keys come at run time, as a configured model and for automatic routing.
func (p *pipeline) emptyPool(secret string) string {
	return fmt.Sprintf(`
server: {admin_key: %s}
providers: [{id: groq, url: "%s/v1", keys: [], default_models: {free: g-model}}, {id: other, url: "%[2]s/v1", key: other-key-1234}]
upstreams: [{id: u, provider: groq, model: real}]
models: [{name: m, upstreams: [u]}]
`, secret, p.upstream.URL())
}

// addKeys asks as the ingress does.
func (p *pipeline) addKeys(secret, provider string, keys ...string) (added int, err error) {
	p.t.Helper()
	var sealed [][]byte
	for _, k := range keys {
		s, err := seal.Seal(secret, []byte(k), provider)
		require.NoError(p.t, err)
		sealed = append(sealed, s)
	}
	answer, err := query.AddKeys.Ask(p.t.Context(), p.bus, query.NewKeys{Provider: provider, Keys: sealed})
	return answer.Added, err
}

// a key that is added counts once, serves at once, and is there after a restart; nothing of it shows.
func TestKeysAddedAtRunTime(t *testing.T) {
	t.Parallel()
	p := setup(t)
	d := p.start("d1", p.emptyPool(adminKey))
	p.ask("r1", plainBody)
	require.Equal(t, 503, p.await("r1").status)

	added, err := p.addKeys(adminKey, "groq", newKey, " "+newKey+"\n", "")
	require.NoError(t, err)
	require.Equal(t, 1, added)
	added, err = p.addKeys(adminKey, "groq", newKey)
	require.NoError(t, err)
	require.Zero(t, added)
	p.eventually(func() bool { return p.keysOf("d1", "groq") == 1 })
	p.ask("r2", plainBody)
	require.Equal(t, 200, p.await("r2").status)
	require.Equal(t, "Bearer "+newKey, p.upstream.Requests()[0].Header.Get("Authorization"))

	startstoptest.Stop(t, d)
	p.start("d2", p.emptyPool(adminKey))
	p.ask("r3", plainBody)
	require.Equal(t, 200, p.await("r3").status)

	p.upstream.Queue(fakellm.Error(400, "no "+newKey))
	p.ask("r4", plainBody)
	require.NotContains(t, p.await("r4").body, newKey[:6], "R-173")

	bucket, err := p.bus.Bucket(t.Context(), subject.KeysBucket)
	require.NoError(t, err)
	w, err := bucket.Watch(t.Context(), ">", func(e bus.Entry) {
		require.NotContains(t, e.Key+string(e.Value), newKey)
	})
	require.NoError(t, err)
	w.Stop()
}

// a key that was added is taken out of all dispatchers and of the store. One of the configuration, and one that is not clear, stays.
func TestKeysRemovedAtRunTime(t *testing.T) {
	t.Parallel()
	p := setup(t)
	pools := fmt.Sprintf(`
server: {admin_key: %s}
providers: [{id: groq, url: "%s/v1", keys: [configured-key-11aa], default_models: {free: g-model}}]
upstreams: [{id: u, provider: groq, model: real}]
models: [{name: m, upstreams: [u]}]
`, adminKey, p.upstream.URL())
	first := p.start("d1", pools)
	p.start("d2", pools)
	added, err := p.addKeys(adminKey, "groq", newKey, newKey+"2", "another-key-22bb")
	require.NoError(t, err)
	require.Equal(t, 3, added)
	p.eventually(func() bool { return p.keysOf("d1", "groq") == 4 && p.keysOf("d2", "groq") == 4 })
	remove := func(q query.KeyName) error {
		_, err := query.RemoveKey.Ask(t.Context(), p.bus, q)
		return err
	}
	zero, one, nine := 0, 1, 9
	for name, tc := range map[string]struct {
		q    query.KeyName
		kind fault.Kind
	}{
		"no name":              {query.KeyName{Provider: "groq"}, fault.Invalid},
		"another provider":     {query.KeyName{Provider: "nowhere", Index: &one}, fault.Invalid},
		"no such index":        {query.KeyName{Provider: "groq", Index: &nine}, fault.NotFound},
		"another mask":         {query.KeyName{Provider: "groq", Index: &one, ID: "other..."}, fault.NotFound},
		"two with this mask":   {query.KeyName{Provider: "groq", ID: config.Mask(newKey)}, fault.Conflict},
		"of the configuration": {query.KeyName{Provider: "groq", Index: &zero}, fault.Conflict},
	} {
		require.ErrorIs(t, remove(tc.q), fault.New(tc.kind, ""), name)
	}
	require.NoError(t, remove(query.KeyName{Provider: "groq", Index: &one, ID: config.Mask(newKey)}))
	p.eventually(func() bool { return p.keysOf("d1", "groq") == 3 && p.keysOf("d2", "groq") == 3 })
	require.NoError(t, remove(query.KeyName{Provider: "groq", ID: config.Mask("another-key-22bb")}))
	p.eventually(func() bool { return p.keysOf("d1", "groq") == 2 && p.keysOf("d2", "groq") == 2 })
	startstoptest.Stop(t, first)
	p.start("d3", pools)
	p.eventually(func() bool { return p.keysOf("d3", "groq") == 2 })
	added, err = p.addKeys(adminKey, "groq", newKey)
	require.NoError(t, err)
	require.Equal(t, 1, added, "it may come again")
}

// Keys for nobody, from somebody with another admin key, and what an operator gets to hear.
func TestKeysThatAreNotAdded(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.start("d1", p.emptyPool(adminKey))
	for name, tc := range map[string]struct{ secret, provider, want string }{
		"unknown provider":          {adminKey, "nowhere", "There is no provider with this id"},
		"a key in its place":        {adminKey, newKey, "There is no provider with this id"},
		"a provider with one key":   {adminKey, "other", "has no pool of keys"},
		"another admin key":         {"something-else-entirely", "groq", "different admin keys"},
		"a provider without a name": {adminKey, "", "There is no provider with this id"},
	} {
		_, err := p.addKeys(tc.secret, tc.provider, newKey)
		require.ErrorIs(t, err, fault.New(fault.Invalid, ""), name)
		require.ErrorContains(t, err, tc.want, name)
		require.NotContains(t, err.Error(), newKey, "R-799")
	}
}

// A dispatcher with another admin key leaves stored keys alone and works.
func TestKeysOfAnotherAdminKey(t *testing.T) {
	t.Parallel()
	p := setup(t)
	d := p.start("d1", p.emptyPool(adminKey))
	_, err := p.addKeys(adminKey, "groq", newKey)
	require.NoError(t, err)
	startstoptest.Stop(t, d)
	p.start("d2", p.emptyPool("another-admin-key-9b8c"))
	require.Zero(t, p.keysOf("d2", "groq"))
}

// after a change of the admin key the one before opens the stored keys, which are encrypted with the new one then. One that neither opens is kept.
func TestAnotherAdminKeyTakesOver(t *testing.T) {
	t.Parallel()
	p := setup(t)
	const second = "second-admin-key-9b8c"
	d := p.start("d1", p.emptyPool(adminKey))
	_, err := p.addKeys(adminKey, "groq", newKey)
	require.NoError(t, err)
	startstoptest.Stop(t, d)
	bucket, err := p.bus.Bucket(t.Context(), subject.KeysBucket)
	require.NoError(t, err)
	_, err = bucket.Put(t.Context(), hex.EncodeToString([]byte("groq"))+".foreign", []byte(`{"provider":"groq","sealed":"AQID"}`))
	require.NoError(t, err)

	both := strings.Replace(p.emptyPool(second), "{admin_key:", "{admin_key_previous: "+adminKey+", admin_key:", 1)
	d = p.start("d2", both)
	require.Equal(t, 1, p.keysOf("d2", "groq"))
	added, err := p.addKeys(adminKey, "groq", newKey, "of-an-ingress-with-the-old-one")
	require.NoError(t, err)
	require.Equal(t, 1, added)
	p.eventually(func() bool { return p.keysOf("d2", "groq") == 2 })
	all := map[string][]byte{}
	sealed := func(secret string) (n int) {
		w, err := bucket.Watch(t.Context(), ">", func(e bus.Entry) { all[e.Key] = e.Value })
		require.NoError(t, err)
		w.Stop()
		for _, text := range all {
			var k struct{ Sealed []byte }
			require.NoError(t, json.Unmarshal(text, &k))
			if _, err := seal.Open(secret, k.Sealed, "groq"); err == nil {
				n++
			}
		}
		return n
	}
	p.eventually(func() bool { return sealed(second) == 2 && sealed(adminKey) == 0 })
	require.Len(t, all, 3, "what can't be opened is kept")
	startstoptest.Stop(t, d)
	p.start("d3", p.emptyPool(second))
	require.Equal(t, 2, p.keysOf("d3", "groq"), "the one before can go")
}

// keysOf is the number of usable keys that a dispatcher publishes.
func (p *pipeline) keysOf(id, provider string) int {
	p.t.Helper()
	bucket, err := p.bus.Bucket(p.t.Context(), subject.StateBucket)
	require.NoError(p.t, err)
	e, err := bucket.Get(p.t.Context(), dispatcherhealth.Key(id))
	require.NoError(p.t, err)
	var s contract.DispatcherState
	require.NoError(p.t, json.Unmarshal(e.Value, &s))
	n := 0
	for _, keys := range s.Providers[provider].Keys {
		n += keys
	}
	return n
}

func (p *pipeline) eventually(ok func() bool) {
	p.t.Helper()
	await.True(p.t, ok)
}
