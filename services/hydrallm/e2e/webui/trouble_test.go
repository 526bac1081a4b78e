package webui

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-rod/rod/lib/proto"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
)

// hostile is a text that runs wherever somebody takes it for markup.
const hostile = `<script>window.intruder = 1</script><img src=x onerror="window.intruder = 1"><a href="javascript:window.intruder = 1">x</a>`

// what others wrote stays text, wherever it is shown.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	fake := fakellm.Start(t)
	fake.Handle(fakellm.Talk(hostile))
	x := serve(t, model(fake))
	status, answer := x.chat(t, "demo", "hostile", hostile)
	require.Equal(t, http.StatusOK, status, "%s", answer)
	status, answer = x.chat(t, hostile, "", "hello")
	require.Equal(t, http.StatusNotFound, status, "%s", answer)
	x.must(t, http.MethodPost, "/v1/admin/client-keys", map[string]any{"name": "<script>window.intruder = 1</script>"}) // its event has the name
	var line gjson.Result
	await.True(t, func() bool {
		for _, e := range gjson.ParseBytes(x.must(t, http.MethodGet, "/v1/admin/logs", nil)).Array() {
			if strings.Contains(e.Get("metadata").Raw, "window.intruder") {
				line = e
			}
		}
		return line.Exists()
	}, "a line of the log with a script")
	v := operator(t, x.url+"/")
	intact := func(where string) {
		t.Helper()
		require.False(t, v.holds(`() => 'intruder' in window || [...document.querySelectorAll('script')].some((s) => !s.src) || !!document.querySelector('#app img, dialog img, [href^="javascript:"]')`), where)
	}
	for _, id := range sections {
		v.section(id)
		v.until(`() => !document.querySelector('main .skeleton')`)
		intact(id)
	}
	v.section("logs")
	v.see(".logline", "")
	v.eval(`() => { for (const line of document.querySelectorAll('.logline')) line.click(); }`)
	v.see(".logmore", "<script>window.intruder = 1</script>")
	intact("an open line of the log")
	v.section("sessions")
	v.see("[data-session=hostile] .name", "<script>")
	v.clickOn("[data-session=hostile] button", "")
	v.see("[data-test=session-messages]", "<script>window.intruder = 1</script>")
	intact("a session")
	v.click("dialog [data-test=resume]")
	v.see("[data-role=user]", "<script>window.intruder = 1</script>")
	v.see("[data-role=assistant]", "")
	intact("the playground")
	v.section("requests")
	v.see("main table", "")
	v.clickOn("main tbody button", "")
	v.see("dialog[open]", "")
	intact("details of a request")
	v.visit("ui/#/requests?model=" + `%3Cscript%3Ewindow.intruder%3D1%3C%2Fscript%3E`)
	v.see("h1", "Requests")
	v.visit("ui/#/%3Cimg%20src=x%20onerror=window.intruder=1%3E")
	v.see("h1", "")
	intact("an address")
}

// a gateway that is gone is told, and one that is back is shown as it is now, without anybody's doing.
func TestReconnects(t *testing.T) {
	t.Parallel()
	fake := fakellm.Start(t)
	fake.Handle(fakellm.Talk("hello"))
	x := serve(t, model(fake))
	v := operator(t, x.url+"/")
	v.section("sessions")
	v.until(`() => !document.querySelector('main .skeleton')`)
	v.until(`() => document.querySelector('[data-test=about]').textContent !== ''`)
	require.NoError(t, x.stop())
	v.see(".lost", "")
	v.section("overview")
	v.see("main .error", "")
	v.section("sessions")
	x.start(t)
	status, answer := x.chat(t, "demo", "after-the-restart", "hello")
	require.Equal(t, http.StatusOK, status, "%s", answer)
	v.gone(".lost", "")
	v.section("overview")
	v.see("[data-test=serving]", "")
	v.gone("main .error", "")
	v.section("sessions")
	v.see("[data-session=after-the-restart]", "")
	// News arrive again.
	v.section("requests")
	v.see("main tbody tr", "")
	rows := len(gjson.ParseBytes(x.must(t, http.MethodGet, "/v1/admin/requests", nil)).Get("requests").Array())
	_, _ = x.chat(t, "demo", "", "once more")
	v.until(`(n) => document.querySelectorAll('main tbody tr').length > n || !!document.querySelector('[data-test=fresh]:not([hidden])')`, rows)
}

// what has no answer is asked again without anybody's doing, the first question of the page as well as that of a section: when a proxy answers in the place
// of the gateway, when nobody does, and when the browser's button for it has stopped what was asked.
func TestAsksAgain(t *testing.T) {
	t.Parallel()
	x := serve(t, model(fakellm.Start(t)))
	var down atomic.Pointer[http.HandlerFunc]
	refuse := func(f http.HandlerFunc) { down.Store(&f) }
	root := proxied(t, x, "", func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if f := down.Load(); f != nil && strings.Contains(r.URL.Path, "/v1/admin/") {
				(*f)(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	refuse(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no gateway", http.StatusBadGateway) })
	v := stranger(t, root)
	v.see("#app > .error", "by itself")
	down.Store(nil)
	v.see("main[data-gate=key] h1", "")

	v.eval(`() => localStorage.setItem('hydrallm.onboarding-skipped', '1')`)
	asked := make(chan struct{}, 1)
	refuse(func(_ http.ResponseWriter, r *http.Request) { // it has no answer as long as the browser waits
		_, _ = io.Copy(io.Discard, r.Body) // only then the server looks whether it still does
		select {
		case asked <- struct{}{}:
		default:
		}
		<-r.Context().Done()
	})
	v.enter(adminKey)
	await.Value(t, asked)
	require.NoError(t, v.page.StopLoading())
	v.see("#app > .error", "by itself")
	down.Store(nil)
	v.see("h1", "Overview")

	refuse(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	v.section("sessions")
	v.see("main .error", "by itself")
	down.Store(nil)
	v.see("main [data-state=empty]", "")
	v.gone("main .error", "")
}

// a page that was frozen for long catches up when it is looked at again.
func TestSleepingBrowser(t *testing.T) {
	t.Parallel()
	fake := fakellm.Start(t)
	fake.Handle(fakellm.Talk("hello"))
	x := serve(t, model(fake))
	v := operator(t, x.url+"/")
	v.section("sessions")
	v.until(`() => document.querySelector('[data-test=about]').textContent !== ''`)
	require.NoError(t, proto.PageSetWebLifecycleState{State: proto.PageSetWebLifecycleStateStateFrozen}.Call(v.page))
	require.NoError(t, x.stop())
	x.start(t)
	for i := range 3 {
		status, answer := x.chat(t, "demo", fmt.Sprintf("meanwhile-%d", i), "hello")
		require.Equal(t, http.StatusOK, status, "%s", answer)
	}
	require.NoError(t, proto.PageSetWebLifecycleState{State: proto.PageSetWebLifecycleStateStateActive}.Call(v.page))
	v.see("[data-session=meanwhile-2]", "")
	v.gone(".lost", "")
}

// without its database the gateway answers, and the page says what can't be had.
func TestDatabaseIsDown(t *testing.T) {
	t.Parallel()
	fake := fakellm.Start(t)
	fake.Handle(fakellm.Talk("hello all the same"))
	x := serveOn(t, model(fake), "admin_key: "+adminKey, "postgres://nobody:secret-of-the-database@127.0.0.1:1/none?sslmode=disable")
	v := operator(t, x.url+"/")
	for _, id := range []string{"overview", "requests", "sessions", "logs"} {
		v.section(id)
		v.see("main .error button", "")
		require.NotContains(t, v.text(), "secret-of-the-database", id)
	}
	v.section("providers")
	v.see("[data-provider=pa]", "")
	v.section("playground?model=demo")
	v.say("hello")
	v.see("[data-role=assistant]", "hello all the same")
}

// a provider serves as long as one of its upstreams does, however many circuits of others are open.
func TestServesWithAnOpenCircuit(t *testing.T) {
	t.Parallel()
	fake := fakellm.Start(t)
	talk := fakellm.Talk("hello")
	fake.Handle(func(r fakellm.Request) fakellm.Answer {
		if r.Model() != "real-a" {
			return fakellm.Error(http.StatusInternalServerError, "down")
		}
		return talk(r)
	})
	x := serve(t, fmt.Sprintf(`
providers: [{id: pa, url: "%s/v1", key: key-of-provider-a}]
upstreams: [{id: a, provider: pa, model: real-a}, {id: b, provider: pa, model: real-b}]
models: [{name: demo, upstreams: [b, a]}]
resilience: {breaker: {channel: {failures: 2, window: 1h, open_for: 1h}}}
routing: {final_fallback: "", aliases: {}}
web: {enabled: false}
`, fake.URL()))
	v := operator(t, x.url+"/")
	v.see("[data-test=serving]", "Serving")
	for range 2 {
		status, answer := x.chat(t, "demo", "", "hello")
		require.Equal(t, http.StatusOK, status, "%s", answer)
	}
	v.see("[data-test=serving]", "Serving; pa: circuit open")
	require.NotContains(t, v.text(), "Not serving")
	// Its last upstream goes, too.
	fake.Handle(func(fakellm.Request) fakellm.Answer { return fakellm.Error(http.StatusInternalServerError, "down") })
	for range 2 {
		status, answer := x.chat(t, "demo", "", "hello")
		require.Equal(t, http.StatusServiceUnavailable, status, "%s", answer)
	}
	v.see("[data-test=serving]", "Not serving")
}
