package webui

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/go-rod/rod/lib/input"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
)

// pooled is a configuration with a pool of keys for a provider that says what models it has.
func pooled(upstream *fakellm.Server) string {
	return fmt.Sprintf(`
providers: [{id: groq, url: "%s/v1", keys: [gsk-first-key-of-the-pool], default_models: {free: small}}]
routing: {priority: [groq], fast: [groq], large: groq, final_fallback: "", aliases: {}}
web: {browser: never, search: [], intent: {embedding_url: "http://127.0.0.1:1"}}
`, upstream.URL())
}

// the first steps show what was found, take the choice of models and one question, and are not offered again.
func TestOnboarding(t *testing.T) {
	t.Parallel()
	fake := fakellm.Start(t)
	fake.Offer("small", "large", "unwanted")
	fake.Handle(fakellm.Talk("hello to you"))
	x := serve(t, pooled(fake))
	v := stranger(t, x.url+"/")
	v.enter(adminKey)
	v.see("dialog[data-dialog=onboarding] h2", "")
	v.see("dialog [data-test=tos]", "")
	v.see("dialog table", "groq")
	v.until(`() => document.querySelectorAll('dialog .modellist input').length >= 3`)
	v.clickOn("dialog .modellist label", "unwanted")
	v.click("dialog [data-test=test-question]")
	v.see("dialog p", "hello to you")
	v.picture("dialog")
	v.click("dialog [data-test=finish]")
	v.see("main[data-section=playground] h1", "")
	state := gjson.ParseBytes(x.must(t, http.MethodGet, "/v1/admin/onboarding", nil))
	require.True(t, state.Get("completed").Bool(), state.Raw)
	require.NotContains(t, state.Get("enabled_models").Raw, "unwanted")
	require.Contains(t, state.Get("enabled_models").Raw, "large")
	other := stranger(t, x.url+"/")
	other.enter(adminKey)
	other.see("h1", "Overview")
	other.until(`() => performance.getEntriesByType('resource').some((e) => e.name.endsWith('/v1/admin/onboarding') && e.responseEnd > 0)`)
	other.section("logs")
	require.False(t, other.holds(`() => !!document.querySelector('dialog[open]')`))
}

// keys are added, shown masked, and removed. No page has a whole one in it.
func TestKeys(t *testing.T) {
	t.Parallel()
	fake := fakellm.Start(t)
	fake.Offer("small")
	fake.Handle(fakellm.Talk("hello"))
	x := serve(t, pooled(fake))
	keys := []string{"gsk-first-key-of-the-pool", "gsk-second-key-of-the-pool-2", "gsk-third-key-of-the-pool-33"}
	v := operator(t, x.url+"/")
	v.section("providers")
	v.until(`() => document.querySelectorAll('[data-provider=groq] [data-test=keys] tbody tr').length === 1`)
	v.clickOn("[data-provider=groq] [data-test=add-keys-form] summary", "")
	v.write("[data-provider=groq] [data-test=new-keys]", strings.Join(keys[1:], ",\n"))
	v.click("[data-provider=groq] [data-test=add-keys]")
	v.see(".toast", "2 new keys")
	v.until(`() => document.querySelectorAll('[data-provider=groq] [data-test=keys] tbody tr').length === 3`)
	v.until(`() => document.querySelectorAll('[data-provider=groq] h2 .key').length === 3`)
	for _, id := range sections {
		v.section(id)
		v.until(`() => !document.querySelector('main .skeleton')`)
		for _, key := range append(keys, adminKey) {
			require.NotContains(t, v.text(), key, id)
		}
	}
	for _, key := range keys {
		require.False(t, v.holds(`(key) => JSON.stringify([{...localStorage}, {...sessionStorage}]).includes(key)`, key))
	}
	v.section("providers")
	v.until(`() => document.querySelectorAll('[data-provider=groq] [data-test=keys] tbody tr').length === 3`)
	v.clickOn("[data-provider=groq] [data-test=keys] tbody tr:last-child button", "")
	v.click("dialog [data-test=confirm]")
	v.until(`() => document.querySelectorAll('[data-provider=groq] [data-test=keys] tbody tr').length === 2`)
}

// the language is switched at once, and remembered.
func TestLanguage(t *testing.T) {
	t.Parallel()
	x := serve(t, model(fakellm.Start(t)))
	v := operator(t, x.url+"/")
	require.True(t, v.holds(`() => document.documentElement.lang === 'en'`))
	v.click("[data-choice=ko]")
	v.see("nav a[data-section=requests]", "요청")
	require.True(t, v.holds(`() => document.documentElement.lang === 'ko'`))
	v.reload()
	v.see("nav a[data-section=requests]", "요청")
	for _, id := range sections {
		v.section(id)
		v.until(`() => !document.querySelector('main .skeleton')`)
		require.True(t, v.holds(`() => /\p{Script=Hangul}/u.test(document.title + document.querySelector('h1').textContent)`), id)
		// A text that is nowhere is shown as its key.
		require.False(t, v.holds(`() => /(^|\s)[a-z]+\.[a-z]+(\.[a-z]+)*(\s|$)/.test([...document.querySelectorAll('main :is(h1, h2, th, label, button, option)')].filter((e) => !e.closest('.set, .chainlist')).map((e) => e.textContent).filter((s) => /^(nav|col|filter|play|ck|logs|sessions|settings|overview|action)\./.test(s)).join(' '))`), id)
	}
	v.click("[data-choice=en]")
	v.see("nav a[data-section=requests]", "Requests")
}

// everything can be reached with the keyboard.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	x := serve(t, model(fakellm.Start(t)))
	v := operator(t, x.url+"/")
	letters := map[string]input.Key{
		"requests": input.KeyR, "playground": input.KeyP, "providers": input.KeyV, "sessions": input.KeyS, "clientkeys": input.KeyK, "logs": input.KeyL,
		"settings": input.KeyT, "overview": input.KeyO,
	}
	for _, id := range append(sections[1:], "overview") {
		v.goWith(letters[id], id)
	}
	v.goWith(input.KeyL, "logs")
	v.press(input.Slash)
	v.until(`() => document.activeElement.type === 'search'`)
	v.press(input.KeyG, input.KeyO) // these are written
	require.True(t, v.holds(`() => document.activeElement.value === 'go' && document.querySelector('main').dataset.section === 'logs'`))
	v.press(input.Escape)
	v.until(`() => document.activeElement.type !== 'search'`)
	v.eval(`() => document.dispatchEvent(new KeyboardEvent('keydown', { key: '?', bubbles: true }))`)
	v.see("dialog[open] h2", "")
	v.press(input.Escape)
	v.until(`() => !document.querySelector('dialog')`)
	// The first tab stop leads past the navigation, and what has the focus shows it.
	v.reload()
	v.see("h1", "")
	v.until(`() => !document.querySelector('main .skeleton')`)
	v.press(input.Tab)
	v.until(`() => document.activeElement.className === 'skiplink' && getComputedStyle(document.activeElement).outlineStyle !== 'none'`)
	v.press(input.Enter)
	v.until(`() => document.activeElement.id === 'main'`)
}

// goWith presses g and a letter until the section is there: they belong together for a moment only.
func (v *visit) goWith(letter input.Key, id string) {
	v.t.Helper()
	v.eval(`() => document.activeElement.blur()`)
	await.True(v.t, func() bool {
		v.press(input.KeyG, letter)
		return v.holds(`(id) => document.querySelector('main').dataset.section === id`, id)
	}, "g and a letter go to", id)
	v.until(`() => document.activeElement.tagName === 'H1'`)
}

// the page works below a prefix that a proxy takes away.
func TestPrefix(t *testing.T) {
	t.Parallel()
	fake := fakellm.Start(t)
	fake.Handle(fakellm.Talk("from below a prefix"))
	x := serve(t, model(fake))
	v := operator(t, proxied(t, x, "/some/gateway", func(h http.Handler) http.Handler { return h }))
	v.section("playground?model=demo")
	v.say("hello")
	v.see("[data-role=assistant]", "from below a prefix")
	for _, id := range sections {
		v.section(id)
		v.until(`() => !document.querySelector('main .skeleton')`)
		require.False(t, v.holds(`() => !!document.querySelector('main .error')`), id)
	}
	v.section("overview") // the stream comes through, too
	v.see("[data-test=serving]", "")
	v.until(`() => document.querySelector('[data-test=about]').textContent !== ''`)
}

// proxied puts a proxy before a gateway, which takes a prefix away, and gives the address below it. wrap gets what hands requests on.
func proxied(t *testing.T, x *site, prefix string, wrap func(http.Handler) http.Handler) string {
	t.Helper()
	target, err := url.Parse(x.url)
	require.NoError(t, err)
	transport := &http.Transport{}
	forward := &httputil.ReverseProxy{FlushInterval: -1, Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, ErrorLog: log.New(io.Discard, "", 0)}
	proxy := httptest.NewServer(http.StripPrefix(prefix, wrap(forward)))
	t.Cleanup(func() {
		proxy.CloseClientConnections()
		proxy.Close()
		transport.CloseIdleConnections()
	})
	return proxy.URL + prefix + "/"
}
