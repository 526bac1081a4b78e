package webui

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
)

// the page asks for the key once in a tab, says that one is wrong, and shows nothing without one.
func TestLogin(t *testing.T) {
	t.Parallel()
	x := serve(t, model(fakellm.Start(t)))
	v := stranger(t, x.url+"/")
	v.see("main[data-gate=key] h1", "")
	require.False(t, v.holds(`() => !!document.querySelector('nav')`))
	v.enter("not-" + adminKey)
	v.see("#gate-why", "does not take this key")
	v.enter("키")
	v.see("#gate-why", "ASCII")
	v.enter(adminKey)
	v.see("h1", "Overview")
	v.reload()
	v.see("h1", "Overview")
	require.NotContains(t, v.text(), adminKey)
	require.False(t, v.holds(`(key) => JSON.stringify({...localStorage}).includes(key)`, adminKey))
	v.click("dialog[open] [data-test=skip]") // the first steps are offered
	v.click("[data-test=lock]")
	v.see("main[data-gate=key]", "")
	v.reload()
	v.see("main[data-gate=key]", "")
}

// without a key on the gateway none helps, and the page says what to do.
func TestLoginWithoutKey(t *testing.T) {
	t.Parallel()
	x := serveWith(t, model(fakellm.Start(t)), "queue_timeout: 1m")
	v := stranger(t, x.url+"/")
	v.see("main[data-gate=disabled] h1", "")
	v.see("main pre", "ADMIN_API_KEY")
	require.False(t, v.holds(`() => !!document.querySelector('input')`))
}

// the page comes with a policy that allows nothing inline and nobody else, and needs neither.
func TestPolicy(t *testing.T) {
	t.Parallel()
	x := serve(t, model(fakellm.Start(t)))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, x.url+"/ui/", http.NoBody)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	policy := map[string]string{}
	for directive := range strings.SplitSeq(resp.Header.Get("Content-Security-Policy"), ";") {
		name, sources, _ := strings.Cut(strings.TrimSpace(directive), " ")
		policy[name] = sources
	}
	require.Equal(t, "'none'", policy["default-src"])
	require.Equal(t, "'self'", policy["script-src"])
	require.Equal(t, "'self'", policy["connect-src"])
	require.Equal(t, "'none'", policy["frame-ancestors"])
	require.Equal(t, "'none'", policy["base-uri"])
	for name, sources := range policy {
		require.NotRegexp(t, `unsafe|\*|https?:`, sources, name)
	}

	v := operator(t, x.url+"/")
	for _, id := range sections {
		v.section(id)
		v.until(`() => !document.querySelector('main .skeleton')`)
		require.False(t, v.holds(`() => [...document.querySelectorAll('*')].some((e) => [...e.attributes].some((a) => /^on/i.test(a.name)))`), id)
		require.False(t, v.holds(`() => [...document.querySelectorAll('script')].some((e) => !e.src)`), id)
	}
	// The policy is in force: what gets into the document does not run.
	v.eval(`() => { const s = document.createElement('script'); s.textContent = 'window.intruder = 1'; document.body.append(s); }`)
	require.False(t, v.holds(`() => 'intruder' in window`))
	var problems []string
	await.True(t, func() bool { problems = v.forgive(); return len(problems) > 0 }, "the page tells what the policy forbade")
	require.Len(t, problems, 1)
	require.Contains(t, problems[0], "script-src")
}

// sections are those of the page, in their order.
var sections = []string{"overview", "requests", "playground", "providers", "sessions", "clientkeys", "logs", "settings"}
