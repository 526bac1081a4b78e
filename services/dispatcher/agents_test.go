package dispatcher_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/contract"
	"hydrallm/shared/testkit/fakellm"
)

// an agent that the client names is tried first. If it can't be reached, the cloud answers, unless the client insists.
func TestAgents(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.start("d", fmt.Sprintf(`
providers:
  - {id: openclaw, url: "%s/v1", key: the-password-of-openclaw}
  - {id: opencode, url: "http://127.0.0.1:1"}
  - {id: groq, url: "%[1]s/v1", keys: [key-of-groq-1234], default_models: {free: fast}}
`, p.upstream.URL()))
	agent := func(id string, strict bool) func(*contract.Request) {
		return func(r *contract.Request) {
			r.Model = id
			r.Decision = &contract.Decision{Agent: id, PinProvider: strict, Reason: contract.ReasonModelHint}
		}
	}
	p.upstream.Handle(func(r fakellm.Request) fakellm.Answer {
		return fakellm.Chat("I am " + gjson.GetBytes(r.Body, "model").Str)
	})

	p.ask("r1", plainBody, agent("openclaw", true))
	got := p.await("r1")
	require.Equal(t, http.StatusOK, got.status, got.body)
	require.Equal(t, "I am openclaw/default", gjson.Get(got.body, "choices.0.message.content").Str)
	require.Equal(t, "LOCAL-AGENT", gjson.Get(got.body, "usage.gateway_provider").Str)
	require.Equal(t, "Bearer the-password-of-openclaw", p.upstream.Requests()[0].Header.Get("Authorization"))

	p.ask("r2", plainBody, agent("opencode", false))
	got = p.await("r2")
	require.Equal(t, http.StatusOK, got.status, got.body)
	require.Equal(t, "I am fast", gjson.Get(got.body, "choices.0.message.content").Str)
	require.Equal(t, "KEY_AVAILABILITY", got.header["X-Routing-Reason"])

	p.ask("r3", plainBody, agent("opencode", true))
	require.Equal(t, http.StatusServiceUnavailable, p.await("r3").status)
	require.Len(t, p.upstream.Requests(), 2)
}
