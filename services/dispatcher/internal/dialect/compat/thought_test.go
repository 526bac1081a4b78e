package compat_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/dialect/compat"
)

//
func TestThoughts(t *testing.T) {
	t.Parallel()
	for vendor, refuses := range map[string]bool{"openai": true, "groq": true, "gemini": true, "deepseek": false, "somebody": false} {
		require.Equal(t, refuses, compat.RefusesThoughts(vendor), vendor)
	}
	const body = `{"model":"m", "messages":[{"role":"user","content":"reasoning_content"}, {"role":"assistant","reasoning_content":"t","content":null, "x":1.0}],"n":1}`
	out, had := compat.WithoutThoughts([]byte(body))
	require.True(t, had)
	require.Equal(t, `{"model":"m", "messages":[{"role":"user","content":"reasoning_content"},{"role":"assistant","content":null, "x":1.0}],"n":1}`, string(out))
	for _, same := range []string{`{"messages":[{"role":"user","content":"\"reasoning_content\""}]}`, `{"messages":[{"role":"assistant","content":{"reasoning_content":1}}]}`, `{}`} {
		out, had = compat.WithoutThoughts([]byte(same))
		require.False(t, had)
		require.Equal(t, same, string(out))
	}
}
