package dispatcher_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/goldentest"
)

// example is the configuration of R-184.
const example = `
providers:
  - {id: routerai, url: "URL/v1", key: key-of-routerai, patch: {provider: {allow_fallbacks: false}}}
  - {id: local, url: "URL/local/v1", key: key-of-local}
upstreams:
  - {id: routerai-gpt4o, provider: routerai, model: gpt-4o, patch: {provider: {ignore: ["deepseek"]}}}
  - {id: local-qwen, provider: local, model: qwen2.5-72b-instruct}
models:
  - {name: my-gpt, upstreams: [routerai-gpt4o, local-qwen], patch: {reasoning: {enabled: false}}}
`

// Scenario 24, R-182, R-183, R-184, through a whole dispatcher: what is sent is the client's body with the layers of the pair of model and upstream, and a fallback
// begins with the client's body again.
func TestScenario24Golden(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"example": `{"model":"my-gpt","messages":[{"role":"user","content":"Hello"}],"temperature":0.7}`,
		"stream":  `{"model":"my-gpt","messages":[{"role":"user","content":"Hello"}],"temperature":0.7,"stream":true}`,
		"merged":  `{"provider":{"order":["a"],"ignore":["b","c"],"allow_fallbacks":true},"reasoning":{"effort":"low"},"model":"my-gpt","messages":[{"role":"user","content":"Hello"}]}`,
		"scalars": `{"model":"my-gpt","provider":"any","reasoning":null,"messages":[{"role":"user","content":"Hello"}]}`,
		"kept":    "{\n  \"model\" : \"my-gpt\",\n  \"messages\": [ {\"content\":\"H\\u00e9 \\/ \\ud83c\\udf0d\",\"role\":\"user\"} ],\n  \"temperature\": 0.70, \"seed\": 12345678901234567890, \"unknown\": {\"b\":1,\"a\":[1.0,1e2]} }",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t)
			p.start("d", strings.ReplaceAll(example, "URL", p.upstream.URL()))
			p.upstream.Queue(fakellm.Error(http.StatusBadGateway, "no"))
			p.ask("r", body, func(r *contract.Request) { r.Model, r.Decision.Model = "my-gpt", "my-gpt" })
			require.Equal(t, "local-qwen", p.await("r").header["X-Gateway-Upstream"])
			sent := p.upstream.Requests()
			require.Len(t, sent, 2)
			require.Equal(t, []string{"/v1/chat/completions", "/local/v1/chat/completions"}, []string{sent[0].Path, sent[1].Path})
			require.Equal(t, []string{"key-of-routerai", "key-of-local"}, []string{sent[0].Key(), sent[1].Key()})
			goldentest.Compare(t, "r184-"+name+"-routerai-gpt4o.json", sent[0].Body)
			goldentest.Compare(t, "r184-"+name+"-local-qwen.json", sent[1].Body)
		})
	}
}
