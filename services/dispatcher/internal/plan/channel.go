package plan

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"

	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/execute"
	"hydrallm/services/dispatcher/internal/queue"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/shared/config"
	"hydrallm/shared/openai"
)

// configured builds what serves each configured model. Channels are shared between models, patches are not.
func configured(cfg Config, limited limits) (map[string]*execute.Chain, error) {
	channels := map[string]*execute.Channel{}
	for _, u := range cfg.Gateway.Upstreams {
		p, _ := cfg.Gateway.Provider(u.Provider)
		c := channel(p)
		c.ID, c.Circuit, c.Agent, c.Limit, c.Think, c.Pool = u.ID, u.ID, "", u.Limit, think(u.ThinkTags), cfg.Pools[p.ID]
		c.Dialect = cfg.Dialect(p, false)
		if u.NativeCompletions() {
			c.Dialect = dialect.TextCompletions{Dialect: c.Dialect}
		}
		channels[u.ID] = c
	}
	all := map[string]*execute.Chain{}
	for _, m := range cfg.Gateway.Models {
		if !m.Usable() {
			continue
		}
		var links []execute.Link
		for _, id := range m.Upstreams {
			u, _ := cfg.Gateway.Upstream(id)
			p, _ := cfg.Gateway.Provider(u.Provider)
			patch, err := openai.CompilePatch(p.Patch, u.Patch, m.Patch)
			if err != nil {
				return nil, fmt.Errorf("reading the patches of model %q at upstream %q: %w", m.Name, id, err)
			}
			defaults, err := openai.CompilePatch(p.Defaults, u.Defaults, m.Defaults)
			if err != nil {
				return nil, fmt.Errorf("reading the defaults of model %q at upstream %q: %w", m.Name, id, err)
			}
			counted := p.Limit > 0 || limited.has(p.ID, u.Model)
			links = append(links, execute.Link{
				Channel: channels[id], Model: u.Model, Defaults: defaults, Patch: patch, Counted: counted,
				Price: cmp.Or(u.Price, cfg.Gateway.Routing.Estimates(p).Of(u.Model)),
			})
		}
		chain := execute.NewChain(links)
		chain.Queue = queue.Limits(m.Queue)
		all[m.Name] = chain
	}
	return all, nil
}

// limits are the models for which an upstream has a limit.
type limits map[string]bool

func limitsOf(upstreams []config.Upstream) limits {
	l := limits{}
	for _, u := range upstreams {
		if u.Limit > 0 {
			l[execute.SlotID(u.Provider, u.Model)] = true
		}
	}
	return l
}

func (l limits) has(provider, model string) bool { return l[execute.SlotID(provider, model)] }

// rates are what is known of the cost of models, by provider and model.
type rates map[string]config.Upstream

// ratesOf takes what the first upstream says that says anything, of several with one model.
func ratesOf(upstreams []config.Upstream) rates {
	r := rates{}
	for _, u := range upstreams {
		id := execute.SlotID(u.Provider, u.Model)
		known := r[id]
		known.Cost, known.Price = cmp.Or(known.Cost, u.Cost), cmp.Or(known.Price, u.Price)
		r[id] = known
	}
	return r
}

// price is nil when it is not known.
func (r rates) price(provider, model string) *config.Price {
	return r[execute.SlotID(provider, model)].Price
}

// cost is that of R-191.
func (r rates) cost(provider, model string) float64 {
	return r[execute.SlotID(provider, model)].RelativeCost()
}

// channel gives what an upstream and a route of one provider have in common.
func channel(p config.Provider) *execute.Channel {
	c := &execute.Channel{
		Provider: p.ID, Vendor: Vendor(p), URL: p.URL, SessionHeader: p.SessionHeader, HeadersTimeout: p.HeadersTimeout,
		RequestTimeout: p.RequestTimeout, Header: http.Header{}, Passes: config.Dialects[p.Dialect].Passes,
	}
	if p.Agent() {
		c.Agent = strings.ToUpper(p.ID)
	}
	for name, value := range p.Headers {
		c.Header.Set(name, value.Reveal())
	}
	if !p.Pooled && len(p.Keys) > 0 {
		c.Key = p.Keys[0].Value.Reveal()
	}
	return c
}

// vendors are the hosts whose habits are known.
var vendors = map[string]string{
	"generativelanguage.googleapis.com": "gemini", "api.groq.com": "groq", "api.cerebras.ai": "cerebras", "api.openai.com": "openai",
	"api.anthropic.com": "anthropic", "openrouter.ai": "openrouter", "api.deepseek.com": "deepseek", "api.mistral.ai": "mistral",
	"api.minimax.io": "minimax", "api.minimaxi.com": "minimax",
}

// Vendor names the maker of a provider where it is known: by its id if that is a well-known one, by its host, or by its dialect.
func Vendor(p config.Provider) string {
	if config.Known(p.ID) {
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
