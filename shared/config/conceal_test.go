package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/config"
)

//
func TestConceal(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{
		"sk-1234", "sk-proj-Ab_c-9dE2f", "sk-ant-api03-abcdef", "gsk_abcdef123456", "hf_AbCdEfGhIjKl", "AIzaSyA1234567890abcdef", "AKIAIOSFODNN7EXAMPLE", "xai-abcdef1234567890",
		"ghp_16charactersok", "eyJhbGciOiJIUzI1NiJ9.e30.abc", "0123456789abcdef0123456789abcdef", "3f2b8c1e-9a4d-4f6b-8e2a-0c1d2e3f4a5b", "nvapi-abcdef", "pplx-1234567890abcdef", "r8_abcdefgh",
		"dGhpc2lzYXZlcnlsb25n1234zecretkey",
	} {
		for _, text := range []string{secret, "keys." + secret + ": unknown field", `mapping of "` + secret + `", name`, "GROQ_" + secret} {
			shown := config.Conceal(text)
			require.NotContains(t, shown, secret, text)
			require.True(t, config.LikeCredential(text), text)
		}
	}
	require.Equal(t, "reaching https://...@host/x", config.Conceal("reaching https://user:pa55@host/x"))
	require.NotContains(t, config.Conceal(`the header "Authorization: Bearer my-0wn-token"`), "my-0wn-token")
	for _, plain := range []string{
		"providers[0].keys: is missing", "meta-llama/Llama-3.3-70B-Instruct-Turbo", "accounts/fireworks/models/llama-v3p1-405b-instruct", "anthropic.claude-3-5-sonnet-20241022-v2:0",
		"upstreams[12].max_concurrency", "AZURE_OPENAI_API_KEY_2", "hf_model_name", "disk-1234", "task_sk", "config.yaml:12: server.port: must be a number from 1 to 65535",
		"https://generativelanguage.googleapis.com/v1beta/openai", "2026-05-01T12:00:00Z", "enable_pre_call_checks", "text-embedding-3-large", "supportsReasoningAndToolCalling",
		"xai-grok-4", "/tmp/ADirectoryOfSomebody151340959/001/data/hydrallm.db", "pplx-70b-online", "bearer tokens are sent", "Basic authentication",
	} {
		require.Equal(t, plain, config.Conceal(plain))
	}
}
