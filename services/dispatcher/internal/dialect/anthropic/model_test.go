package anthropic

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// The names are those that Anthropic and the clouds that resell it have given so far.
func TestModelVersion(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{
		"claude-2.1": 201, "claude-3-haiku-20240307": 300, "claude-3-5-sonnet-20241022": 305, "claude-3-7-sonnet-latest": 307,
		"claude-sonnet-4-20250514": 400, "claude-opus-4-0": 400, "claude-opus-4-1-20250805": 401, "claude-haiku-4-5@20251001": 405,
		"anthropic/claude-sonnet-4.5": 405, "us.anthropic.claude-opus-4-6-v1:0": 406, "claude-opus-4-8": 408, "claude-sonnet-5": 500,
		"claude-fable-5-1": 501, "claude-mythos-preview": math.MaxInt, "claude-": math.MaxInt, "MiniMax-M2.7": 0, "beta-1": 0, "": 0,
	} {
		require.Equal(t, want, modelVersion(name), name)
	}
}
