package webui

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/go-rod/rod/lib/input"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
)

// two is a configuration with a model at each of two providers, "left" and "right".
func two(left, right *fakellm.Server) string {
	return fmt.Sprintf(`
providers: [{id: pa, url: "%s/v1", key: key-of-provider-a}, {id: pb, url: "%s/v1", key: key-of-provider-b}]
upstreams: [{id: a, provider: pa, model: real-a}, {id: b, provider: pb, model: real-b}]
models: [{name: left, upstreams: [a]}, {name: right, upstreams: [b]}]
routing: {final_fallback: "", aliases: {}}
web: {browser: never, search: [], intent: {embedding_url: "http://127.0.0.1:1"}}
`, left.URL(), right.URL())
}

// Selectors of the sides of a comparison.
const (
	first  = "[data-side=first] "
	second = "[data-side=second] "
)

// comparing opens a comparison of both models.
func (v *visit) comparing() {
	v.t.Helper()
	v.section("playground?model=left&compare=right")
	for _, side := range []string{first, second} {
		v.until(`(css) => document.querySelector(css + '[data-test=model]')?.querySelectorAll('option[value=left], option[value=right]').length === 2`, side)
	}
}

// both models are asked the same at once, each side streams by itself and is stopped by itself, and knows afterwards what was said on it. Nothing belongs to a
// session.
func TestCompare(t *testing.T) {
	t.Parallel()
	left, right := fakellm.Start(t), fakellm.Start(t)
	left.Handle(func(fakellm.Request) fakellm.Answer {
		return fakellm.Stream("one ", "two ", "three").First(3, fakellm.Hang)
	})
	right.Handle(func(fakellm.Request) fakellm.Answer {
		return fakellm.Stream("un ", "deux ", "trois").First(3, fakellm.Hang)
	})
	x := serve(t, two(left, right))
	v := operator(t, x.url+"/")
	v.comparing()
	v.see(first+"[data-state=empty]", "no session")
	v.say("count")
	v.see(first+".plain", "one two")
	v.see(second+".plain", "un deux")
	v.see("[data-test=stop]", "Stop both")
	require.Equal(t, [2]int{1, 1}, [2]int{left.Active(), right.Active()})
	v.click(first + "[data-test=stop-side]")
	v.see(first+".meta", "stopped")
	await.True(t, func() bool { return left.Active() == 0 }, "the call of the side that was stopped ends")
	require.Equal(t, 1, right.Active(), "the other goes on")
	v.gone(first+"[data-test=stop-side]", "")
	v.see(second+"[data-test=stop-side]", "")
	v.press(input.Escape)
	v.see(second+".meta", "stopped")
	await.True(t, func() bool { return right.Active() == 0 }, "Escape ends the other")
	v.see("[data-test=send]", "")

	// What the sides know is what was said on them.
	left.Handle(fakellm.Talk("from the left"))
	right.Handle(func(fakellm.Request) fakellm.Answer {
		return fakellm.Error(http.StatusUnprocessableEntity, "no <b>such</b> thing")
	})
	v.say("go on")
	v.see(first+"[data-role=assistant]", "from the left")
	v.see(second+"[data-role=assistant] .error[role=alert]", "no <b>such</b> thing")
	v.see("[data-test=send]", "")
	v.see(first+"[data-test=meta]", "to first token")
	// The ledger tells the way, also of what failed. What it has told is not shown anew any more, so that it can be clicked at.
	const last = "[data-role=assistant]:last-of-type "
	for side, upstream := range map[string]string{first: "a", second: "b"} {
		v.see(side+last+"[data-test=details]", "")
		v.see(side+last+".way .chip", upstream)
	}
	contents := func(fake *fakellm.Server) string {
		list := fake.Requests()
		return gjson.GetBytes(list[len(list)-1].Body, "messages.#.content").Raw
	}
	require.JSONEq(t, `["count","one two ","go on"]`, contents(left))
	require.JSONEq(t, `["count","un deux ","go on"]`, contents(right))

	// One side alone is asked again.
	asked := len(left.Requests())
	right.Handle(fakellm.Talk("from the right"))
	v.click(second + last + "[data-test=retry]")
	v.see(second+"[data-role=assistant]", "from the right")
	v.see("[data-test=send]", "")
	require.Len(t, left.Requests(), asked)
	require.JSONEq(t, `[]`, string(x.must(t, http.MethodGet, "/v1/admin/sessions", nil)))

	// Without the comparison the model of the first side is there.
	v.click("[data-test=comparing]")
	v.gone(first, "")
	v.until(`() => document.querySelector('.box [data-test=model]').value === 'left' && location.hash.includes('model=left') && !location.hash.includes('compare')`)
}

// a comparison is begun with a button, its models are in the address, and on a phone one side is below the other.
func TestCompareOnAPhone(t *testing.T) {
	t.Parallel()
	left, right := fakellm.Start(t), fakellm.Start(t)
	left.Handle(fakellm.Talk("from the left"))
	right.Handle(fakellm.Talk("from the right"))
	x := serve(t, two(left, right))
	v := operator(t, x.url+"/")
	v.section("playground?model=left")
	v.click("[data-test=comparing]")
	v.until(`() => document.querySelector('[data-test=comparing]').getAttribute('aria-pressed') === 'true' && document.activeElement.dataset.test === 'message'`)
	v.until(`(css) => !!document.querySelector(css)`, second+"[data-test=model] option[value=right]")
	v.choose(second+"[data-test=model]", "right")
	v.until(`() => location.hash.includes('model=left') && location.hash.includes('compare=right')`)
	v.reload()
	v.see(first+"[data-state=empty]", "")
	v.until(`() => document.querySelector('[data-side=first] [data-test=model]').value === 'left' && document.querySelector('[data-side=second] [data-test=model]').value === 'right'`)
	sides := func() (list [2]struct{ Left, Top, Width float64 }) {
		t.Helper()
		require.NoError(t, json.Unmarshal(v.eval(`() => [...document.querySelectorAll('[data-side]')].map((e) => e.getBoundingClientRect()).map((r) => ({ left: r.left, top: r.top, width: r.width }))`), &list))
		return list
	}
	wide := sides()
	require.InDelta(t, wide[0].Top, wide[1].Top, 0.5)
	require.Greater(t, wide[1].Left, wide[0].Left)
	v.size(390, 844)
	v.until(`() => { const [a, b] = [...document.querySelectorAll('[data-side]')].map((e) => e.getBoundingClientRect()); return a.left === b.left && b.top >= a.bottom; }`)
	require.Greater(t, sides()[0].Width, 380.0)
	v.say("hello")
	v.see(first+"[data-role=assistant]", "from the left")
	v.see(second+"[data-role=assistant]", "from the right")
	require.True(t, v.holds(`() => document.documentElement.scrollWidth <= innerWidth`))
	v.picture("phone")
	v.size(1280, 900)
	v.picture("wide")
}

// the details of a request have the id of its trace and the headers of the answers to its calls, and the request is found by the trace that its client began.
func TestTraceAndHeadersOfARequest(t *testing.T) {
	t.Parallel()
	fake := fakellm.Start(t)
	fake.Handle(func(r fakellm.Request) fakellm.Answer {
		a := fakellm.Talk("hello")(r)
		maps.Copy(a.Header, map[string]string{"X-Request-Id": "req_of_the_provider", "Set-Cookie": "secret-of-a-cookie=1", "X-Ratelimit-Remaining-Requests": "<b>7</b>"})
		return a
	})
	x := serve(t, model(fake))
	_, _ = x.chat(t, "demo", "", "without a trace")
	const trace = "0af7651916cd43dd8448eb211c80319c"
	x.traced(t, "00-"+trace+"-b7ad6b7169203331-00")
	var found gjson.Result
	await.True(t, func() bool {
		found = gjson.GetBytes(x.must(t, http.MethodGet, "/v1/admin/requests?trace_id="+trace, nil), "requests")
		return found.Get("#").Int() == 1
	}, "the request of the trace")
	require.Equal(t, trace, found.Get("0.trace_id").Str)
	all := gjson.GetBytes(x.must(t, http.MethodGet, "/v1/admin/requests", nil), "requests")
	require.Len(t, all.Array(), 2)
	require.Len(t, all.Get("#.trace_id").Array(), 1, "without a collector and a client's trace there is none")
	v := operator(t, x.url+"/")
	v.section("requests")
	v.until(`() => document.querySelectorAll('main [data-request]').length === 2`)
	v.write("[data-test=search]", "00-"+trace+"-b7ad6b7169203331-00")
	v.until(`() => document.querySelectorAll('main [data-request]').length === 1`)
	v.clickOn("main [data-request='"+found.Get("0.request_id").Str+"'] button", "")
	v.see("dialog [data-test=trace]", trace)
	v.clickOn("dialog [data-test=headers] summary", "")
	v.see("dialog [data-test=headers] dd", "req_of_the_provider")
	v.see("dialog [data-test=headers] dd", "<b>7</b>")
	require.NotContains(t, v.text(), "secret-of-a-cookie")
	v.picture("details")
}

// traced sends a request within a trace of its client.
func (x *site) traced(t *testing.T, parent string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, x.url+"/v1/chat/completions", strings.NewReader(`{"model":"demo","messages":[{"role":"user","content":"hi"}]}`))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+adminKey)
	req.Header.Set("Traceparent", parent)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
}
