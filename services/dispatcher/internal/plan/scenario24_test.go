package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/plan"
	"hydrallm/shared/config/configtest"
	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
)

// Scenario 24, R-183, R-184: the worked example of patches, and its fallback, from the text of the configuration to the bytes that are sent.
func TestScenario24Patches(t *testing.T) {
	t.Parallel()
	cfg := configtest.Parse(t, `
providers:
  - {id: routerai, url: "https://routerai.ru/api/v1/", key: k1, patch: {provider: {allow_fallbacks: false}}}
  - {id: local, url: "http://127.0.0.1:9/v1"}
upstreams:
  - {id: routerai-gpt4o, provider: routerai, model: gpt-4o, patch: {provider: {ignore: ["deepseek"]}}}
  - {id: local-qwen, provider: local, model: qwen2.5-72b-instruct}
models:
  - {name: my-gpt, upstreams: [routerai-gpt4o, local-qwen], patch: {reasoning: {enabled: false}}}
`)
	p, err := plan.New(plan.Config{Gateway: cfg, Book: noModels, Dialect: plain})
	require.NoError(t, err)
	chain, err := p.Plan(&contract.Decision{Model: "my-gpt", Configured: true}, false)
	require.NoError(t, err)
	links := chain.Links
	require.Len(t, links, 2)
	require.Equal(t, "https://routerai.ru/api/v1", links[0].Channel.URL)
	require.Equal(t, "k1", links[0].Channel.Key)
	require.Empty(t, links[1].Channel.Key)

	client := `{"model":"my-gpt","messages":[{"role":"user","content":"hi"}],"temperature":0.7}`
	want := []string{
		`{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}],"temperature":0.7,"provider":{"allow_fallbacks":false,"ignore":["deepseek"]},"reasoning":{"enabled":false}}`,
		`{"model":"qwen2.5-72b-instruct","messages":[{"role":"user","content":"hi"}],"temperature":0.7,"reasoning":{"enabled":false}}`,
	}
	req, err := openai.ScanRequest([]byte(client))
	require.NoError(t, err)
	for range 2 { // nothing of an attempt is left in the next
		for i, link := range links {
			got := req.AppendUpstream(nil, openai.Rewrite{Model: link.Model, Patch: link.Patch})
			require.Equal(t, want[i], string(got))
		}
	}
}
