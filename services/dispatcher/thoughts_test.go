package dispatcher_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
	"hydrallm/shared/testkit/fakellm"
)

// what was thought before is left out of a second call when the provider refuses it; a client of Chat Completions says what it means itself.
func TestRefusedThoughts(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.upstream.Handle(func(r fakellm.Request) fakellm.Answer {
		if strings.Contains(string(r.Body), "reasoning_content") {
			return fakellm.Error(http.StatusBadRequest, "'messages.1' : property 'reasoning_content' is unsupported")
		}
		return fakellm.Talk("fine")(r)
	})
	p.start("d1", p.oneUpstream(""))
	const loop = `{"model":"m","input":[{"role":"user","content":"q"},{"type":"reasoning","summary":[{"type":"summary_text","text":"why"}]},` +
		`{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"x"}]}`
	r := p.get("r1", loop, func(r *contract.Request) { r.Surface = contract.SurfaceResponses })
	require.Contains(t, r.body, "fine")
	sent := p.upstream.Requests()
	require.Len(t, sent, 2)
	require.Contains(t, string(sent[0].Body), `"reasoning_content":"why"`)
	require.NotContains(t, string(sent[1].Body), "why")

	r = p.get("r2", `{"model":"m","messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a","reasoning_content":"why"},{"role":"user","content":"q"}]}`)
	require.Contains(t, r.body, "is unsupported")
	require.Len(t, p.upstream.Requests(), 3)
}
