package dispatcher

import (
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/dialect/anthropic"
	"hydrallm/services/dispatcher/internal/dialect/compat"
	"hydrallm/services/dispatcher/internal/dialect/gemini"
	"hydrallm/services/dispatcher/internal/plan"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/config"
	"hydrallm/shared/openai"
)

// dialects makes what speaks to providers.
type dialects struct {
	client     *upstream.Client
	signatures *compat.Signatures
}

// of gives the dialect of a provider. A request that is routed is fitted to its vendor; one for a catalogue model goes as it is.
func (d dialects) of(p config.Provider, routed bool) dialect.Dialect {
	switch p.Dialect {
	case "anthropic":
		return dialect.Translated{Client: d.client, Translator: anthropic.Translator{}}
	case "gemini":
		return dialect.Translated{Client: d.client, Translator: gemini.Translator{}}
	}
	plain := dialect.OpenAI{Client: d.client}
	if !routed {
		return plain
	}
	return compat.Dialect{Dialect: plain, Vendor: plan.Vendor(p), Signatures: d.signatures, Keep: patched(p)}
}

// patched tells which members of a request the operator has set, and so nobody changes.
func patched(p config.Provider) func(name string) bool {
	patch, err := openai.CompilePatch(p.Patch)
	if err != nil || patch.Empty() { // the planner reports an error
		return nil
	}
	return patch.Has
}
