package dispatcher_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/fakellm"
)

// C-43: a default model that is retired is replaced by one that the provider really has: by discovery before any call, or
// by the first call that finds it missing. Nothing but that is asked for to find out.
func TestDefaultModelThatIsRetired(t *testing.T) {
	t.Parallel()
	const text = `
providers: [{id: p, url: "URL", keys: [k1, k2], default_models: {free: old}}]
routing: {priority: [p], final_fallback: ""}
`
	missing := func(r fakellm.Request) fakellm.Answer {
		if r.Model() == "old" {
			return fakellm.JSON(404, `{"error":{"message":"The model does not exist","type":"invalid_request_error","code":"model_not_found"}}`)
		}
		return fakellm.Chat("ok")
	}
	t.Run("discovery knows better", func(t *testing.T) {
		t.Parallel()
		p := setup(t)
		p.upstream.Handle(missing)
		p.upstream.Offer("new")
		models := p.models()
		p.run(text)
		p.eventually(func() bool { return len(models.Book().Providers("new")) == 1 })
		n := 0
		p.eventually(func() bool { // the dispatcher knows it a moment later
			n++
			return p.get(fmt.Sprint("r", n), plainBody, to("p")).status == 200
		})
		before := len(p.called())
		require.Equal(t, 200, p.get("last", plainBody, to("p")).status)
		require.Equal(t, []string{"new"}, p.called()[before:])
	})
	t.Run("the list is wrong", func(t *testing.T) {
		t.Parallel()
		p := setup(t)
		p.upstream.Handle(missing)
		p.upstream.Offer("old", "new")
		models := p.models()
		p.run(text)
		p.eventually(func() bool { return len(models.Book().Providers("new")) == 1 })
		p.get("r1", plainBody, to("p"))
		p.get("r2", plainBody, to("p"))
		require.Equal(t, 200, p.get("r3", plainBody, to("p")).status)
		old := 0
		for _, m := range p.called() {
			if m == "old" {
				old++
			}
		}
		require.LessOrEqual(t, old, 1, "it is not chosen again")
		require.Contains(t, p.called(), "new")
	})
}
