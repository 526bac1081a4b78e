//go:build e2e

package webui

import (
	"net/http"
	"testing"

	"hydrallm/shared/testkit/fakellm"
)

// axe finds nothing in a comparison, before it has begun, while an answer comes, and with an answer and an error.
func TestAxeComparison(t *testing.T) {
	t.Parallel()
	script := axe(t)
	left, right := fakellm.Start(t), fakellm.Start(t)
	left.Handle(func(fakellm.Request) fakellm.Answer {
		return fakellm.Stream("one ", "two ", "three").First(3, fakellm.Hang)
	})
	right.Handle(func(fakellm.Request) fakellm.Answer {
		return fakellm.Error(http.StatusUnprocessableEntity, "no such thing")
	})
	v := operator(t, serve(t, two(left, right)).url+"/")
	v.comparing()
	v.everywhere(script, "a comparison that has not begun")
	v.size(1280, 900)
	v.say("count")
	v.see(first+".plain", "one two")
	v.see(second+".error", "no such thing")
	v.everywhere(script, "a comparison that goes on")
	v.size(1280, 900)
	v.click(first + "[data-test=stop-side]")
	v.see(second+"[data-test=details]", "")
	v.see(first+"[data-test=details]", "")
	v.everywhere(script, "a comparison that has ended")
	v.size(1280, 900)
	v.click(second + "[data-test=details]")
	v.clickOn("dialog [data-test=headers] summary", "")
	v.everywhere(script, "the details of a request")
}
