package routing_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/analyzer/internal/routing"
	"hydrallm/shared/contract"
)

// that the client wants a search is part of the decision and changes nothing else of it.
func TestSearchDecidesNothing(t *testing.T) {
	t.Parallel()
	for _, model := range []string{"auto", "groq/auto", "groq/x", "gpt-4o", "gemini-1.5-pro", "ollama", "my-gpt", "opencode/x"} {
		for _, tokens := range []int64{1, 8191, 8192} {
			for _, images := range []bool{false, true} {
				q := routing.Question{Operation: contract.Chat, Model: model, Tokens: tokens, Needs: needs(images)}
				plain, err := vendors().decide(q)
				require.NoError(t, err)
				q.Search = true
				searching, err := vendors().decide(q)
				require.NoError(t, err)
				require.True(t, searching.Search)
				searching.Search = plain.Search
				require.Equal(t, plain, searching, model)
			}
		}
	}
}
