package openai

import (
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/openai/rawjson"
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

// What a provider counts is never negative, and a total that it does not state is the sum, however large its numbers are.
func FuzzParseUsage(f *testing.F) {
	f.Add([]byte(`{"prompt_tokens":3,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":1}}`))
	f.Add([]byte(`{"input_tokens":9223372036854775807,"output_tokens":9223372036854775807}`))
	f.Add([]byte(`{"prompt_tokens":-1,"completion_tokens":1e400,"total_tokens":"3","prompt_cache_hit_tokens":0.5}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if !rawjson.Valid(text) {
			t.Skip("answers are checked before")
		}
		u := ParseUsage(text)
		for _, n := range []int64{u.Prompt, u.Completion, u.Total, u.Cached} {
			require.GreaterOrEqual(t, n, int64(0))
		}
		if rawjson.Get(text, "total_tokens") == nil {
			require.Equal(t, u.Prompt+u.Completion, u.Total)
		}
	})
}
