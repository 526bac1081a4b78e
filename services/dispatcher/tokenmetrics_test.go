package dispatcher

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/config"
	"hydrallm/shared/contract"
	"hydrallm/shared/modelindex"
)

// tokens are counted by the model that answered. A label never holds what only a client knows.
func TestTokenMetrics(t *testing.T) {
	t.Parallel()
	cfg := &config.Config{Upstreams: []config.Upstream{{ID: "u", Provider: "p", Model: "configured"}, {ID: "v", Provider: "p", Model: "idle"}}}
	book := modelindex.NewBook(modelindex.Listing{Provider: "q", Models: []modelindex.Model{{ID: "discovered"}}})
	m := newTokenMetrics(cfg, func() *modelindex.Book { return book })
	m.count(&contract.RequestRecord{Attempts: []contract.Attempt{
		{Provider: "p", Model: "configured", Prompt: 5, Completion: 2, Outcome: contract.CallFailed},
		{Provider: "p", Model: "configured", Prompt: 1},
		{Provider: "q", Model: "discovered", Completion: 3},
	}})
	m.count(&contract.RequestRecord{Attempts: []contract.Attempt{
		{Provider: "q", Model: "made up", Prompt: 4},
		{Provider: "q", Model: "made up too", Prompt: 4, Completion: 1},
	}})
	m.count(&contract.RequestRecord{Model: "nobody answered"})
	require.NoError(t, testutil.CollectAndCompare(m.tokens, strings.NewReader(`
# HELP hydrallm_tokens_total Tokens as providers counted them, by the model that answered.
# TYPE hydrallm_tokens_total counter
hydrallm_tokens_total{kind="completion",model="configured",provider="p"} 2
hydrallm_tokens_total{kind="prompt",model="configured",provider="p"} 6
hydrallm_tokens_total{kind="completion",model="idle",provider="p"} 0
hydrallm_tokens_total{kind="prompt",model="idle",provider="p"} 0
hydrallm_tokens_total{kind="completion",model="discovered",provider="q"} 3
hydrallm_tokens_total{kind="prompt",model="discovered",provider="q"} 0
hydrallm_tokens_total{kind="completion",model="other",provider="q"} 1
hydrallm_tokens_total{kind="prompt",model="other",provider="q"} 8
`)))
}
