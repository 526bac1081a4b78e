package config

import "math"

// Routing steers automatic routing.
type Routing struct {
	Priority      []string // provider ids
	MaxTokensFast int      // estimated tokens; fewer go to Fast, others to Large
	Fast          []string // provider ids, in turn
	Large         string
	FinalFallback string            // provider id, "" = none
	Aliases       map[string]string // names of other vendors' models -> model
	FreeModels    []string          // parts of model names that say the tier
	PremiumModels []string
}

func (r *Routing) settings() []setting {
	return []setting{
		key("priority", list(&r.Priority), "[gemini, groq, cerebras, ollama, opencode, openclaw]",
			"provider ids in the order in which they are tried after the one that was decided for. Only providers of this list take part in automatic "+
				"routing. Agents in it are not tried in their turn, see [local agents](#local-agents)").env("PROVIDER_PRIORITY").live(),
		key("max_tokens_fast_model", integer(&r.MaxTokensFast, 1, math.MaxInt32), "8192", "estimated tokens from which on a request counts as large").
			env("MAX_TOKENS_FAST_MODEL").live(),
		key("fast", list(&r.Fast), "[groq, cerebras]",
			"provider ids that take turns for requests that are not large. One that is not in `priority` as well is left out"),
		key("large", text(&r.Large), "gemini", "provider id for large requests and for images"),
		key("final_fallback", text(&r.FinalFallback), "ollama", "provider id that is asked last; empty for none"),
		key("aliases", kind{name: "mapping of text", read: r.readAliases},
			"{gpt-3.5-turbo: gemini-2.5-flash, gpt-4o-mini: gemini-2.5-flash, claude-3-haiku: gemini-2.5-flash, "+
				"gpt-4: gemini-2.5-pro, gpt-4o: gemini-2.5-pro, claude-3-opus: gemini-2.5-pro, claude-3-sonnet: gemini-2.5-pro}",
			"names of other vendors' models, and the model that answers. A mapping in the file takes the place of the whole default; `{}` turns aliases off"),
		key("free_models", list(&r.FreeModels), "[]", "a model whose name holds one of these texts is of the tier free").env("FREE_MODELS"),
		key("premium_models", list(&r.PremiumModels), "[]", "the same for premium; it is looked at first").env("PREMIUM_MODELS"),
	}
}

func (r *Routing) readAliases(n node) {
	r.Aliases = map[string]string{}
	n.pairs(func(key, value node) {
		var model string
		if name(&model).read(value); model != "" {
			r.Aliases[key.Value] = model
		}
	})
}

// DefaultAliases are the aliases in force when the file has none.
func DefaultAliases() map[string]string {
	var r Routing
	setDefaults(r.settings())
	return r.Aliases
}

// checkRouting warns of names in the file that lead nowhere.
func (doc *document) checkRouting() {
	check := func(path string, ids ...string) {
		if !doc.given(path) {
			return
		}
		for _, id := range ids {
			_, known := doc.Provider(id)
			if _, preset := presets[id]; !known && !preset && id != "" {
				doc.warn(path, "there is no provider %q", short(id))
			}
		}
	}
	r := doc.Routing
	check("routing.priority", r.Priority...)
	check("routing.fast", r.Fast...)
	check("routing.large", r.Large)
	check("routing.final_fallback", r.FinalFallback)
}
