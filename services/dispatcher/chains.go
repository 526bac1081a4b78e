package dispatcher

import (
	"fmt"
	"net/http"
	"strings"

	"hydrallm/services/dispatcher/internal/execute"
	"hydrallm/services/dispatcher/internal/keypool"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/shared/config"
	"hydrallm/shared/openai"
)

// pools makes the key pool of each provider that has one. A provider with a single key has none: its breaker is all it needs (C-11).
// rested is told of each rest that a failure seen here imposes.
func pools(cfg *config.Config, rested func(provider string, r keypool.Rest)) map[string]*keypool.Pool {
	c := cfg.Resilience.Cooldowns
	cooldowns := keypool.Cooldowns{Forbidden: c.Forbidden, Quota: c.Quota, Other: c.Other, Max: c.Max}
	all := map[string]*keypool.Pool{}
	for _, p := range cfg.Providers {
		if !p.Pooled {
			continue
		}
		keys := make([]keypool.Key, len(p.Keys))
		for i, k := range p.Keys {
			keys[i] = keypool.Key{Value: k.Value.Reveal(), Tier: k.Tier}
		}
		all[p.ID] = keypool.New(keys, cooldowns, func(r keypool.Rest) { rested(p.ID, r) })
	}
	return all
}

// chains builds what serves each catalogue model. Channels are shared between models, patches are not.
func chains(cfg *config.Config, pools map[string]*keypool.Pool) (map[string]*execute.Chain, error) {
	channels := map[string]*execute.Channel{}
	for _, u := range cfg.Upstreams {
		p, _ := cfg.Provider(u.Provider)
		if !spoken(p.Dialect) {
			return nil, fmt.Errorf("upstream %q: the dialect %q of its provider %q is not supported yet", u.ID, p.Dialect, p.ID)
		}
		channels[u.ID] = channel(u, p)
		channels[u.ID].Pool = pools[p.ID]
	}
	all := map[string]*execute.Chain{}
	for _, m := range cfg.Models {
		if !m.Usable() {
			continue
		}
		var links []execute.Link
		for _, id := range m.Upstreams {
			u, _ := cfg.Upstream(id)
			p, _ := cfg.Provider(u.Provider)
			patch, err := openai.CompilePatch(p.Patch, u.Patch, m.Patch)
			if err != nil {
				return nil, fmt.Errorf("reading the patches of model %q at upstream %q: %w", m.Name, id, err)
			}
			links = append(links, execute.Link{Channel: channels[id], Patch: patch})
		}
		all[m.Name] = execute.NewChain(m.Name, links)
	}
	return all, nil
}

// spoken says whether an upstream of this dialect can be called: those whose chat operation is OpenAI's.
func spoken(dialect string) bool { return dialect == "openai" || dialect == "ollama" }

func channel(u config.Upstream, p config.Provider) *execute.Channel {
	c := &execute.Channel{
		ID: u.ID, Provider: p.ID, Vendor: vendor(p), Model: u.Model, URL: operation(p.URL, "/chat/completions"), Limit: u.Limit,
		Think: think(u.ThinkTags), SessionHeader: p.SessionHeader, HeadersTimeout: p.HeadersTimeout, RequestTimeout: p.RequestTimeout,
		Header: http.Header{},
	}
	for name, value := range p.Headers {
		c.Header.Set(name, value.Reveal())
	}
	if !p.Pooled && len(p.Keys) > 0 {
		c.Key = p.Keys[0].Value.Reveal()
	}
	return c
}

// operation puts the path of an operation behind a base URL, before its query.
func operation(base, path string) string {
	url, query, found := strings.Cut(base, "?")
	if found {
		return url + path + "?" + query
	}
	return url + path
}

// vendors are the hosts whose habits the table of errors knows.
var vendors = map[string]string{
	"generativelanguage.googleapis.com": "gemini", "api.groq.com": "groq", "api.cerebras.ai": "cerebras",
	"api.anthropic.com": "anthropic", "openrouter.ai": "openrouter", "api.deepseek.com": "deepseek", "api.mistral.ai": "mistral",
}

// vendor names the maker of a provider where it is known.
func vendor(p config.Provider) string {
	switch p.ID {
	case "gemini", "groq", "cerebras", "ollama", "opencode", "openclaw":
		return p.ID
	}
	for host, name := range vendors {
		if strings.Contains(p.URL, "://"+host+"/") {
			return name
		}
	}
	if p.Dialect != "openai" {
		return p.Dialect
	}
	return ""
}

func think(t config.ThinkTags) stream.Think {
	switch t {
	case config.ThinkSplit:
		return stream.ThinkSplit
	case config.ThinkStrip:
		return stream.ThinkStrip
	case config.ThinkOff:
	}
	return stream.ThinkOff
}

// scrubber removes known secrets from text that leaves the gateway. Short ones are left: they would garble ordinary words.
func scrubber(cfg *config.Config) *strings.Replacer {
	const shortest = 6
	var pairs []string
	for _, s := range cfg.Secrets() {
		if len(s) >= shortest {
			pairs = append(pairs, s, config.Mask(s))
		}
	}
	return strings.NewReplacer(pairs...)
}
