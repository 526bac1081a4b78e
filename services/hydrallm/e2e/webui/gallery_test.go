package webui

import (
	"fmt"
	"net/http"
	"testing"

	"hydrallm/shared/testkit/fakellm"
)

// furnished is a gateway of which every section has something to show.
func furnished(t *testing.T) *site {
	t.Helper()
	good, bad := fakellm.Start(t), fakellm.Start(t)
	good.Offer("small", "large-with-a-name-that-is-rather-long-2026-12-01")
	good.Handle(fakellm.Talk("A **harbour** needs:\n\n- lamps,\n- keepers,\n- `oil`.\n\n| lamp | lit |\n|---|---|\n| red | 18:00 |\n\n```go\nfmt.Println(\"a long line of code that has to scroll somewhere, and does not make the page wider than it is\")\n```\n"))
	bad.Handle(func(fakellm.Request) fakellm.Answer {
		return fakellm.Error(http.StatusServiceUnavailable, "overloaded")
	})
	x := serve(t, fmt.Sprintf(`
providers:
  - {id: groq, url: "%[1]s/v1", keys: [gsk-first-key-of-the-pool, gsk-second-key-of-the-pool], default_models: {free: small}}
  - {id: pa, url: "%[1]s/v1", key: key-of-provider-a, concurrency: 4}
  - {id: failing-provider, url: "%[2]s/v1", key: key-of-provider-b}
upstreams:
  - {id: a, provider: pa, model: real-a}
  - {id: fails-first, provider: failing-provider, model: real-b}
models:
  - {name: demo, upstreams: [fails-first, a], pipeline: true}
  - {name: broken, upstreams: [fails-first]}
routing: {priority: [groq], fast: [groq], large: groq, final_fallback: "", aliases: {}}
web: {browser: never, search: [], intent: {embedding_url: "http://127.0.0.1:1"}}
`, good.URL(), bad.URL()))
	for i := range 4 {
		_, _ = x.chat(t, "demo", fmt.Sprintf("evening-%d", i), fmt.Sprintf("What does a harbour need on evening %d, when the ships come late and nobody knows how many there are?", i))
	}
	_, _ = x.chat(t, "broken", "", "does it work?")
	_, _ = x.chat(t, "auto", "", "hello")
	for i := range 3 {
		x.do(t, http.MethodPost, "/v1/admin/client-keys", map[string]any{
			"name": fmt.Sprintf("team %d", i), "limits": map[string]any{"rpm": 60, "tpm": 100000}, "budget": map[string]any{"amount": 1000000, "unit": "tokens", "period": "month"},
		})
	}
	return x
}

// every section fits a wide window and a phone, in both themes, with something in it. With -screenshots there is a picture of each.
func TestGallery(t *testing.T) {
	t.Parallel()
	v := operator(t, furnished(t).url+"/")
	for _, theme := range []string{"light", "dark"} {
		v.size(1280, 900)
		v.clickOn("[data-choice="+theme+"]", "")
		for _, width := range []int{1280, 390} {
			v.size(width, 900)
			for _, id := range sections {
				v.section(id)
				if id == "playground" {
					v.section("playground?session=evening-1&model=demo")
					v.see("[data-role=assistant] strong", "harbour")
				}
				v.until(`() => !document.querySelector('main .skeleton')`)
				v.picture(fmt.Sprintf("%s-%d-%s", id, width, theme))
				v.until(`(id, width) => document.documentElement.scrollWidth <= innerWidth`, id, width) // what follows the width by script needs a moment
			}
		}
	}
}
