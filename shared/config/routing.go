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

func defaultRouting() Routing {
	return Routing{
		Priority: presetIDs(), MaxTokensFast: 8192, Fast: []string{"groq", "cerebras"}, Large: "gemini", FinalFallback: "ollama",
		Aliases:    DefaultAliases(),
		FreeModels: []string{}, PremiumModels: []string{},
	}
}

// DefaultAliases are the aliases in force when the file has none.
func DefaultAliases() map[string]string {
	return map[string]string{
		"gpt-3.5-turbo": "gemini-2.5-flash", "gpt-4o-mini": "gemini-2.5-flash", "claude-3-haiku": "gemini-2.5-flash",
		"gpt-4": "gemini-2.5-pro", "gpt-4o": "gemini-2.5-pro", "claude-3-opus": "gemini-2.5-pro", "claude-3-sonnet": "gemini-2.5-pro",
	}
}

func (doc *document) routing(n node) {
	r := &doc.Routing
	n.fields(map[string]func(node){
		"priority": list(&r.Priority), "max_tokens_fast_model": integer(&r.MaxTokensFast, 1, math.MaxInt32), "fast": list(&r.Fast),
		"large": text(&r.Large), "final_fallback": text(&r.FinalFallback), "aliases": r.readAliases,
		"free_models": list(&r.FreeModels), "premium_models": list(&r.PremiumModels),
	})
}

func (r *Routing) readAliases(n node) {
	r.Aliases = map[string]string{}
	n.pairs(func(key, value node) {
		var model string
		if name(&model)(value); model != "" {
			r.Aliases[key.Value] = model
		}
	})
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
