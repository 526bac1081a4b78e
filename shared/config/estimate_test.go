package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/config"
)

// well-known models have an estimate at their vendor, and nowhere else. A name that only begins like one is another model.
func TestEstimates(t *testing.T) {
	t.Parallel()
	c := sound(t, "")
	tests := map[string]struct {
		url, model string
		want       *config.Price
	}{
		"a model":            {"https://api.openai.com/v1", "gpt-4o", &config.Price{Input: 2.5, Output: 10, CachedInput: 1.25}},
		"a dated one":        {"https://api.openai.com/v1", "gpt-4o-2024-08-06", &config.Price{Input: 2.5, Output: 10, CachedInput: 1.25}},
		"a dated one, short": {"https://api.anthropic.com", "claude-sonnet-4-5-20250929", &config.Price{Input: 3, Output: 15, CachedInput: 0.3}},
		"latest":             {"https://api.mistral.ai/v1", "mistral-small-latest", &config.Price{Input: 0.1, Output: 0.3, CachedInput: 0.1}},
		"Gemini's path":      {"https://generativelanguage.googleapis.com/v1beta", "models/gemini-2.5-pro", &config.Price{Input: 1.25, Output: 10, CachedInput: 0.125}},
		"another model":      {"https://api.openai.com/v1", "gpt-5-pro", nil},
		"another host":       {"https://proxy.example/v1", "gpt-4o", nil},
		"a host below it":    {"https://api.openai.com.example/v1", "gpt-4o", nil},
		"no model":           {"https://api.openai.com/v1", "", nil},
	}
	off := sound(t, "routing: {price_estimates: false}")
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, c.Routing.Estimates(config.Provider{URL: tt.url}).Of(tt.model))
			require.Nil(t, off.Routing.Estimates(config.Provider{URL: tt.url}).Of(tt.model))
		})
	}
}
