package config

import (
	"net/url"
	"regexp"
	"strings"
)

// estimates are list prices of well-known hosted models, in US dollars for a million tokens of prompt, cached prompt and answer, by the host that is asked.
// They are taken from the public price pages of the vendors, as they were in December 2025, and are estimates: discounts, tiers by size, batch and free keys are not in
// them. A price of the configuration takes their place.
var estimates = map[string]Estimates{
	"api.openai.com": { // https://platform.openai.com/docs/pricing
		"gpt-5.1": {1.25, 10, 0.125}, "gpt-5": {1.25, 10, 0.125}, "gpt-5-mini": {0.25, 2, 0.025}, "gpt-5-nano": {0.05, 0.4, 0.005},
		"gpt-4.1": {2, 8, 0.5}, "gpt-4.1-mini": {0.4, 1.6, 0.1}, "gpt-4.1-nano": {0.1, 0.4, 0.025}, "gpt-4o": {2.5, 10, 1.25}, "gpt-4o-mini": {0.15, 0.6, 0.075},
		"o3": {2, 8, 0.5}, "o4-mini": {1.1, 4.4, 0.275}, "text-embedding-3-small": {0.02, 0, 0.02}, "text-embedding-3-large": {0.13, 0, 0.13},
	},
	"api.anthropic.com": { // https://docs.claude.com/en/docs/about-claude/pricing
		"claude-opus-4-5": {5, 25, 0.5}, "claude-opus-4-1": {15, 75, 1.5}, "claude-opus-4": {15, 75, 1.5}, "claude-sonnet-4-5": {3, 15, 0.3},
		"claude-sonnet-4": {3, 15, 0.3}, "claude-haiku-4-5": {1, 5, 0.1}, "claude-3-5-haiku": {0.8, 4, 0.08}, "claude-3-haiku": {0.25, 1.25, 0.03},
	},
	"generativelanguage.googleapis.com": { // https://ai.google.dev/gemini-api/docs/pricing
		"gemini-2.5-pro": {1.25, 10, 0.125}, "gemini-2.5-flash": {0.3, 2.5, 0.03}, "gemini-2.5-flash-lite": {0.1, 0.4, 0.01}, "gemini-2.0-flash": {0.1, 0.4, 0.025},
	},
	"api.groq.com": { // https://groq.com/pricing
		"llama-3.1-8b-instant": {0.05, 0.08, 0.05}, "llama-3.3-70b-versatile": {0.59, 0.79, 0.59}, "openai/gpt-oss-120b": {0.15, 0.6, 0.075},
		"openai/gpt-oss-20b": {0.075, 0.3, 0.0375},
	},
	"api.cerebras.ai": { // https://www.cerebras.ai/pricing
		"gpt-oss-120b": {0.35, 0.75, 0.35}, "llama3.1-8b": {0.1, 0.1, 0.1}, "llama-3.3-70b": {0.85, 1.2, 0.85},
	},
	"api.mistral.ai": { // https://mistral.ai/pricing
		"mistral-medium": {0.4, 2, 0.4}, "mistral-small": {0.1, 0.3, 0.1}, "codestral": {0.3, 0.9, 0.3},
	},
	"api.deepseek.com": { // https://api-docs.deepseek.com/quick_start/pricing
		"deepseek-chat": {0.28, 0.42, 0.028}, "deepseek-reasoner": {0.28, 0.42, 0.028},
	},
}

// dated is the end of a name that says which of several versions of one model is meant.
var dated = regexp.MustCompile(`-(latest|\d{4}-\d{2}-\d{2}|\d{8}|\d{4}|\d{3})$`)

// Estimates are prices of the models of one provider, by their names.
type Estimates map[string]Price

// Estimates gives what is known of the prices of a provider: nothing, if it is none of the known vendors, or estimates are off.
func (r *Routing) Estimates(p Provider) Estimates {
	u, err := url.Parse(p.URL)
	if err != nil || !r.PriceEstimates {
		return nil
	}
	return estimates[strings.ToLower(u.Hostname())]
}

// Of gives the price of a model, nil when it is not known.
func (e Estimates) Of(model string) *Price {
	if len(e) == 0 {
		return nil
	}
	model = strings.TrimPrefix(model, "models/")
	price, ok := e[model]
	if !ok {
		price, ok = e[dated.ReplaceAllString(model, "")]
	}
	if !ok {
		return nil
	}
	return &price
}
