package openai

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseUsage(t *testing.T) { // STR-15
	t.Parallel()
	require.Equal(t, Usage{}, ParseUsage([]byte(`{"prompt_tokens":-1,"completion_tokens":"x","total_tokens":1e999}`)))
	require.Equal(t, Usage{Prompt: 9007199254740993, Total: 9007199254740993}, ParseUsage([]byte(`{"prompt_tokens":9007199254740993}`)))
	require.Equal(t, Usage{Completion: 3, Total: 3}, ParseUsage([]byte(`{"completion_tokens":3.0}`)))
	require.Equal(t, Usage{}, ParseUsage(nil))
	require.Equal(t, Usage{Prompt: 9, Total: 9, Cached: 4}, ParseUsage([]byte(`{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":4}}`)))
	require.Equal(t, Usage{Prompt: 9, Total: 9, Cached: 4}, ParseUsage([]byte(`{"prompt_tokens":9,"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":5}`)))
	require.Equal(t, Usage{Prompt: 9, Total: 9}, ParseUsage([]byte(`{"prompt_tokens":9,"prompt_tokens_details":null}`)))
	require.Equal(t, Usage{Prompt: 9, Total: 9}, ParseUsage([]byte(`{"prompt_tokens":9,"prompt_tokens_details":[4]}`)))
}
