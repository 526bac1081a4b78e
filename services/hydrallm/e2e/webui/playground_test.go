package webui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-rod/rod/lib/input"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
)

// say sends a message in the playground.
func (v *visit) say(text string) {
	v.t.Helper()
	v.write("[data-test=message]", text)
	v.click("[data-test=send]")
}

// an answer is shown as it comes, and ends at the upstream with the button, with Escape, and when one leaves.
func TestPlaygroundStops(t *testing.T) {
	t.Parallel()
	fake := fakellm.Start(t)
	fake.Handle(func(fakellm.Request) fakellm.Answer {
		return fakellm.Stream("one ", "two ", "three").First(3, fakellm.Hang)
	})
	x := serve(t, model(fake))
	v := operator(t, x.url+"/")
	ends := map[string]func(){
		"button":  func() { v.click("[data-test=stop]") },
		"Escape":  func() { v.press(input.Escape) },
		"leaving": func() { v.section("settings") },
	}
	for _, how := range []string{"button", "Escape", "leaving"} {
		v.section("playground?model=demo")
		before := len(fake.Requests())
		v.say("count, " + how)
		v.until(`(said) => { const all = [...document.querySelectorAll('[data-role]')]; return all.at(-2).textContent.includes(said) && all.at(-1).textContent.includes('one two'); }`, "count, "+how)
		require.Equal(t, 1, fake.Active(), how)
		ends[how]()
		await.True(t, func() bool { return fake.Active() == 0 }, how, "does not end the call")
		require.Len(t, fake.Requests(), before+1)
		if how != "leaving" {
			v.see("[data-role=assistant] .meta", "stopped")
			v.see("[data-test=send]", "")
		}
	}
}

// Markdown of a whole answer is rendered, and what it was is told.
func TestPlaygroundAnswers(t *testing.T) {
	t.Parallel()
	fake := fakellm.Start(t)
	fake.Handle(fakellm.Talk("Some **bold** words, [a link](https://example.com/) and <script>window.intruder = 1</script> <img src=x onerror=\"window.intruder = 1\">"))
	x := serve(t, model(fake))
	v := operator(t, x.url+"/")
	v.section("playground?model=demo")
	v.say("answer me")
	v.see("[data-role=assistant] strong", "bold")
	v.see("[data-role=assistant] a[href='https://example.com/']", "a link")
	v.see("[data-role=assistant] .meta", "a")
	v.see("[data-test=last]", "pa")
	require.False(t, v.holds(`() => 'intruder' in window || !!document.querySelector('[data-test=talk] img, [data-test=talk] script')`))
	// An error of the gateway is told, with the id to search for.
	fake.Handle(func(fakellm.Request) fakellm.Answer {
		return fakellm.Error(http.StatusUnprocessableEntity, "no <b>such</b> thing")
	})
	v.say("and again")
	v.see("[data-role=assistant] .error[role=alert]", "no <b>such</b> thing")
}

// where an answer was read is told beside it, and still is when the session is opened again.
func TestSourceChips(t *testing.T) {
	t.Parallel()
	fake := fakellm.Start(t)
	fake.Handle(fakellm.Talk("lamps are fine"))
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(`<html><head><title>Lamps &lt;script&gt;</title></head><body><article><h1>Lamps</h1><p>` +
			`The lamps of the harbour were lit every evening by the keepers, who wrote down the oil that they used in a large book.</p>` +
			`<p>Ships that came in the night looked for three lamps in a row, and knew by them where the rocks are.</p></article></body></html>`))
	}))
	t.Cleanup(pages.Close)
	x := serve(t, fmt.Sprintf(`
providers: [{id: pa, url: "%s/v1", key: key-of-provider-a}]
upstreams: [{id: a, provider: pa, model: real-a}]
models: [{name: demo, upstreams: [a], pipeline: true}]
routing: {final_fallback: "", aliases: {}}
web: {browser: never, search: [], allow_hosts: [127.0.0.1], intent: {embedding_url: "http://127.0.0.1:1"}}
`, fake.URL()))
	v := operator(t, x.url+"/")
	v.section("playground?model=demo")
	v.say("what is " + pages.URL + "/lamps about")
	v.see("[data-role=assistant] .plain, [data-role=assistant] .md", "lamps are fine")
	chip := fmt.Sprintf(".sources a.source[href='%s/lamps']", pages.URL)
	v.see(chip, "1")
	v.see("[aria-current=true].sess", "")
	v.reload()
	v.see(chip, "")
	require.True(t, v.holds(`() => [...document.querySelectorAll('.sources a')].every((a) => a.rel.includes('noopener') && !document.querySelector('.sources script'))`))
}

// a conversation is a session; it forks where one wants, and each goes on by itself.
func TestFork(t *testing.T) {
	t.Parallel()
	fake := fakellm.Start(t)
	fake.Handle(func(r fakellm.Request) fakellm.Answer {
		list := gjson.GetBytes(r.Body, "messages").Array()
		return fakellm.Talk("answer to " + list[len(list)-1].Get("content").Str)(r)
	})
	x := serve(t, model(fake))
	v := operator(t, x.url+"/")
	v.section("playground?model=demo")
	for _, text := range []string{"first", "second"} {
		v.say(text)
		v.see("[data-role=assistant]", "answer to "+text)
		v.see("[data-test=send]", "")
	}
	sessions := func() (list []gjson.Result) {
		return gjson.ParseBytes(x.must(t, http.MethodGet, "/v1/admin/sessions", nil)).Array()
	}
	await.True(t, func() bool { s := sessions(); return len(s) == 1 && s[0].Get("message_count").Int() == 4 }, "one session with four messages")
	parent := sessions()[0].Get("session_id").Str
	v.reload()
	v.see("[data-role=assistant]", "answer to second")
	// Behind the first answer.
	v.until(`() => { document.querySelector('[data-role=assistant] [data-test=fork-here]').scrollIntoView(); return true; }`)
	v.click("[data-role=assistant] [data-test=fork-here]")
	v.gone("[data-role=assistant]", "answer to second")
	v.see("[data-role=assistant]", "answer to first")
	v.say("another")
	v.see("[data-role=assistant]", "answer to another")
	await.True(t, func() bool { return len(sessions()) == 2 }, "two sessions")
	for _, s := range sessions() {
		if s.Get("session_id").Str != parent {
			require.Equal(t, parent, s.Get("parent_session_id").Str)
		}
	}
	sent := gjson.GetBytes(fake.Requests()[len(fake.Requests())-1].Body, "messages.#.content").String()
	require.Contains(t, sent, "first")
	require.NotContains(t, sent, "second")
	// Back to where it came from.
	v.click(".sess[data-session='" + parent + "']")
	v.see("[data-role=assistant]", "answer to second")
	v.gone("[data-role=assistant]", "answer to another")
	var hash string
	require.NoError(t, json.Unmarshal(v.eval(`() => location.hash`), &hash))
	require.Contains(t, hash, parent)
}
