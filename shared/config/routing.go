package config

import (
	"math"
	"slices"
	"strings"
)

// Routing steers automatic routing.
type Routing struct {
	Priority       []string // provider ids; all of them in their order unless the configuration names some
	MaxTokensFast  int      // estimated tokens; fewer go to Fast, others to Large
	Fast           []string // provider ids, in turn
	Large          string
	FinalFallback  string            // provider id, "" = none
	Aliases        map[string]string // names of other vendors' models -> model
	FreeModels     []string          // parts of model names that say the tier
	PremiumModels  []string
	PriceEstimates bool // of calls without a price
}

func (r *Routing) settings() []setting {
	return []setting{
		key("priority", list(&r.Priority), "[]", "provider ids in the order in which they are tried after the one that was decided for. Only providers of this "+
			"list take part in automatic routing. Empty: all, in the order of the file. Agents in it are not tried in their turn, see "+
			"[local agents](#local-agents)").env("PROVIDER_PRIORITY").live(),
		key("max_tokens_fast_model", integer(&r.MaxTokensFast, 1, math.MaxInt32), "8192", "estimated tokens from which on a request counts as large").
			env("MAX_TOKENS_FAST_MODEL").live(),
		key("fast", list(&r.Fast), "[groq, cerebras]",
			"provider ids that take turns for requests that are not large. One that is not in `priority` as well is left out"),
		key("price_estimates", boolean(&r.PriceEstimates), "true", "what calls without a `price` cost is estimated for well-known models at their vendors, by list "+
			"prices in US dollars. `false`, such as with prices in another currency, or with free keys: it is not known"),
		key("large", text(&r.Large), "gemini", "provider id for large requests and for images"),
		key("final_fallback", text(&r.FinalFallback), "ollama", "provider id that is asked last; empty for none"),
		key("aliases", kind{name: "mapping of text", at: &r.Aliases, read: r.readAliases},
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
		var alias, model string
		n.r.lines[value.path] = value.Line
		key.path = value.path
		name(&alias).read(key)
		if name(&model).read(value); alias != "" && model != "" {
			r.Aliases[alias] = model
		}
	})
}

// DefaultAliases are the aliases in force when the file has none.
func DefaultAliases() map[string]string {
	var r Routing
	setDefaults(r.settings())
	return r.Aliases
}

// Automatic gives the providers that automatic routing may ask, in their order. Without any, "auto" does not work.
func (c *Config) Automatic() []string {
	var ids []string
	for _, id := range slices.Concat(c.Routing.Priority, []string{c.Routing.Large, c.Routing.FinalFallback}) {
		if _, known := c.Provider(id); known && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// resolveRouting lets all providers take part in automatic routing when nobody says which, and warns of names in the file that lead
// nowhere.
func (doc *document) resolveRouting() {
	doc.everybody()
	if len(doc.Providers) > 0 && len(doc.Automatic()) == 0 {
		doc.warn("routing.priority", "none of them is configured: nobody answers auto, and it is not listed")
	}
	check := func(path string, ids ...string) {
		if !doc.given(path) {
			return
		}
		for _, id := range ids {
			_, known := doc.Provider(id)
			if _, preset := presets[id]; !known && !preset && id != "" {
				doc.warn(path, "there is no provider %q%s", short(id), suggestion(id, append(sortedKeys(doc.providerAt), sortedKeys(presets)...)))
			}
		}
	}
	r := doc.Routing
	for _, id := range r.Fast {
		if _, known := doc.Provider(id); known && doc.given("routing.fast") && !slices.Contains(r.Priority, id) {
			doc.warn("routing.fast", "%q is not in routing.priority, and so does not take part", short(id))
		}
	}
	check("routing.priority", r.Priority...)
	check("routing.fast", r.Fast...)
	check("routing.large", r.Large)
	check("routing.final_fallback", r.FinalFallback)
}

// everybody lets all providers take part when nobody says which.
func (doc *document) everybody() {
	if len(doc.Routing.Priority) == 0 {
		for _, p := range doc.Providers {
			doc.Routing.Priority = append(doc.Routing.Priority, p.ID)
		}
	}
}

// longestWay bounds how far aliases of aliases are followed to see whether they lead in a circle.
const longestWay = 20

// checkAliases looks for aliases of the file that are never used or lead nowhere (the order of names is that of package routing of the analyzer).
func (doc *document) checkAliases() {
	if !doc.given("routing.aliases") {
		return
	}
	sorted := sortedKeys(doc.Routing.Aliases)
	aliases := map[string]string{} // by name in lower case
	for _, name := range slices.Backward(sorted) {
		aliases[strings.ToLower(name)] = doc.Routing.Aliases[name]
	}
	for _, name := range sorted {
		path, target := join("routing.aliases", name), doc.Routing.Aliases[name]
		if meaning := doc.meaning(name); meaning != "" {
			doc.warn(path, "is never used: the name %s", meaning)
			continue
		}
		way := []string{name}
		for at := target; len(way) < longestWay && doc.meaning(at) == "" && aliases[strings.ToLower(at)] != ""; at = aliases[strings.ToLower(at)] {
			if slices.ContainsFunc(way, func(s string) bool { return strings.EqualFold(s, at) }) {
				doc.warn(path, "leads in a circle: %s", short(strings.Join(append(way, at), " -> ")))
				way = nil
				break
			}
			way = append(way, at)
		}
		if len(way) > 1 {
			doc.warn(path, "leads to %q, which is an alias itself: aliases of aliases are not followed", short(target))
		}
		if id, _, found := strings.Cut(target, "/"); found && doc.meaning(target) == "" && Known(strings.ToLower(id)) {
			doc.warn(path, "leads to the provider %s, which is not configured", strings.ToLower(id))
		}
	}
}

// meaning says what a name means before aliases are looked at, or "".
func (doc *document) meaning(name string) string {
	if _, model := doc.Model(name); model {
		return "is one of models"
	}
	folded := strings.ToLower(name)
	switch folded {
	case "auto", "default", "mllm/auto":
		return "leaves the choice to the gateway"
	}
	for end, c := range folded + "/" {
		if id := doc.folded[folded[:end]]; c == '/' && id != "" {
			return "means the provider " + short(id)
		}
	}
	return ""
}
